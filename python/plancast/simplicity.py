"""Which of two plans is simpler: fewer mechanisms that have to work together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from math import prod
from typing import Protocol, TypeVar

_AXES = ("tp", "pp", "cp", "ep")
_RECOMPUTE = {"none": 0, "selective": 1, "full": 3}
_SOME = 2  # of the layers or ops again


class Timed(Protocol):
    """What has a plan and a time. A `Forecast` also has `chosen`: all that the plan leaves open."""

    @property
    def strategy(self) -> str:
        """The short form."""

    @property
    def iteration_time(self) -> float:
        """Seconds."""


_Plan = TypeVar("_Plan", bound=Timed)


def complexity(plan: Timed) -> tuple[int, ...]:
    """How far from simple a plan is, the most intricate first, to be compared from left to right.

    Host memory; kinds of parallelism beside dp; their degrees multiplied; chunks of a stage; stage
    of ZeRO; copies of shards; recomputation; words of the short form; micro-batches
    (docs/explain.md).

    >>> from types import SimpleNamespace
    >>> plans = [SimpleNamespace(strategy=text) for text in (
    ...     "dp=8,zero=3,hsdp=8,mb=1", "dp=4,tp=2,zero=1,mb=1", "dp=8,zero=1,mb=1")]
    >>> [plan.strategy for plan in sorted(plans, key=complexity)]
    ['dp=8,zero=1,mb=1', 'dp=8,zero=3,hsdp=8,mb=1', 'dp=4,tp=2,zero=1,mb=1']
    """
    words = [item for item in plan.strategy.split(",") if item]
    said = dict(item.partition("=")[::2] for item in words)
    known: Mapping[str, str] = said | getattr(plan, "chosen", {})
    degrees = [_whole(known.get(axis)) for axis in _AXES]
    recompute = known.get("recompute", "none").partition(":")[0]
    return (
        int(known.get("offload", "none") not in ("none", "0", "")),
        sum(degree > 1 for degree in degrees),
        prod(degrees),
        _whole(known.get("vpp")),
        _whole(known.get("zero"), 0),
        int("hsdp" in said),
        _RECOMPUTE.get(recompute, _SOME),
        len(words),
        _whole(known.get("accum")),
    )


def simplest_of_ties(plans: Iterable[_Plan]) -> list[_Plan]:
    """The plans in their order, but neighbours that take exactly as long the simplest first."""
    ordered: list[_Plan] = []
    for _, tied in groupby(plans, key=lambda plan: plan.iteration_time):
        group = list(tied)
        ordered += sorted(group, key=complexity) if len(group) > 1 else group
    return ordered


def _whole(text: str | None, absent: int = 1) -> int:
    return int(text) if text is not None and text.isdecimal() else absent
