"""Units and devices shared out among pipeline stages, exactly (Alpa's inter-op pass, OSDI'22)."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plancast.errors import InputError


@dataclass(frozen=True)
class StageOption:
    """One way to run a stage: seconds of a micro-batch, forward and back, and bytes of a device.

    `kept` is alive for each micro-batch in flight, `held` always. `mesh` is the planner's own word.
    """

    seconds: float
    held: float = 0.0
    kept: float = 0.0
    mesh: tuple[int, ...] = ()


@dataclass(frozen=True)
class Stage:
    """Units [first, last) on devices [begin, begin + devices)."""

    first: int
    last: int
    begin: int
    devices: int
    option: StageOption


def total_time(stages: Sequence[Stage], micro_batches: int) -> float:
    """Sum of all stages' times and (micro-batches - 1) times the longest."""
    times = [stage.option.seconds for stage in stages]
    return math.fsum(times) + (micro_batches - 1) * max(times)


Options = Callable[[int, int, int, int], Sequence[StageOption]]


def cut_stages(
    units: int,
    devices: int,
    sizes: Sequence[int],
    options: Options,
    *,
    micro_batches: int,
    memory: float = math.inf,
    most_stages: int | None = None,
) -> list[Stage]:
    """Stages at least total time: T = sum t_i + (B - 1) max t_i, every device in one stage.

    For each bound on the longest stage a dynamic programme over (stages left, first unit, devices
    left) finds the least sum. A stage with n stages from it to the end keeps n micro-batches in
    flight, as in 1F1B (never more than B), and is left out where they are not within memory.

    Args:
      units: what stages share out, in order.
      devices: all of them.
      sizes: devices that a stage may have.
      options: ways to run (first, last, begin, devices); none where it cannot be.
      micro_batches: B.
      memory: bytes of a device.
      most_stages: no more stages than that.

    Raises:
      InputError: no cut is within memory.

    >>> halves = cut_stages(4, 4, [1, 2, 4],
    ...     lambda first, last, begin, size: [StageOption((last - first) / size)], micro_batches=8)
    >>> [(stage.first, stage.last, stage.devices) for stage in halves]
    [(0, 4, 4)]
    """
    most = min(units, devices, most_stages or units)
    table = _Table(units, devices, sizes, options, micro_batches, memory, most)
    bounds = table.bounds()
    free = table.cut(math.inf)
    least = math.inf if free is None else math.fsum(stage.option.seconds for stage in free)
    best: tuple[float, list[Stage]] | None = None
    # Below the first bound that allows a cut none does.
    begin = bisect.bisect_left(bounds, True, key=lambda bound: table.cut(bound) is not None)
    for bound in bounds[begin:]:
        if best is not None and least + (micro_batches - 1) * bound >= best[0]:
            break
        stages = table.cut(bound)
        if stages is None:
            continue
        time = total_time(stages, micro_batches)
        if best is None or time < best[0]:
            best = time, stages
    if best is None:
        raise InputError(
            f"no way to cut {units} units into stages on {devices} devices is within "
            f"{memory / 2**30:.3g} GiB. Take more devices, smaller micro-batches or recomputation."
        )
    return best[1]


Times = NDArray[np.float64]


def _fastest(found: Sequence[StageOption], flight: int, memory: float) -> StageOption | None:
    fit = [option for option in found if option.held + flight * option.kept <= memory]
    return min(fit, key=lambda option: option.seconds, default=None)


class _Table:
    """Times of all stages, by interval and devices: [stages from here to the end, devices left]."""

    def __init__(
        self,
        units: int,
        devices: int,
        sizes: Sequence[int],
        options: Options,
        micro_batches: int,
        memory: float,
        most: int,
    ) -> None:
        self.units, self.devices, self.most = units, devices, most
        self.times: dict[tuple[int, int, int], Times] = {}
        self.fastest: dict[tuple[int, int, int, int, int], StageOption] = {}
        self._of_interval: dict[tuple[int, int], list[int]] = {}
        # What is the same list for several places is looked through once.
        known: dict[int, tuple[Sequence[StageOption], list[StageOption | None]]] = {}
        for first in range(units):
            for last in range(first + 1, units + 1):
                for size in {size for size in sizes if size <= devices}:
                    times = np.full((most + 1, devices + 1), math.inf)
                    for left in range(size, devices + 1):
                        found = options(first, last, devices - left, size)
                        if id(found) not in known:
                            flights = [min(n, micro_batches) for n in range(most + 1)]
                            fastest = [_fastest(found, flight, memory) for flight in flights]
                            known[id(found)] = found, fastest
                        for stages, option in enumerate(known[id(found)][1]):
                            if option is not None and stages > 0:
                                times[stages, left] = option.seconds
                                self.fastest[first, last, size, stages, left] = option
                    if np.any(np.isfinite(times)):
                        self.times[first, last, size] = times
                        self._of_interval.setdefault((first, last), []).append(size)

    def bounds(self) -> list[float]:
        """All times that the longest stage may have, ascending."""
        known = [times[np.isfinite(times)] for times in self.times.values()]
        return [float(t) for t in np.unique(np.concatenate(known))] if known else []

    def cut(self, bound: float) -> list[Stage] | None:
        """The stages at least sum of times, none above the bound."""
        shape = (self.most + 1, self.units + 1, self.devices + 1)
        least = np.full(shape, math.inf)
        least[0, self.units, 0] = 0.0
        chosen: dict[int, tuple[NDArray[np.intp], list[tuple[int, int]]]] = {}
        for first in range(self.units - 1, -1, -1):
            ways = []
            sums = []
            for last in range(first + 1, self.units + 1):
                for size in self._sizes(first, last):
                    times = self.times[first, last, size]
                    total = np.full_like(times, math.inf)
                    total[1:, size:] = np.where(
                        times[1:, size:] <= bound, times[1:, size:], math.inf
                    ) + _shifted(least[:-1, last], size, self.devices)
                    ways.append((last, size))
                    sums.append(total)
            if not ways:
                continue
            stacked = np.stack(sums)
            chosen[first] = (np.argmin(stacked, axis=0), ways)
            least[:, first] = np.min(stacked, axis=0)
        ends = least[:, 0, self.devices]
        stages = int(np.argmin(ends))
        if not math.isfinite(ends[stages]):
            return None
        out: list[Stage] = []
        first, left = 0, self.devices
        while first < self.units:
            which, ways = chosen[first]
            last, size = ways[int(which[stages, left])]
            option = self.fastest[first, last, size, stages, left]
            out.append(Stage(first, last, self.devices - left, size, option))
            first, left, stages = last, left - size, stages - 1
        return out

    def _sizes(self, first: int, last: int) -> list[int]:
        return self._of_interval.get((first, last), [])


def _shifted(least: Times, size: int, devices: int) -> Times:
    """By devices left before a stage of `size`, from those left after it."""
    return least[:, : devices + 1 - size]
