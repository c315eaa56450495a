"""Rows of mixtures of experts and of latent attention: models and published FLOPs."""

from __future__ import annotations

import os
import statistics
from pathlib import Path

import plancast as pc
import pytest
from plancast.accuracy.validation.architecture import UnsupportedError, fields_of
from plancast.accuracy.validation.flops import UnknownFormulaError, published_flops
from plancast.accuracy.validation.jobs import prepare
from plancast.accuracy.validation.rows import read_rows

SHARED = os.environ.get("PLANCAST_SHARED_DATA", "")
needs_shared = pytest.mark.skipif(
    not SHARED, reason="needs published measurements: PLANCAST_SHARED_DATA"
)
COLUMNS = (
    "row_id,source,model,layers,hidden,heads,kv_heads,head_dim,ffn_hidden,vocab,mlp,norm,position,"
    "tied_embeddings,experts,topk,moe_ffn_hidden,shared_experts,dense_layers,seq_len,machine,"
    "strategy,global_batch,dtype,software,iter_time_s,tflops_per_gpu,mfu,flops_formula,assumptions"
)
# Of NVIDIA's Megatron-Bridge, docs/performance-summary-archive.md (25.09 and 25.11): row,
# GPUs, seconds and TFLOP/s printed.
QWEN = (
    "a,s,qwen3-30b-a3b,48,2048,32,4,128,,151936,swiglu,rmsnorm,rope,0,128,8,768,0,0,4096,"
    'dgx-h100:2,"dp=8,pp=2,ep=8,mb=2",512,bf16,Megatron-Bridge,,,,model_causal,'
)
DEEPSEEK = (
    "a,s,deepseek-v3,61,7168,128,128,128,18432,129280,swiglu,rmsnorm,rope,0,256,8,2048,1,3,4096,"
    'dgx-h100:128,"dp=64,tp=2,pp=8,ep=64,mb=1",8192,bf16,Megatron-Bridge,,,,model_causal_mtp,'
    "attention=mla;mtp=1"
)


def read(folder, line):
    path = folder / "rows.csv"
    path.write_text(f"{COLUMNS}\n{line}\n")
    (row,), _ = read_rows([path])
    return row


def test_columns_of_experts_become_a_model(tmp_path):
    job = prepare(read(tmp_path, QWEN))
    assert job.model.parameters == 30_532_122_624
    assert "mtp" not in job.chosen


def test_a_shipped_name_brings_what_no_column_says(tmp_path):
    job = prepare(read(tmp_path, DEEPSEEK))
    assert job.model.parameters == 682_636_487_424
    assert "layout=8x7+6" in job.candidates[0].strategy.short_form  # its recipe's, and the module
    without = prepare(read(tmp_path, DEEPSEEK.replace("mtp=1", "mtp=0")))
    assert without.model.parameters == 671_026_419_200
    cut = prepare(read(tmp_path, DEEPSEEK.replace("deepseek-v3,61", "deepseek-v3-l8,8")))
    assert cut.model.layers == 8


def test_columns_have_the_last_word(tmp_path):
    row = read(tmp_path, QWEN.replace("151936", "32000"))
    assert fields_of(row, {})["vocab"] == 32000


def test_attention_that_no_column_says_needs_a_shipped_model(tmp_path):
    row = read(tmp_path, DEEPSEEK.replace("deepseek-v3", "somebody-v3"))
    with pytest.raises(UnsupportedError, match="its ranks are unknown"):
        prepare(row)
    with pytest.raises(UnknownFormulaError, match="its ranks are unknown"):
        published_flops(row, 0)
    windows = QWEN + "attention=sliding_window_128"
    with pytest.raises(UnsupportedError, match="no shipped model with a window"):
        prepare(read(tmp_path, windows))


def test_flops_count_the_experts_that_a_token_visits(tmp_path):
    attention = 2048 * 128 * (2 * 32 + 2 * 4)
    weights = 48 * (attention + 8 * 3 * 2048 * 768) + 151936 * 2048
    expected = 512 * 4096 * (6 * weights + 6 * 48 * 32 * 128 * 4096)
    assert published_flops(read(tmp_path, QWEN), 0) == expected


def test_multi_token_prediction_is_one_more_layer_and_head(tmp_path):
    with_it = published_flops(read(tmp_path, DEEPSEEK), 0)
    without = published_flops(read(tmp_path, DEEPSEEK.replace("causal_mtp", "causal")), 0)
    query = 7168 * 1536 + 1536 * 128 * 192
    attention = query + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168
    block = attention + 9 * 3 * 7168 * 2048
    weights = block + 2 * 7168**2 + 129280 * 7168
    assert with_it - without == 8192 * 4096 * (6 * weights + 6 * 128 * 160 * 4096)


