"""Plans beside the best one, and what they trade for the time that they take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plancast.forecast import Forecast
from plancast.fullness import full
from plancast.simplicity import complexity
from plancast.textual import gib, percent

# Beyond so much slower nobody takes a plan for its other virtues.
_MOST_SLOWER = 0.25
# From so much less memory on, of a GPU's, a plan is roomier.
_ROOMIER = 0.1
# Plans that differ by less take as long.
_NOTHING = 1e-3
_SIZES = ("dp", "tp", "pp", "cp", "ep")
_PARTS = (
    ("offload", "host memory"), ("pp", "a pipeline"), ("cp", "context parallelism"),
    ("ep", "expert parallelism"), ("tp", "tensor parallelism"), ("vpp", "chunks of stages"),
    ("hsdp", "copies of shards"), ("recompute", "recomputation"),
)  # fmt: skip


@dataclass(frozen=True)
class Alternative:
    """A plan that fits too, and what it gives for how much."""

    forecast: Forecast
    slower: float
    trades: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "strategy": self.forecast.strategy,
            "iteration_time_s": self.forecast.iteration_time,
            "peak_memory_bytes": self.forecast.peak_memory,
            "slower": self.slower,
            "trades": self.trades,
        }


def of(plans: Sequence[Forecast], most: int = 2) -> tuple[Alternative, ...]:
    """Of plans, the fastest first, those beside the first that have something for them.

    One with more room in memory, one that is simpler, then those that are cut otherwise; none that
    fills the memory, unless the first does.
    """
    if len(plans) < 2:
        return ()
    best = plans[0]
    rest = [p for p in plans[1:] if not _same(best, p) and full(p) <= full(best)]
    rest = [p for p in rest if p.iteration_time <= best.iteration_time * (1 + _MOST_SLOWER)]
    found: list[Alternative] = []
    for why in (_roomier, _simpler, _otherwise):
        taken = {best.strategy, *(a.forecast.strategy for a in found)}
        for other in rest:
            said = why(best, other) if other.strategy not in taken else ""
            if said:
                slower = other.iteration_time / best.iteration_time - 1
                found.append(Alternative(other, slower, said))
                break
    for other in rest:
        taken = {a.forecast.strategy for a in found}
        if len(found) < most and other.strategy not in taken:
            slower = other.iteration_time / best.iteration_time - 1
            found.append(Alternative(other, slower, _memory(best, other) or "the next fastest"))
    return tuple(sorted(found[:most], key=lambda alternative: alternative.slower))


def items(strategy: str) -> dict[str, str]:
    """The keys of a short form and their values.

    >>> items("dp=8,tp=2,sp")["tp"], items("dp=8,tp=2,sp")["sp"]
    ('2', '')
    """
    return dict(item.partition("=")[::2] for item in strategy.split(",") if item)


def _same(best: Forecast, other: Forecast) -> bool:
    """Whether nobody could tell them apart."""
    slower = other.iteration_time / best.iteration_time - 1
    return slower < _NOTHING and not _memory(best, other)


def _roomier(best: Forecast, other: Forecast) -> str:
    room = best.peak_memory - other.peak_memory
    return _memory(best, other) if room >= _ROOMIER * best.memory_capacity else ""


def _simpler(best: Forecast, other: Forecast) -> str:
    if complexity(other) >= complexity(best):
        return ""
    mine, theirs = items(best.strategy), items(other.strategy)
    without = [words for key, words in _PARTS if _has(mine, key) and not _has(theirs, key)]
    if not without:
        return ""
    return _with(f"without {' and '.join(without[:2])}", _memory(best, other))


def _otherwise(best: Forecast, other: Forecast) -> str:
    mine, theirs = items(best.strategy), items(other.strategy)
    changed = [
        f"{key}={theirs.get(key, '1')}"
        for key in _SIZES[1:]
        if theirs.get(key, "1") != mine.get(key, "1")
    ]
    return _with(f"cut otherwise: {', '.join(changed)}", _memory(best, other)) if changed else ""


def _memory(best: Forecast, other: Forecast) -> str:
    room = best.peak_memory - other.peak_memory
    share = abs(room) / best.memory_capacity
    if share < 0.01:
        return ""
    return f"{gib(abs(room))} GiB {'less' if room > 0 else 'more'} ({percent(share, 0)} of a GPU)"


def _with(*said: str) -> str:
    return "; ".join(filter(None, said))


def _has(said: dict[str, str], key: str) -> bool:
    value = said.get(key, "")
    if key == "recompute":
        return value not in ("", "none")
    return value not in ("", "1", "none")
