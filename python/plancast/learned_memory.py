"""What runs tell of memory: by how much devices hold more than forecast, software by software.

What a run printed, or that it ran out of memory, or that it did not, hangs on one figure of its
software: what its allocator and its libraries hold beyond the forecast, a share of a device's
memory. A run that ran out of memory says that it is at least what was left, a run that did not
that it is at most that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from plancast.arguments import shipped_profile

if TYPE_CHECKING:
    from plancast.forecast import Forecast

# Shares of a device's memory: how far forecasts of a software are off, and one run of it against
# the others; the mean error of what 55 public runs printed is 2.4 % (docs/accuracy.md).
_SOFTWARE, _RUN = 0.03, 0.02
_POINTS = 2001
# Student's t with four degrees of freedom, as for times.
_FREEDOM = 4.0
FIGURE, RAN_OUT, RAN = "figure", "ran out", "ran"
_KINDS = (FIGURE, RAN_OUT, RAN)


@dataclass(frozen=True)
class MemoryEvidence:
    """One run; what its fullest device held beyond the forecast: exactly, at least or at most.

    `beyond` is a share of `capacity`, bytes.
    """

    run: str
    gpu: str
    software: str  # its profile
    kind: str
    beyond: float
    capacity: float

    @classmethod
    def of(
        cls, run: str, gpu: str, forecast: Forecast, measured: float | None, of: float | None = None
    ) -> MemoryEvidence:
        """What a run held, bytes; None: it ran out of memory.

        `of`: what is forecast of the same meaning (allocated, reserved); else of all of a device.
        """
        capacity = forecast.memory_capacity
        software = shipped_profile(forecast.profile)
        before = forecast.peak_memory - forecast.learned_memory
        if measured is None:
            return cls(run, gpu, software, RAN_OUT, 1 - before / capacity, capacity)
        beyond = (measured - (before if of is None else of)) / capacity
        return cls(run, gpu, software, FIGURE, beyond, capacity)

    @classmethod
    def of_fitting(cls, run: str, gpu: str, forecast: Forecast) -> MemoryEvidence:
        """A run that did not run out of memory, and says no more."""
        capacity = forecast.memory_capacity
        room = 1 - (forecast.peak_memory - forecast.learned_memory) / capacity
        return cls(run, gpu, shipped_profile(forecast.profile), RAN, room, capacity)

    def to_dict(self) -> dict[str, Any]:
        """Its part of a file."""
        return dict(vars(self))

    @classmethod
    def parse(cls, entry: Mapping[str, Any]) -> MemoryEvidence:
        """What `to_dict` made. Raises ValueError, KeyError or TypeError for anything else."""
        run, gpu, software, kind = (str(entry[key]) for key in ("run", "gpu", "software", "kind"))
        beyond, capacity = float(entry["beyond"]), float(entry["capacity"])
        if kind not in _KINDS or not 0 < capacity < 1e15 or not abs(beyond) < 1e3:
            raise ValueError(f"run {run} has figures that are none of memory")
        return cls(run, gpu, software, kind, beyond, capacity)


@dataclass(frozen=True)
class MemoryFact:
    """What devices hold beyond the forecast under a software, and how sure that is.

    Shares of a device's memory, which is `capacity` bytes (the largest that runs were on).
    """

    software: str
    runs: int
    beyond: float
    before: float
    after: float
    capacity: float


def memory_facts(evidence: Iterable[MemoryEvidence]) -> list[MemoryFact]:
    """By software, in the order of names."""
    runs: dict[str, list[MemoryEvidence]] = {}
    for each in evidence:
        runs.setdefault(each.software, []).append(each)
    return [_fact(software, runs[software]) for software in sorted(runs)]


def _fact(software: str, runs: Sequence[MemoryEvidence]) -> MemoryFact:
    """The posterior's mean and scale; its density is summed over a grid."""
    reach = 8 * _SOFTWARE + min(max(abs(run.beyond) for run in runs), 1.0)
    x = np.linspace(-reach, reach, _POINTS)
    log = -0.5 * (x / _SOFTWARE) ** 2
    for run in runs:
        t = (x - run.beyond) / _RUN
        if run.kind == FIGURE:
            log = log - (_FREEDOM + 1) / 2 * np.log1p(t**2 / _FREEDOM)
        else:
            log = log + np.log(_below(t if run.kind == RAN_OUT else -t))
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    mean = float(weights @ x)
    scale = math.sqrt(float(weights @ (x - mean) ** 2))
    capacity = max(run.capacity for run in runs)
    return MemoryFact(software, len(runs), mean, _SOFTWARE, scale, capacity)


def _below(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """The distribution function of Student's t with four degrees of freedom."""
    square = t**2 / (1 + t**2 / 4)
    whole = 0.5 + 0.375 * np.sign(t) * np.sqrt(square) * (1 - square / 12)
    return np.asarray(np.maximum(whole, 1e-12), dtype=np.float64)