@pytest.mark.parametrize("line", [QWEN, DEEPSEEK], ids=["qwen3-30b-a3b", "deepseek-v3"])
def test_the_models_own_flops_are_the_published_ones_and_those_of_routers(tmp_path, line):
    line = line.replace("model_causal_mtp", "model_full").replace("_causal", "_full")
    row = read(tmp_path, line.replace("mtp=1", "mtp=0"))
    model = prepare(row).model
    # One sample on one device; the vocabulary has no padding.
    forecast = pc.predict(model, pc.Machine.preset("dgx-h100", hosts=1, gpus_per_host=1), "mb=1")
    fields = fields_of(row, {})
    routers = (fields["layers"] - fields["dense_layers"]) * fields["hidden"] * fields["experts"]
    published = published_flops(row, 0) / row.global_batch
    assert forecast._core.model_flops == pytest.approx(published + 6 * 4096 * routers, rel=1e-9)


def test_the_models_flops_have_modules_of_multi_token_prediction(tmp_path):
    machine = pc.Machine.preset("dgx-h100", hosts=1, gpus_per_host=1)
    with_it = prepare(read(tmp_path, DEEPSEEK))
    row = read(tmp_path, DEEPSEEK.replace("mtp=1", "mtp=0").replace("_mtp", ""))
    flops = [
        pc.predict(m, machine, "mb=1")._core.model_flops
        for m in (with_it.model, prepare(row).model)
    ]
    published = published_flops(with_it.row, 0) - published_flops(row, 0)
    halves = 6 * 8192 * 4096 * 4096 * 128 * 160  # which the causal count leaves out
    router = 6 * 8192 * 4096 * 7168 * 256
    assert flops[0] - flops[1] == pytest.approx((published + halves + router) / 8192, rel=1e-9)


def test_the_models_flops_do_not_hang_on_capacity():
    sizes = {"layers": 2, "hidden": 64, "heads": 4, "ffn": 96, "vocab": 512, "seq": 32}
    machine = pc.Machine.preset("dgx-h100", hosts=1, gpus_per_host=1)
    flops = set()
    for capacity in (0.5, 1, 1.3):
        model = pc.Model.from_config(
            name="small", experts=8, topk=2, capacity_factor=capacity, **sizes
        )
        flops.add(round(pc.predict(model, machine, "mb=1")._core.model_flops))
    assert len(flops) == 1


@needs_shared
def test_printed_rates_and_times_agree():
    rows, _ = read_rows([Path(SHARED) / "truth"])
    errors = {}
    for row in rows:
        both = row.iter_time_s and row.tflops_per_gpu
        if not both or not row.flops_formula.startswith("model_causal"):
            continue
        keys = row.strategy_keys()
        devices = 1
        for axis in ("dp", "tp", "pp", "cp"):
            devices *= int(keys.get(axis, "1"))
        rate = published_flops(row, 0) / row.iter_time_s / devices / 1e12
        errors[row.row_id] = abs(rate / row.tflops_per_gpu - 1)
    assert len(errors) >= 10
    assert statistics.median(errors.values()) < 0.001
    # Times of a second are printed with two digits, and some rates are of another run.
    assert max(errors.values()) < 0.03, max(errors, key=errors.__getitem__)
    assert sum(error > 0.006 for error in errors.values()) < len(errors) / 10


@needs_shared
def test_every_transformer_of_the_shared_rows_is_built():
    rows, _ = read_rows([Path(SHARED) / "truth"])
    names = pc.Model.presets()
    shapes = {
        (row.model, row.layers, row.seq_len, row.vocab, row.experts): row
        for row in rows
        if row.layers is not None or row.model not in names
    }
    assert len(shapes) > 90
    for row in shapes.values():
        model = pc.Model.from_config(**{**fields_of(row, {}), "mtp_layers": 0})
        assert model.layers == row.layers
        assert model.active_parameters <= model.parameters
        if row.model in names and row.vocab == pc.Model.preset(row.model)._core.vocab:
            assert model.parameters == pc.Model.preset(row.model, seq=row.seq_len).parameters


def forecast(row):
    job = prepare(row)
    return pc.predict(
        job.model,
        pc.Machine.preset("dgx-h100", hosts=128),
        job.candidates[0].strategy,
        batch=row.global_batch,
        profile=job.profile,
    )


def test_modules_that_a_recipe_recomputes_run_again_and_no_others(tmp_path):
    plain = DEEPSEEK.replace('mb=1"', 'mb=1,recompute=none"')
    some = DEEPSEEK.replace('mb=1"', 'mb=1,recompute=selective"')
    none = forecast(read(tmp_path, plain))
    up = forecast(read(tmp_path, some + ";recompute_modules=mla_up_proj"))
    both = forecast(read(tmp_path, some + ";recompute_modules=mla_up_proj+mlp"))
    assert none.breakdown()["recompute"] == 0
    assert 0 < up.breakdown()["recompute"] < both.breakdown()["recompute"]


def test_an_unknown_module_to_recompute_is_named(tmp_path):
    some = DEEPSEEK.replace('mb=1"', 'mb=1,recompute=selective"')
    with pytest.raises(UnsupportedError, match=r"recompute_modules has `attn`\."):
        prepare(read(tmp_path, some + ";recompute_modules=attn"))
