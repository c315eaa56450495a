"""What layers keep within a bound on memory: sums against all counts, plans against all mixes."""

from __future__ import annotations

import itertools
import random

import plancast as pc
import pytest
from plancast.planners.layer_options import Option, cheapest
from plancast.planners.memory_budget import _between, _slices

HOST = pc.Machine.preset("dgx-h100", hosts=1)
SMALL = {
    "name": "small", "layers": 6, "hidden": 2048, "heads": 16, "ffn": 8192, "vocab": 8000,
    "seq": 2048,
}  # fmt: skip
START = "dp=4,pp=2,zero=1,mb=4"


def counts_of(layers: int, options: int) -> list[tuple[int, ...]]:
    every = itertools.product(range(layers + 1), repeat=options)
    return [counts for counts in every if sum(counts) == layers]


def test_of_five_hundred_stages_the_cheapest_counts_are_found() -> None:
    rng = random.Random(23)
    none = 0
    for _ in range(500):
        options = [
            Option(str(n), rng.choice([0, rng.randrange(20)]), rng.randrange(12))
            for n in range(rng.randrange(1, 5))
        ]
        layers, room = rng.randrange(7), rng.randrange(60)
        fitting = [
            sum(n * option.seconds for n, option in zip(counts, options, strict=True))
            for counts in counts_of(layers, len(options))
            if sum(n * option.bytes for n, option in zip(counts, options, strict=True)) <= room
        ]
        found = cheapest(layers, options, room)
        if found is None:
            assert not fitting
            none += 1
            continue
        seconds, counts = found
        assert seconds == min(fitting)
        assert sum(counts) == layers
        assert seconds == sum(n * o.seconds for n, o in zip(counts, options, strict=True))
        assert sum(n * o.bytes for n, o in zip(counts, options, strict=True)) <= room
    assert 20 < none < 300


def test_a_deep_stage_of_many_ways_ends() -> None:
    rng = random.Random(1)
    ways = sorted(rng.uniform(0, 10) for _ in range(30))
    options = [Option(str(n), way, 10 / (1 + way)) for n, way in enumerate(ways)]
    found = cheapest(64, options, 64 * 4.0)
    assert found is not None and sum(found[1]) == 64


@pytest.mark.parametrize("gib", [9, 11, 14])
def test_no_mix_of_sets_is_faster_within_the_bound(gib: float) -> None:
    """Every count of four ways on either stage, by the executor."""
    model, session = pc.Model.from_config(**SMALL), pc.Session()
    found = pc.plan_memory(model, HOST, batch=64, start=START, memory=gib, session=session)
    assert found.forecast is not None and found.forecast.peak_memory <= gib * 2**30
    ways = ["none", "selective:layernorm", "selective:mlp", "full"]
    fastest = float("inf")
    for stages in itertools.product(counts_of(3, len(ways)), repeat=2):
        nodes = {}
        for stage, counts in enumerate(stages):
            at = 3 * stage
            for way, count in reversed(list(zip(ways, counts, strict=True))):
                if count and way != "none":
                    nodes[f"layers[{at}:{at + count}]"] = {"recompute": way}
                at += count
        tree = pc.Strategy.from_dict({"plan": f"{START},recompute=none", "nodes": nodes})
        made = pc.predict(model, HOST, tree, batch=64, session=session, memory_first=True)
        if made.fits and made.peak_memory <= gib * 2**30:
            fastest = min(fastest, made.iteration_time)
    assert found.iteration_time <= fastest * (1 + 1e-9)


def test_less_memory_takes_no_less_time_and_layers_stay_what_they_were() -> None:
    model = pc.Model.preset("llama3-8b")
    session, before = pc.Session(), 0.0
    for gib in (70, 55, 45, 36):
        plan = pc.plan_memory(
            model, HOST, batch=64, start="dp=2,tp=2,sp,pp=2,zero=1,mb=2", memory=gib,
            session=session,
        )  # fmt: skip
        assert plan.forecast is not None and plan.forecast.peak_memory <= gib * 2**30
        assert before <= plan.iteration_time
        before = plan.iteration_time
        assert [sum(stage.values()) for stage in plan.details["stages"]] == [16, 16]
        again = pc.predict(model, HOST, plan.strategy, batch=64)
        assert again.iteration_time == plan.iteration_time


def test_a_mix_beats_what_all_layers_do_alike() -> None:
    model, start = pc.Model.preset("llama3-8b"), "dp=2,tp=2,sp,pp=2,zero=1,mb=2"
    bound = 50
    plan = pc.plan_memory(model, HOST, batch=64, start=start, memory=bound)
    alike = []
    for words in ("none", "selective", "selective:layernorm", "selective:mlp", "full"):
        made = pc.predict(model, HOST, f"{start},recompute={words}", batch=64)
        if made.peak_memory <= bound * 2**30:
            alike.append(made.iteration_time)
    assert plan.iteration_time < min(alike)


def test_without_a_start_the_best_of_the_grid_are_refined() -> None:
    model, session = pc.Model.from_config(**SMALL), pc.Session()
    grid = pc.best_of_grid(model, HOST, batch=64, session=session)
    plan = pc.plan_memory(model, HOST, batch=64, session=session)
    assert plan.iteration_time <= grid.iteration_time


def test_values_between_and_slices() -> None:
    assert _between({0: 0.0, 1: 0.0, 2: 4.0}, 4) == [0, 0, 4, 8, 12]
    assert _slices([0, 1, 2, 5, 7, 8]) == "0:3,5,7:9"
    assert _slices([4]) == "4"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"start": "pp=2,recompute=full"}, "`recompute` is what method memory chooses"),
        ({"start": START, "memory": 1}, "keeps to 1 GiB"),
        ({"start": START, "memory": 0}, "a bound of 0 GiB"),
        ({"start": "tp=3"}, "tp=3"),
    ],
)
def test_errors_say_what_would_be_right(asked: dict, message: str) -> None:
    with pytest.raises(pc.InputError, match=message):
        pc.plan_memory(pc.Model.from_config(**SMALL), HOST, batch=64, **asked)


def test_models_without_one_list_of_layers_are_refused() -> None:
    with pytest.raises(pc.InputError, match="lists of layers"):
        pc.plan_memory(pc.Model.preset("alexnet"), HOST, batch=64, start="dp=8,mb=8")
