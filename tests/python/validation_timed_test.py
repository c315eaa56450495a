"""Rows whose source timed forward and backward passes alone."""

from __future__ import annotations

import math

import pytest
from plancast.accuracy.validation.run import validate

COLUMNS = (
    "row_id,source,model,layers,hidden,heads,vocab,seq_len,machine,strategy,global_batch,dtype,"
    "software,iter_time_s,assumptions"
)
ROW = (
    "{0},here,small,8,256,4,1000,256,dgx-a100-80g:1x1,"
    '"dp=1,mb=8,recompute=none,attn=unfused",8,fp32,"{1}",0.05,{2}'
)


def results_of(tmp_path, *rows):
    path = tmp_path / "rows.csv"
    lines = [ROW.format(f"r{i}", *row) for i, row in enumerate(rows)]
    path.write_text("\n".join([COLUMNS, *lines]) + "\n")
    return validate([path], workers=1).results


def test_passes_leave_out_the_optimizer_and_what_is_between_iterations(tmp_path):
    whole, passes = results_of(tmp_path, ("eager", ""), ("eager", "timed=passes"))
    beside = whole.breakdown["optimizer"] + whole.breakdown["other"]
    assert beside > 0
    assert passes.predicted == pytest.approx(whole.predicted - beside)
    share = passes.predicted / whole.predicted
    assert passes.interval == pytest.approx([end * share for end in whole.interval])
    # What a run teaches is of whole iterations.
    assert passes.evidence.log == pytest.approx(whole.evidence.log - math.log(share))


def test_a_bare_loop_leaves_out_what_is_between_iterations(tmp_path):
    whole, step = results_of(tmp_path, ("eager", ""), ("eager", "timed=step"))
    assert whole.breakdown["other"] > 0
    assert step.predicted == pytest.approx(whole.predicted - whole.breakdown["other"])


def test_some_software_times_passes(tmp_path):
    said, unsaid = results_of(
        tmp_path, ("NeuSight", "timed=passes"), ("NeuSight", ""),
    )  # fmt: skip
    assert unsaid.predicted == said.predicted < sum(said.breakdown.values())
    # Nothing is updated, so nothing is kept for that.
    assert said.chosen["optimizer_type"] == "sgd"


def test_other_words_are_refused(tmp_path):
    (result,) = results_of(tmp_path, ("eager", "timed=forward"))
    assert result.unsupported == (
        "`timed=forward` is no part of an iteration; `timed=step` leaves out what is done between "
        "iterations, `timed=passes` the optimizer, too"
    )
