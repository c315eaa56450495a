"""Pipelines that are drained more than once an iteration."""

from __future__ import annotations

import plancast as pc
import pytest
from plancast.accuracy.validation.rounds import in_rounds
from plancast.accuracy.validation.run import validate

MODEL = pc.Model.from_config(layers=8, hidden=4096, heads=32, vocab=1000, seq=4096)
MACHINE = pc.Machine.preset("dgx-h100", hosts=1)


def time_of(plan):
    return pc.predict(MODEL, MACHINE, plan, batch=32, profile="automodel").interval


@pytest.mark.parametrize(("pp", "vpp", "schedule"), [(4, 1, "1f1b"), (4, 2, "interleaved")])
def test_one_round_is_the_schedule_itself(pp, vpp, schedule):
    plan = f"dp=2,pp={pp},vpp={vpp},zero=3,mb=1,schedule="
    assert time_of(plan + in_rounds(pp, vpp, 16, 16)) == time_of(plan + schedule)


def test_every_round_drains_the_pipeline():
    plan = "dp=2,pp=4,vpp=2,zero=3,mb=1,schedule="
    rounds = [time_of(plan + in_rounds(4, 2, 16, a_round)) for a_round in (16, 8, 4)]
    assert rounds == sorted(rounds)
    assert rounds[0] < rounds[2]


def test_a_last_round_may_be_smaller():
    assert in_rounds(1, 1, 3, 2) == "F0 B0 F1 B1 F2 B2"


COLUMNS = (
    "row_id,source,model,layers,hidden,heads,vocab,seq_len,machine,strategy,global_batch,dtype,"
    "software,iter_time_s,assumptions"
)
ROW = (
    'a-row,here,small,8,256,4,1000,256,dgx-a100-80g:1,"dp=2,pp=4,zero=3,mb=1,recompute=none",16,'
    "bf16,AutoModel,0.05,{}"
)


@pytest.mark.parametrize(
    ("said", "rounds"),
    [("local_batch=4", "drained after 4 micro-batches each (local_batch=4)"),
     ("local_batch=8", None), ("local_batch=16", None), ("", None)],
)  # fmt: skip
def test_rows_say_what_one_call_of_the_schedule_takes(tmp_path, said, rounds):
    path = tmp_path / "rows.csv"
    path.write_text(f"{COLUMNS}\n{ROW.format(said)}\n")
    (result,) = validate([path], workers=1).results
    assert result.unsupported is None
    assert (result.chosen or {}).get("rounds") == rounds
