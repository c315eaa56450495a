"""What is no model, no batch or no name is refused at its own line."""

from __future__ import annotations

import numpy as np
import plancast as pc
import pytest


@pytest.fixture(scope="module")
def gpt2():
    return pc.Model.preset("gpt2")


@pytest.fixture(scope="module")
def host():
    return pc.Machine.preset("dgx-h100")


def refusal(call, *arguments, **named):
    with pytest.raises(pc.InputError) as error:
        call(*arguments, **named)
    return str(error.value)


def test_names_are_text():
    assert "`name` is `5`" in refusal(pc.Model.preset, 5)
    assert "`name` is `None`" in refusal(pc.Machine.preset, None)
    assert "`text` is `8`; give text." in refusal(pc.Strategy.parse, 8)


def test_nouns_are_what_they_stand_for(gpt2, host):
    assert "Model.preset(" in refusal(pc.predict, "gpt2", host, "")
    assert "Machine.preset(" in refusal(pc.predict, gpt2, "dgx-h100:1", "")
    assert "Strategy.parse(" in refusal(pc.predict, gpt2, host, None)
    assert "Session()" in refusal(pc.predict, gpt2, host, "", session=3)
    assert "`forecasts` is `'a'`; give a Forecast, such as `predict(" in refusal(
        pc.compare, "a", "b"
    )


@pytest.mark.parametrize("batch", [0, -8, 1.5, "8", True, 10**10])
def test_batches_nobody_can_mean(gpt2, host, batch):
    assert str(batch) in refusal(pc.predict, gpt2, host, "", batch=batch)


def test_numbers_of_numpy_are_numbers(gpt2, host):
    assert pc.predict(gpt2, host, "", batch=np.int64(8)).global_batch == 8


@pytest.mark.parametrize(
    ("dtype", "answer"),
    [
        ("bf61", "Did you mean `bf16`?"),
        ("quick", "There are `bf16`, `fp16`, `fp32`, `tf32`, `fp8` and 4 more."),
        ("BF16", "Did you mean `bf16`?"),
    ],
)
def test_dtypes_that_are_none(gpt2, host, dtype, answer):
    assert answer in refusal(pc.predict, gpt2, host, "", dtype=dtype)


def test_axes_are_checked_where_they_are_said():
    node = pc.Strategy.parse("tp=2")["layers.*.mlp"]
    assert "Did you mean `tp`?" in refusal(node.split, tpp="ffn")
    assert "Did you mean `tp`?" in refusal(node.split, ffn="tpp")
    assert "`tp` is `5`; give text or a list of text." in refusal(node.split, tp=5)


def test_a_pipeline_changes_the_plan_and_keeps_the_nodes():
    tree = pc.Strategy.parse("tp=8,pp=2,vpp=2,mb=1,schedule=interleaved")
    tree["layers.*.mlp"].recompute("full")
    tree.pipeline("pp", stages=4, layout="20x4")
    assert tree.short_form == "tp=8,pp=4,mb=1,layout=20x4"
    assert "layers.*.mlp" in tree.to_dict()["nodes"]
    assert "`pp`" in refusal(tree.pipeline, "tp", stages=4)
    assert "`pp`: `0`" in refusal(tree.pipeline, stages=0)


def test_a_ranking_without_plans_still_has_columns(host, tmp_path):
    ranking = pc.rank(pc.Model.preset("gpt3-175b"), host, batch=8, space="tp=1,pp=1,mb=1")
    assert len(ranking) == 0
    assert "iteration_time_s" in ranking.to_frame().columns
    ranking.write(tmp_path / "plans.csv")
    assert (tmp_path / "plans.csv").read_text().startswith("rank,strategy,dp,tp,pp,")
