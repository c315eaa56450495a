"""The publications' own FLOP formulas."""

from __future__ import annotations

import pytest
from plancast.accuracy.validation.flops import (
    UnknownFormulaError,
    measured_seconds,
    published_flops,
)
from plancast.accuracy.validation.rows import read_rows

COLUMNS = (
    "row_id,source,group,model,layers,hidden,heads,kv_heads,ffn_hidden,vocab,mlp,norm,position,"
    "tied_embeddings,seq_len,machine,strategy,global_batch,dtype,software,iter_time_s,"
    "tflops_per_gpu,mfu,flops_formula,assumptions"
)


def row(tmp_path, **fields):
    base = {
        "row_id": "a",
        "source": "s",
        "model": "gpt-175b",
        "layers": 96,
        "hidden": 12288,
        "heads": 96,
        "kv_heads": 96,
        "ffn_hidden": 49152,
        "vocab": 51200,
        "mlp": "gelu",
        "norm": "layernorm",
        "position": "learned",
        "seq_len": 2048,
        "machine": "dgx-a100-80g:8",
        "strategy": '"dp=1,tp=8,pp=8,mb=1,recompute=full"',
        "global_batch": 64,
        "dtype": "fp16",
    } | fields
    path = tmp_path / "rows.csv"
    values = ",".join(str(base.get(name, "")) for name in COLUMNS.split(","))
    path.write_text(f"{COLUMNS}\n{values}\n")
    return read_rows([path])[0][0]


def test_a_printed_time_is_taken(tmp_path):
    measured = row(tmp_path, iter_time_s=18.13, tflops_per_gpu=1, flops_formula="unknown")
    assert measured_seconds(measured, 0, 64, 312e12) == 18.13


def test_mfu_and_time_of_korthikanti_agree(tmp_path):
    # Table 5, 175B with selective recomputation: 13.75 s and 51.4 % MFU.
    measured = row(tmp_path, mfu=0.514, flops_formula="model_72_full")
    assert measured_seconds(measured, 0, 64, 312e12) == pytest.approx(13.75, rel=0.01)


def test_tflops_of_sc21_include_the_recomputation(tmp_path):
    # 175B on 64 GPUs with full recomputation: 96/72 of the model's FLOPs, about.
    hardware = row(tmp_path, tflops_per_gpu=140, flops_formula="hw_96_recompute")
    model = row(tmp_path, tflops_per_gpu=140, flops_formula="model_72_full")
    ratio = published_flops(hardware, 0) / published_flops(model, 0)
    assert ratio == pytest.approx(4 / 3, rel=0.01)


def test_formulas_agree_on_a_large_dense_model(tmp_path):
    # 72 B s L h^2 is 6 N with N = 12 L h^2; attention over all positions is counted by both.
    parameters = 12 * 96 * 12288**2 + 51200 * 12288
    values = {
        formula: published_flops(row(tmp_path, flops_formula=formula), parameters)
        for formula in ("model_72_full", "palm_6n12", "model_full")
    }
    assert values["palm_6n12"] == pytest.approx(values["model_72_full"], rel=0.001)
    assert values["model_full"] == pytest.approx(values["model_72_full"], rel=0.001)


def test_causal_attention_is_half(tmp_path):
    full = published_flops(row(tmp_path, flops_formula="model_full"), 0)
    causal = published_flops(row(tmp_path, flops_formula="model_causal"), 0)
    assert full - causal == pytest.approx(64 * 2048 * 6 * 96 * 12288 * 2048)


def test_size_in_the_name(tmp_path):
    measured = row(tmp_path, model="gpt-52b", flops_formula="hw_8n")
    assert published_flops(measured, 0) == pytest.approx(8 * 52e9 * 64 * 2048)
    with pytest.raises(UnknownFormulaError, match="size in the model's name"):
        published_flops(row(tmp_path, model="gpt", flops_formula="hw_8n"), 0)


def test_an_unknown_formula_is_said(tmp_path):
    with pytest.raises(UnknownFormulaError, match="`unknown`"):
        measured_seconds(row(tmp_path, tflops_per_gpu=100, flops_formula="unknown"), 0, 64, 312e12)


def test_an_oom_row_has_no_time(tmp_path):
    assert measured_seconds(row(tmp_path), 0, 64, 312e12) is None
