"""Varuna's AutoConfig: the replay of its choice, and what the executor makes of it."""

from __future__ import annotations

import math
from typing import Any

import plancast as pc
import pytest
from plancast.planners.auto_config import Configuration, configurations
from plancast.planners.stages import cut_points, nodes

POINTS, GPUS, BATCH = 24, 36, 1000
SIZES = (1, 2, 4, 8)

# A profile by micro-batch: seconds of a cut-point forward and back, bytes that it keeps.
FORWARD = {1: 0.0100, 2: 0.0160, 4: 0.0290, 8: 0.0560}
KEEPS = {1: 40, 2: 75, 4: 150, 8: 300}
STATE, ROOM = 100, 1000
SEND, ALL_REDUCE = 0.004, 0.3


def fits(depth: int, replicas: int, size: int) -> bool:
    held = POINTS // depth
    return held * STATE + held * KEEPS[size] / 4 <= ROOM


def seconds(depth: int, replicas: int, size: int, count: int) -> float:
    stage = POINTS // depth * FORWARD[size] * 4  # back is twice as long, and all runs again
    return (count + depth - 1) * stage + 2 * (depth - 1) * SEND + ALL_REDUCE * (replicas > 1)


def test_the_choice_is_that_of_enumerating_by_hand() -> None:
    by_hand = []
    for depth in (1, 2, 3, 4, 6, 8, 12, 24):
        replicas = {1: 36, 2: 18, 3: 12, 4: 9, 6: 6, 8: 4, 12: 3, 24: 1}[depth]
        share = {36: 27, 18: 55, 12: 83, 9: 111, 6: 166, 4: 250, 3: 333, 1: 1000}[replicas]
        largest = 0
        for size in SIZES:
            if POINTS // depth * (STATE + KEEPS[size] / 4) <= ROOM:
                largest = size
        if largest == 0:
            continue
        count = math.ceil(share / largest)
        time = seconds(depth, replicas, largest, count)
        by_hand.append(Configuration(depth, replicas, largest, count, time))
    found = configurations(POINTS, GPUS, BATCH, sizes=SIZES, fits=fits, simulate=seconds)
    assert found[0] == min(by_hand, key=lambda one: one.seconds)
    assert sorted(found, key=lambda one: one.depth) == by_hand
    # Shallow pipelines do not fit, so not all depths are there; of 1,000 samples some are more.
    assert [one.depth for one in by_hand] == [3, 4, 6, 8, 12, 24]
    assert found[0].micro_batches == math.ceil(BATCH // found[0].replicas / found[0].micro_batch)
    assert {one.depth: one.micro_batch for one in by_hand} == {3: 2, 4: 4, 6: 8, 8: 8, 12: 8, 24: 8}


MODEL = pc.Model.from_config(
    name="cuttable", layers=24, hidden=1024, heads=16, ffn=4096, vocab=32000, seq=512
)
# Nine hosts of four: 24 divides into depths that 36 GPUs do not fill.
MACHINE = pc.Machine.preset("dgx1-v100-16g:9x4")


def enumerated() -> list[tuple[float, int, int]]:
    """The same through the executor, with plans written out here."""
    out = []
    for depth in (1, 2, 3, 4, 6, 8, 12, 24):
        replicas = 36 // depth
        best = None
        for size in (2, 4):
            count = math.ceil(1152 // replicas / size)
            plan = f"mb={size},recompute=full" + (",schedule=varuna" if depth > 1 else "")
            tree: dict[str, Any] = {"plan": f"dp={replicas},pp={depth},{plan}"}
            if depth * replicas < 36:
                each = 24 // depth
                stages = [
                    {
                        "nodes": [f"layers[{s * each}:{(s + 1) * each}]"],
                        "mesh": {"dp": replicas},
                    }
                    for s in range(depth)
                ]
                stages[0]["nodes"] = ["embedding", *stages[0]["nodes"]]
                stages[-1]["nodes"] = [*stages[-1]["nodes"], "head"]
                tree = {"plan": plan, "stages": stages, "idle": f"gpus {depth * replicas}-35"}
            forecast = pc.predict(
                MODEL,
                MACHINE,
                pc.Strategy.from_dict(tree),
                batch=replicas * size * count,
                dtype="fp16",
            )
            if forecast.fits:
                best = forecast.iteration_time, depth, size
        if best is not None:
            out.append(best)
    return sorted(out)


def test_the_executor_is_asked_for_every_depth() -> None:
    plan = pc.auto_config(MODEL, MACHINE, batch=1152, sizes=[2, 4], dtype="fp16")
    by_hand = enumerated()
    tried = plan.details["tried"]
    assert [(one["seconds"], one["depth"], one["micro_batch"]) for one in tried] == by_hand
    assert plan.objective == by_hand[0][0] == plan.iteration_time
    deepest = next(one for one in tried if one["depth"] == 24)
    assert deepest["replicas"] == 1
    assert deepest["micro_batches"] == 288


def test_devices_that_no_stage_has_idle() -> None:
    """Order by Varuna's rule beside idle devices: times are measured of stages alone."""
    model = pc.Model.from_config(
        name="five", layers=5, hidden=2048, heads=16, ffn=8192, vocab=32000, seq=1024
    )
    machine = pc.Machine.preset("dgx1-v100-16g:1x6")
    plan = pc.auto_config(model, machine, batch=32, sizes=[1], recompute="none", dtype="fp16")
    depths = {one["depth"]: one["replicas"] for one in plan.details["tried"]}
    assert depths == {1: 6, 5: 1}
    only = pc.predict(
        model,
        machine,
        pc.Strategy.from_yaml(
            """
            plan: mb=1,schedule=varuna
            stages:
              - {nodes: [embedding, layers.0], mesh: {dp: 1}}
              - {nodes: "layers[1:5]", mesh: {dp: 1}}
              - {nodes: head, mesh: {dp: 1}}
            idle: gpus 3-5
            """
        ),
        batch=8,
        dtype="fp16",
    )
    assert only.iteration_time > 0


def test_units_of_models() -> None:
    units = cut_points(MODEL)
    assert len(units) == 24
    assert nodes(units[:12]) == ["embedding", "layers[0:12]"]
    assert nodes(units[12:]) == ["layers[12:24]", "head"]
    convolutions = cut_points(pc.Model.preset("vgg19"))
    assert len(convolutions) > 2
    assert nodes(convolutions[1:2]) == ["stage2"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"batch": 0}, "both are positive"),
        ({"batch": 64, "sizes": [0]}, "both are positive"),
        ({"batch": 64, "dtype": "fp61"}, "no dtype"),
        ({"batch": 64, "sizes": [1], "recompute": "some"}, "The last was refused"),
    ],
)
def test_errors_say_what_would_be_right(asked: dict, message: str) -> None:
    with pytest.raises(pc.InputError, match=message):
        pc.auto_config(MODEL, MACHINE, **asked)
