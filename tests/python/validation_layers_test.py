"""Times of single layers, and targets."""

from __future__ import annotations

import plancast as pc
import pytest
from plancast.accuracy.validation.layers import layer_times
from plancast.accuracy.validation.run import validate
from plancast.accuracy.validation.targets import verdicts

HEAD = (
    "row_id,model,hidden,heads,ffn_hidden,seq_len,micro_batch,tp,sp,recompute,attn,dtype,machine,"
    "layer_forward_ms,layer_backward_ms\n"
)
RUN = (
    "row_id,source,model,layers,hidden,heads,ffn_hidden,vocab,seq_len,machine,strategy,"
    "global_batch,dtype,software,iter_time_s\n"
)


def model(layers):
    return pc.Model.from_config(
        name="wide", layers=layers, hidden=4096, heads=32, ffn=16384, vocab=32000, seq=2048
    )


def test_a_layer_takes_what_another_layer_adds():
    machine = pc.Machine.preset("dgx-a100-80g:1x1")
    plan = "dp=1,mb=1,recompute=none"
    forward, backward = layer_times(pc.predict(model(5), machine, plan, batch=1, timeline=True))

    def without_optimizer(layers):
        plain = pc.Session(prior=False)  # layers are timed as simulated
        parts = pc.predict(model(layers), machine, plan, batch=1, session=plain).breakdown()
        return sum(parts.values()) - parts["optimizer"]

    added = (without_optimizer(10) - without_optimizer(5)) / 5
    assert forward + backward == pytest.approx(added, rel=0.02)
    assert 1.5 < backward / forward < 2.5


def test_full_recomputation_adds_a_forward_pass():
    machine = pc.Machine.preset("dgx-a100-80g:1x1")
    kept = layer_times(pc.predict(model(5), machine, "recompute=none", batch=1, timeline=True))
    again = layer_times(pc.predict(model(5), machine, "recompute=full", batch=1, timeline=True))
    assert again[0] == pytest.approx(kept[0], rel=0.02)
    assert again[1] == pytest.approx(kept[0] + kept[1], rel=0.05)


def test_files_of_layer_times_are_scored(tmp_path):
    (tmp_path / "runs.csv").write_text(
        RUN + "a,here,small,4,512,8,2048,1000,256,dgx-a100-80g:1,dp=8,8,bf16,Megatron,0.05\n"
    )
    (tmp_path / "layers.csv").write_text(
        HEAD
        + "l-1,gpt,6144,64,24576,2048,4,8,1,selective,unfused,fp16,dgx-a100-80g:1,7.0,12.0\n"
        + "l-2,gpt,6144,64,24576,2048,4,8,1,selective,unfused,fp16,nowhere:1,7.0,12.0\n"
    )
    board = validate([tmp_path])
    assert not board.skipped
    known, unknown = board.layers
    assert known.plan == "dp=1,tp=8,mb=4,sp,recompute=selective,attn=unfused"
    assert known.errors is not None and max(map(abs, known.errors)) < 0.5
    assert unknown.errors is None and "nowhere" in (unknown.unsupported or "")
    assert board.to_dict()["layers"][0]["measured_s"] == pytest.approx([0.007, 0.012])
    (verdict,) = verdicts(board)
    errors = [abs(e) for e in known.errors]
    assert verdict.figure == pytest.approx(sum(errors) / 2)
    assert verdict.met == (verdict.figure <= 0.04)


def test_a_target_counts_where_its_rows_are(tmp_path):
    line = "dgx-a100-80g:1,dp=8,8,bf16,Megatron,0.05"
    (tmp_path / "runs.csv").write_text(
        RUN + f"a,megatron_sc21_table1,small,4,512,8,2048,1000,256,{line}\n"
    )
    board = validate([tmp_path])
    (verdict,) = verdicts(board)
    assert verdict.text.startswith("SC'21 table 1")
    assert verdict.figure == pytest.approx(board.sources["megatron_sc21_table1"]["mape"])
