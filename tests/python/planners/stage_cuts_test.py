"""Units and devices shared out among stages: the dynamic programme against trying everything."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Iterator

import plancast as pc
import pytest
from plancast.planners.stage_cuts import Stage, StageOption, cut_stages, total_time

SEED = 39


def every_cut(
    units: int, devices: int, sizes: list[int], first: int = 0, begin: int = 0
) -> Iterator[list[tuple[int, int, int, int]]]:
    """All lists of (first, last, begin, devices) that hold all units and use all devices."""
    if first == units:
        if begin == devices:
            yield []
        return
    for last in range(first + 1, units + 1):
        for size in sizes:
            if begin + size <= devices:
                for rest in every_cut(units, devices, sizes, last, begin + size):
                    yield [(first, last, begin, size), *rest]


def best_of_all(
    units: int, devices: int, sizes: list[int], options: dict, batches: int, memory: float
) -> float:
    best = math.inf
    for cut in every_cut(units, devices, sizes):
        times = []
        for number, place in enumerate(cut):
            flight = min(len(cut) - number, batches)
            fit = [o.seconds for o in options[place] if o.held + flight * o.kept <= memory]
            if not fit:
                break
            times.append(min(fit))
        else:
            best = min(best, sum(times) + (batches - 1) * max(times))
    return best


def find_stages(
    units: int, devices: int, sizes: list[int], options: dict, batches: int, memory: float
) -> list[Stage]:
    return cut_stages(
        units,
        devices,
        sizes,
        lambda *place: options[place],
        micro_batches=batches,
        memory=memory,
    )


def test_of_five_hundred_instances_the_best_is_found_and_fits() -> None:
    rng = random.Random(SEED)
    unfit = bound = 0
    for number in range(540):
        units, devices = rng.randint(1, 6), rng.randint(1, 8)
        sizes = rng.choice([[1, 2, 4, 8], [1, 2, 3], [2, 4], [1, 8]])
        batches = rng.choice([1, 2, 4, 16])
        memory = rng.uniform(3, 20)
        # Ways to run differ by place, as on hosts of unlike devices.
        options = {
            (first, last, begin, size): [
                StageOption(
                    (last - first) * rng.uniform(0.5, 1.5) / size,
                    (last - first) * rng.uniform(1, 8) / size,
                    (last - first) * rng.uniform(0.2, 2) / size,
                )
                for _ in range(rng.randint(0, 3))
            ]
            for first in range(units)
            for last in range(first + 1, units + 1)
            for size in sizes
            for begin in range(devices + 1 - size)
        }
        best = best_of_all(units, devices, sizes, options, batches, memory)

        find = functools.partial(find_stages, units, devices, sizes, options, batches)
        if math.isinf(best):
            unfit += 1
            with pytest.raises(pc.InputError, match="no way to cut"):
                find(memory)
            continue
        stages = find(memory)
        assert total_time(stages, batches) == pytest.approx(best), (SEED, number)
        for place, stage in enumerate(stages):
            flight = min(len(stages) - place, batches)
            assert stage.option.held + flight * stage.option.kept <= memory
        assert sum(stage.devices for stage in stages) == devices
        bound += total_time(find(math.inf), batches) < best * (1 - 1e-9)
    assert unfit > 50
    assert bound > 20


def test_many_micro_batches_want_equal_stages_and_few_one_stage() -> None:
    def options(first: int, last: int, begin: int, size: int) -> list[StageOption]:
        return [StageOption((last - first) / size**0.5)]  # larger meshes are less efficient

    def stages(batches: int) -> int:
        return len(cut_stages(8, 8, [1, 2, 4, 8], options, micro_batches=batches))

    assert stages(1) == 1
    assert stages(1000) == 8


def test_a_slow_device_gets_fewer_units() -> None:
    def options(first: int, last: int, begin: int, size: int) -> list[StageOption]:
        return [StageOption((last - first) * (1.0 if begin == 0 else 0.5))]

    stages = cut_stages(9, 3, [1], options, micro_batches=100)
    assert [stage.last - stage.first for stage in stages] == [1, 4, 4] or [
        stage.last - stage.first for stage in stages
    ] == [2, 4, 3]
    assert max(stage.option.seconds for stage in stages) == 2.0
