"""A forecast's tasks as columns, and what pages read off them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from plancast.forecast import Forecast
from plancast.parts import PARTS
from plancast.question import PlanQuestion

if TYPE_CHECKING:
    from numpy.typing import NDArray

# More tasks than this take longer to read than a page is worth.
MOST_TASKS = 1_500_000
_AT_ONCE = 1 << 16
COMPUTE = "compute"
# Of what a device does at a moment the first counts; the compute stream comes before all others.
_KERNELS = ("forward", "backward", "recompute", "optimizer")
_KERNEL_PARTS = {"forward": "compute", "backward": "compute"}
WAITING = "waiting"


@dataclass(frozen=True)
class Lane:
    """Tasks of the representative of one device class, in the order in which they start.

    `code` is an index into `kinds`: stream, purpose and name.
    """

    device_class: str
    ranks: int
    kinds: list[tuple[str, str, str]]
    code: NDArray[np.int64]
    layer: NDArray[np.int64]
    micro_batch: NDArray[np.int64]
    chunk: NDArray[np.int64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]

    def are(self, streams: bool | None, *purposes: str) -> NDArray[np.bool_]:
        """Which tasks are of the compute stream or (False) of others, and of these purposes."""
        told = [
            (streams is None or (kind[0] == COMPUTE) == streams)
            and (not purposes or kind[1] in purposes)
            for kind in self.kinds
        ]
        return np.array(told, dtype=bool)[self.code]

    def beside(self) -> list[str]:
        """Purposes of what is on other streams, most important first."""
        used = {self.kinds[at] for at in np.unique(self.code).tolist()}
        return sorted({kind[1] for kind in used if kind[0] != COMPUTE}, key=_priority)


def with_timeline(forecast: Forecast) -> Forecast | None:
    """The forecast with every task; None where it has too many, or cannot be made again."""
    if forecast._core.has_timeline:
        return forecast if forecast._core.slice_count <= MOST_TASKS else None
    question = forecast._question
    if not isinstance(question, PlanQuestion) or task_count(forecast) > MOST_TASKS:
        return None
    asked = replace(question, timeline=True, randomness=None)
    return Forecast(asked.answer(), forecast._asked, forecast._tree, asked, forecast.what_if)


def task_count(forecast: Forecast) -> int:
    """About how many tasks a timeline has."""
    counters = forecast._core.counters
    return counters["tasks"] * counters["device_classes"] // max(1, forecast.devices)


def lanes(forecast: Forecast) -> list[Lane]:
    """The tasks of a forecast with a timeline, class by class."""
    core = forecast._core
    ranks = {entry.device_class: entry.ranks for entry in forecast.memory}
    classes: dict[str, int] = {name: at for at, name in enumerate(ranks)}
    kinds: dict[tuple[str, str, str], int] = {}
    whose, codes, numbers, times = [], [], [], []
    for begin in range(0, core.slice_count, _AT_ONCE):
        columns = list(zip(*core.slices(begin, begin + _AT_ONCE), strict=True))
        whose.append(np.array([classes.setdefault(name, len(classes)) for name in columns[0]]))
        same = zip(*columns[1:4], strict=True)
        codes.append(np.array([kinds.setdefault(kind, len(kinds)) for kind in same]))
        numbers.append(np.array(columns[4:7], dtype=np.int64))
        times.append(np.array(columns[7:9], dtype=np.float64))
    if not whose:
        return []
    of, code = np.concatenate(whose), np.concatenate(codes)
    number, time = np.concatenate(numbers, axis=1), np.concatenate(times, axis=1)
    found = []
    for name, at in classes.items():
        mine = np.flatnonzero(of == at)
        mine = mine[np.argsort(time[0, mine], kind="stable")]
        if len(mine):
            fields = [code[mine], *number[:, mine], *time[:, mine]]
            found.append(Lane(name, ranks.get(name, 1), list(kinds), *fields))
    return found


def end_of(found: Sequence[Lane]) -> float:
    """When the last task ends."""
    return max((float(lane.end.max()) for lane in found), default=0.0)


def stage_parts(lane: Lane, end: float) -> dict[str, float]:
    """Seconds of a device by what it does; they sum to `end`.

    Kernels first; what no kernel covers is the communication that runs then, else waiting.

    >>> lane = Lane("a", 1, [("compute", "forward", "f"), ("c", "tp", "r")], np.array([0, 1]),
    ...     *[np.zeros(2, np.int64)] * 3, np.array([0.0, 0.5]), np.array([1.0, 1.5]))
    >>> stage_parts(lane, 2.0)
    {'compute': 1.0, 'exposed_tp': 0.5, 'waiting': 0.5}
    """
    groups = [(_KERNEL_PARTS.get(one, one), lane.are(True, one)) for one in _KERNELS]
    groups.append(("other", lane.are(True)))
    for purpose in lane.beside():
        part = f"exposed_{purpose}"
        groups.append((part if part in PARTS else "other", lane.are(False, purpose)))
    edges = np.unique(np.concatenate([[0.0, end], lane.start, lane.end]))
    edges = edges[(edges >= 0) & (edges <= end)]
    width = np.diff(edges)
    free = np.ones(len(width), dtype=bool)
    parts: dict[str, float] = {}
    for part, mask in groups:
        active = free & _covered(lane.start[mask], lane.end[mask], edges)
        seconds = float(width[active].sum())
        if seconds > 0:
            parts[part] = parts.get(part, 0.0) + seconds
        free &= ~active
    parts[WAITING] = float(width[free].sum())
    return parts


def _priority(purpose: str) -> int:
    part = f"exposed_{purpose}"
    return PARTS.index(part) if part in PARTS else len(PARTS)


def _covered(
    start: NDArray[np.float64], end: NDArray[np.float64], edges: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Between which neighbouring edges one of the tasks runs."""
    begun = np.searchsorted(np.sort(start), edges[:-1], side="right")
    ended = np.searchsorted(np.sort(end), edges[:-1], side="right")
    return np.asarray(begun > ended)


