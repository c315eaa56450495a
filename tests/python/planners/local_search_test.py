"""Local search over trees: never worse than its start, and better than data parallelism."""

from __future__ import annotations

import random

import plancast as pc
import pytest
from nets import stack
from plancast.planners.moves import Moves

FOUR = pc.Machine.preset("dgx-a100-80g:1x4")


@pytest.mark.parametrize(("name", "batch"), [("alexnet", 256), ("vgg19", 128)])
def test_convolutional_nets_do_better_than_data_parallelism(name: str, batch: int) -> None:
    model = pc.Model.preset(name)
    pure = pc.predict(model, FOUR, f"dp=4,mb={batch // 4}", batch=batch, profile="nvidia-pytorch")
    grid = pc.best_of_grid(model, FOUR, batch=batch, profile="nvidia-pytorch")
    found = pc.local_search(model, FOUR, batch=batch, profile="nvidia-pytorch", forecasts=200)
    assert found.details["start"] == str(grid.strategy)
    assert found.iteration_time <= grid.iteration_time
    assert found.iteration_time < 0.95 * pure.iteration_time
    assert found.forecast is not None and found.forecast.fits
    # The head's weights are many and its activations few: it is cut, and the rest is not.
    assert any(path.startswith("head") for path in found.strategy.to_dict()["nodes"])


def test_branches_of_inception_do_better_than_data_parallelism() -> None:
    model = pc.Model.preset("inception-v3")
    asked = {"batch": 256, "profile": "nvidia-pytorch"}
    pure = pc.predict(model, FOUR, "dp=4,mb=64", **asked)
    found = pc.local_search(model, FOUR, start="dp=4,mb=64", forecasts=60, **asked)
    assert found.iteration_time < pure.iteration_time
    assert pc.Strategy.from_yaml(str(found)) == found.strategy


def test_wide_and_deep_cuts_its_large_tables_by_columns() -> None:
    model, host = pc.Model.preset("wide-and-deep"), pc.Machine.preset("dgx-a100-80g", hosts=1)
    asked = {"batch": 131072, "profile": "nvidia-pytorch"}
    pure = pc.predict(model, host, "dp=8,mb=16384", **asked)
    planned = pc.plan_intra_op(model, host, mesh=[8], **asked)
    assert planned.iteration_time < 0.6 * pure.iteration_time
    nodes = planned.strategy.to_dict()["nodes"]
    assert nodes["deep"] == {"split": {"dp": ["batch"]}}
    assert nodes["embedding.table0"] == {"split": {"dp": ["embedding128"]}}
    found = pc.local_search(model, host, start=planned.strategy, forecasts=40, **asked)
    assert found.iteration_time <= planned.iteration_time
    assert pc.Strategy.from_yaml(str(found)) == found.strategy


def test_a_recommender_whose_tables_do_not_fit_on_one_device() -> None:
    model, host = pc.Model.preset("dlrm"), pc.Machine.preset("dgx-a100-80g", hosts=1)
    asked = {"batch": 65536, "profile": "ddp"}
    assert not pc.predict(model, host, "dp=8,mb=8192", **asked).fits
    with pytest.raises(pc.InputError, match="start from a plan that fits"):
        pc.local_search(model, host, start="dp=8,mb=8192", **asked)
    planned = pc.plan_intra_op(model, host, mesh=[8], **asked)
    assert planned.forecast is not None and planned.forecast.fits
    found = pc.local_search(model, host, start=planned.strategy, forecasts=40, **asked)
    assert found.iteration_time <= planned.iteration_time


def test_a_recommender_whose_tables_fit_in_shards_is_faster_with_tables_cut() -> None:
    # With gradients of whole tables, which `zero` shards.
    model, host = pc.Model.preset("dlrm", sparse=False), pc.Machine.preset("dgx-b200", hosts=1)
    asked = {"batch": 65536, "profile": "ddp"}
    pure = pc.predict(model, host, "dp=8,zero=3,mb=8192", **asked)
    planned = pc.plan_intra_op(model, host, mesh=[8], **asked)
    assert pure.fits and planned.forecast is not None and planned.forecast.fits
    assert planned.iteration_time < 0.5 * pure.iteration_time


def test_what_the_session_remembers_changes_no_digit() -> None:
    model = pc.Model.from_config(
        name="small", layers=4, hidden=1024, heads=16, ffn=4096, vocab=32000, seq=512
    )
    found = pc.local_search(model, FOUR, batch=16, start="dp=2,tp=2,mb=2", forecasts=60, seed=3)
    again = pc.predict(model, FOUR, found.strategy, batch=16)
    assert found.iteration_time == again.iteration_time
    same = pc.local_search(model, FOUR, batch=16, start="dp=2,tp=2,mb=2", forecasts=60, seed=3)
    assert same.strategy == found.strategy


def test_on_a_thousand_moves_a_shared_session_changes_no_digit() -> None:
    """What is re-used of earlier trees gives what a simulation from nothing gives."""
    model = stack(3)
    moves, shared = Moves(model, random.Random(1000)), pc.Session()
    tree: dict = {"plan": "dp=2,tp=2,mb=2"}
    legal = 0
    for number in range(1000):
        changed = moves.change(tree)
        try:
            strategy = pc.Strategy.from_dict(changed)
            warm = pc.predict(model, FOUR, strategy, batch=16, session=shared)
        except pc.InputError:
            continue
        cold = pc.predict(model, FOUR, strategy, batch=16)
        assert warm.iteration_time == cold.iteration_time, number
        assert warm.peak_memory == cold.peak_memory, number
        legal += 1
        # A walk without an aim, from the beginning now and then.
        tree = {"plan": "dp=2,tp=2,mb=2"} if number % 20 == 19 else changed
    assert legal > 500


def test_a_change_is_of_one_thing() -> None:
    rng = random.Random(11)
    moves = Moves(pc.Model.preset("vgg19"), rng)
    tree = {"plan": "dp=2,tp=2,mb=4", "nodes": {"head": {"split": {"tp": ["hidden1"]}}}}
    for _ in range(200):
        changed = moves.change(tree)
        differing = [key for key in ("plan", "nodes") if changed[key] != tree[key]]
        assert len(differing) <= 1
        nodes = {**tree["nodes"], **changed["nodes"]}
        assert sum(changed["nodes"].get(p) != tree["nodes"].get(p) for p in nodes) <= 1
    assert tree == {"plan": "dp=2,tp=2,mb=4", "nodes": {"head": {"split": {"tp": ["hidden1"]}}}}


def test_errors_say_what_would_be_right() -> None:
    with pytest.raises(pc.InputError, match="at least one tree"):
        pc.local_search(pc.Model.preset("alexnet"), FOUR, batch=64, forecasts=0)
