"""Measured rows of fine-tuning: adapters, packed documents, parameters without fp32 copies."""

from __future__ import annotations

import pytest
from plancast.accuracy.validation.jobs import prepare
from plancast.accuracy.validation.rows import read_rows
from plancast.accuracy.validation.run import validate

COLUMNS = (
    "row_id,source,model,layers,hidden,heads,vocab,seq_len,machine,strategy,global_batch,dtype,"
    "software,iter_time_s,assumptions"
)
PLAN = "dp=8,mb=1,recompute=none"


def results(folder, *said, software="torchtune"):
    """The results of one run each with these assumptions."""
    path = folder / "rows.csv"
    lines = [
        f'"row-{at}",here,small,4,512,8,1000,1024,dgx-a100-80g:1,"{PLAN}",8,bf16,"{software}",'
        f'0.05,"{assumptions}"'
        for at, assumptions in enumerate(said)
    ]
    path.write_text("\n".join([COLUMNS, *lines]) + "\n")
    return validate([path], workers=1).results


def test_adapters_are_those_of_a_tree(tmp_path):
    said = ["", "lora=16:qkv+proj", "lora=8:qkv+attn.proj+fc1+fc2:nf4:.05"]
    whole, lora, four = results(tmp_path, *said)
    assert lora.predicted < whole.predicted
    assert four.predicted is not None  # the host takes longer with more ops
    rows, _ = read_rows([tmp_path / "rows.csv"])
    trees = [prepare(row).candidates[0].strategy.to_dict() for row in rows]
    assert trees[0]["nodes"] == {}
    assert trees[1]["nodes"] == {"": {"lora": {"rank": 16, "on": ["qkv", "proj"]}}}
    assert trees[2]["nodes"][""]["lora"] == {
        "rank": 8, "on": ["qkv", "attn.proj", "fc1", "fc2"], "dropout": 0.05, "base": "nf4"
    }  # fmt: skip


@pytest.mark.parametrize("said", ["0:qkv", "16:", "16:qkv:int8", "16:qkv:1.5", "x:qkv"])
def test_what_is_no_adapter_is_said(tmp_path, said):
    [result] = results(tmp_path, f"lora={said}")
    assert f"`lora={said}` is no RANK[:OP+OP]" in result.unsupported


def test_an_adapter_beside_nothing_is_said(tmp_path):
    [result] = results(tmp_path, "lora=16:q_proj")
    assert "names no op with `q_proj`" in result.unsupported


def test_packed_documents_attend_to_themselves(tmp_path):
    graphs = "cuda_graphs=full_iteration"  # the host would take longer
    long, short = results(tmp_path, graphs, f"documents=64;{graphs}")
    assert short.predicted < long.predicted


def test_torchtune_keeps_nothing_in_fp32(tmp_path):
    [result] = results(tmp_path, "")
    [other] = results(tmp_path, "", software="torch eager")
    assert result.chosen["state_dtype"] == "bf16"
    assert result.chosen["master"] == "0" != other.chosen["master"]


def test_zero_3_under_the_trainer_is_deepspeeds(tmp_path):
    [result] = results(tmp_path, "", software="HF Trainer + PEFT + DeepSpeed ZeRO-3 (2023)")
    assert result.chosen["profile"].startswith("deepspeed ")
