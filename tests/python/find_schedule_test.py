"""Orders of passes found from their times: by `find_schedule`, and in plans."""

from __future__ import annotations

import random

import plancast as pc
import pytest
from plancast.errors import InputError


def steps(found: pc.FoundSchedule) -> list[list[str]]:
    return [row.split() for row in found.table.split(";")]


@pytest.mark.parametrize("stages", [2, 4, 8])
def test_equal_passes_have_the_bubble_of_the_zero_bubble_authors(stages):
    m, (f, b, w) = 3 * stages, (10, 12, 9)
    found = pc.find_schedule(
        stages=stages, micro_batches=m, forward=f, backward=b, weight=w, memory=stages
    )
    assert found.time <= m * (f + b + w) + (stages - 1) * (f + b - w)
    assert max(found.kept) <= stages
    # Put off nowhere, it is 1F1B.
    whole = pc.find_schedule(
        stages=stages, micro_batches=m, forward=f, backward=b + w, memory=stages
    )
    assert whole.time == (m + stages - 1) * (f + b + w)
    assert "W" not in whole.table


def test_tables_of_random_times_are_plans_schedules(small):
    dice = random.Random(20261124)
    for _ in range(4):
        times = {name: [dice.uniform(0.5, 3) for _ in range(2)] for name in ("forward", "backward")}
        found = pc.find_schedule(stages=2, micro_batches=5, **times, transfer=dice.random())
        assert all(len(row) == 10 for row in steps(found))
        machine = pc.Machine.preset("dgx-a100-80g", hosts=1, gpus_per_host=2)
        forecast = pc.predict(small, machine, f"pp=2,mb=1,schedule={found}", batch=5)
        assert forecast.iteration_time > 0


def test_a_single_number_is_one_for_each_stage_and_units_do_not_matter():
    once = pc.find_schedule(stages=3, micro_batches=7, forward=0.3, backward=0.7, transfer=0.1)
    listed = pc.find_schedule(
        stages=3, micro_batches=7, forward=[300.0] * 3, backward=[700.0] * 3, transfer=[100.0] * 3
    )
    assert once.table == listed.table
    assert once.time == pytest.approx(listed.time / 1000, rel=1e-6)


def test_chunks_run_in_a_pipeline_through_all_stages():
    found = pc.find_schedule(
        stages=2, chunks=2, micro_batches=4, forward=1, backward=1, weight=1, transfer=0
    )
    assert found.best_named in ("interleaved", "breadth-first")
    assert found.time <= 4 * 2 * 3 + 3


def test_layers_may_turn_back_or_be_there_twice():
    times = {"forward": 1, "backward": 1, "weight": 1, "micro_batches": 12}
    turning = pc.find_schedule(stages=4, chunks=2, placement="v", **times)
    assert turning.table.startswith("v: ")
    assert turning.time <= 12 * 2 * 3 + 3  # ZB-V's, from the first step of all
    twice = pc.find_schedule(stages=4, placement="both-ways", **times)
    assert twice.table.startswith("both-ways: ")
    assert twice.best_named in ("dualpipe", "chimera")


@pytest.mark.parametrize(
    ("said", "words"),
    [({"forward": [1.0]}, "`forward` has 1 entries; give one for each of the 2 virtual stages"),
     ({"forward": -1.0}, "`forward` has -1.0; give times from 0 on"),
     ({"backward": float("nan")}, "give times from 0 on"),
     ({"memory": 0}, "`memory` is `0`; give a whole number from 1"),
     ({"memory": [1]}, "`memory` has 1 entries"),
     ({"stages": 0}, "`stages` is `0`"),
     ({"micro_batches": 10**6}, "Take fewer micro-batches"),
     ({"placement": "w"}, "say one of loop, v, both-ways"),
     ({"placement": "v"}, "chunks=1 is odd"),
     ({"placement": "both-ways", "chunks": 2}, "one chunk of each copy"),
     ({"forward": "long"}, "`forward`")],
)  # fmt: skip
def test_numbers_that_mean_nothing_are_refused_in_words(said, words):
    given = {"stages": 2, "micro_batches": 4, "forward": 1.0, "backward": 2.0, **said}
    with pytest.raises(InputError) as refused:
        pc.find_schedule(**given)
    assert words in str(refused.value)


@pytest.mark.parametrize("schedule", ["search", "search:1.5", "varuna"])
def test_a_plans_order_is_found_and_said(small, schedule):
    machine = pc.Machine.preset("dgx-a100-80g", hosts=1, gpus_per_host=4)
    plan = f"pp=4,mb=1,schedule={schedule}"
    forecast = pc.predict(small, machine, plan, batch=12, profile="torchtitan")
    usual = pc.predict(small, machine, "pp=4,mb=1", batch=12, profile="torchtitan")
    assert any(note.startswith("order ") for note in forecast.notes)
    if schedule != "varuna":
        assert forecast.iteration_time <= usual.iteration_time * 1.005
    [fit] = pc.fits(small, machine, plan, batch=12, profile="torchtitan")
    assert fit.fits == forecast.fits