@dataclass(frozen=True)
class Run:
    """Tasks in a row of one pass of a micro-batch, or of one kind of communication."""

    lane: int
    kind: str
    micro_batch: int
    chunk: int
    start: float
    end: float


def passes(found: Sequence[Lane]) -> list[Run]:
    """The pipeline's passes: F, B (with its recomputation), W and the optimizer's step.

    W is a run of nothing but gradients of weights, as schedules with split backward passes have.
    """
    runs: list[Run] = []
    longest = end_of(found) * 1e-3
    for at, lane in enumerate(found):
        on_compute = lane.are(True)
        if not on_compute.any():
            continue
        letters = np.array([_letter(kind) for kind in lane.kinds])[lane.code][on_compute]
        batch, chunk = lane.micro_batch[on_compute], lane.chunk[on_compute]
        start, end = lane.start[on_compute], lane.end[on_compute]
        # W and B of one micro-batch are one run where they alternate.
        whole = np.where(letters == "W", "B", letters)
        # The optimizer's step waits for gradients and parameters in between.
        apart = np.concatenate([[0], np.cumsum(start[1:] - end[:-1] > longest)])
        apart[letters != "optimizer"] = 0
        for begin, stop in _runs(whole, batch, chunk, apart):
            inside = letters[begin:stop]
            runs += [
                Run(
                    at,
                    str(letter),
                    int(batch[begin]),
                    int(chunk[begin]),
                    float(start[begin + a]),
                    float(end[begin + b - 1]),
                )
                for letter, a, b in _split_backward(inside)
            ]
    return runs


def _letter(kind: tuple[str, str, str]) -> str:
    _, purpose, name = kind
    if purpose == "forward":
        return "F"
    if purpose in ("backward", "recompute"):
        return "W" if name.endswith((".wgrad", ".accumulate")) else "B"
    return "optimizer"


def _split_backward(inside: NDArray[Any]) -> Iterator[tuple[str, int, int]]:
    """One run; B and then W where the gradients of weights all come last."""
    weights = inside == "W"
    first = int(np.argmax(weights)) if weights.any() else len(inside)
    if first > 0 and bool(weights[first:].all()):
        yield str(inside[0]), 0, first
        if first < len(inside):
            yield "W", first, len(inside)
    else:
        yield "W" if bool(weights.all()) else "B", 0, len(inside)


def _runs(*columns: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Ranges in which all columns stay the same."""
    length = len(columns[0])
    changed = np.zeros(max(0, length - 1), dtype=bool)
    for column in columns:
        changed |= column[1:] != column[:-1]
    edges = [0, *(np.flatnonzero(changed) + 1).tolist(), length]
    yield from pairwise(edges)


def communications(found: Sequence[Lane], most: int = 6_000) -> list[Run]:
    """What other streams carry, neighbours joined until there are at most `most`."""
    gap = end_of(found) * 1e-4
    while True:
        runs = [run for at, lane in enumerate(found) for run in _joined(at, lane, gap)]
        if len(runs) <= most:
            return runs
        gap *= 4


def _joined(at: int, lane: Lane, gap: float) -> Iterator[Run]:
    for purpose in lane.beside():
        mask = lane.are(False, purpose)
        start, end = lane.start[mask], np.maximum.accumulate(lane.end[mask])
        apart = np.flatnonzero(start[1:] - end[:-1] > gap) + 1
        first, last = [0, *apart.tolist()], [*apart.tolist(), len(start)]
        for a, b in zip(first, last, strict=True):
            yield Run(at, purpose, -1, -1, float(start[a]), float(end[b - 1]))
