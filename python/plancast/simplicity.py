"""Which of two plans is simpler: fewer mechanisms that have to work together."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Protocol, TypeVar

_AXES = ("tp", "pp", "cp", "ep")
_RECOMPUTE = {"": 0, "none": 0, "selective": 1, "full": 2}


class Timed(Protocol):
    """What has a plan and a time."""

    @property
    def strategy(self) -> str:
        """The short form."""

    @property
    def iteration_time(self) -> float:
        """Seconds."""


_Plan = TypeVar("_Plan", bound=Timed)


def mechanisms(strategy: str) -> tuple[int, ...]:
    """What a plan needs, the most intricate first; less is simpler.

    Host memory, axes beside dp, chunks of stages, the stage of ZeRO, copies of shards,
    recomputation, and how many words it takes.

    >>> mechanisms("dp=8,zero=1,mb=1") < mechanisms("dp=4,tp=2,zero=1,mb=1")
    True
    >>> mechanisms("dp=8,zero=3,mb=1") < mechanisms("dp=8,zero=3,hsdp=8,mb=1")
    True
    """
    items = dict(item.partition("=")[::2] for item in strategy.split(",") if item)
    recompute = items.get("recompute", "")
    return (
        int(items.get("offload", "none") != "none"),
        sum(_number(items, axis) > 1 for axis in _AXES),
        int(_number(items, "vpp") > 1),
        _number(items, "zero", 0),
        int("hsdp" in items),
        _RECOMPUTE.get(recompute, 1),
        len(items),
    )


def simplest_of_ties(plans: Iterable[_Plan]) -> list[_Plan]:
    """The plans in their order, but neighbours that take exactly as long the simplest first."""
    return [
        plan
        for _, tied in groupby(plans, key=lambda plan: plan.iteration_time)
        for plan in sorted(tied, key=lambda plan: mechanisms(plan.strategy))
    ]


def _number(items: dict[str, str], key: str, default: int = 1) -> int:
    text = items.get(key, "")
    return int(text) if text.isdigit() else default
