"""Orders of pipeline passes, found from how long these take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plancast import _core, arguments
from plancast.checked import checked
from plancast.errors import InputError

_MOST_STAGES = 1 << 12
_MOST_PASSES = 1 << 20  # of a table
_TICKS = 1 << 30  # of the longest pass
_PLACEMENTS = ("loop", "v", "both-ways")


@dataclass(frozen=True)
class FoundSchedule:
    """An order of passes, and what it takes with the times that it was found from.

    `table` is text of the strategy language, and so is the schedule itself as text:
    `f"pp=4,mb=1,schedule={found}"`. `time` is from the first step to the last, in the unit of the
    times. `kept` says of each stage how many micro-batches (through one chunk) it has in flight at
    most. `origin` says what the order is or was made from, `best_named` which of the named
    schedules was the best within the memory, if one was.
    """

    table: str
    time: float
    kept: tuple[int, ...]
    origin: str
    best_named: str | None

    def __str__(self) -> str:
        return self.table


@checked
def find_schedule(
    *,
    stages: int,
    micro_batches: int,
    forward: float | Sequence[float],
    backward: float | Sequence[float],
    weight: float | Sequence[float] | None = None,
    transfer: float | Sequence[float] = 0.0,
    memory: int | Sequence[int] | None = None,
    chunks: int = 1,
    placement: str = "loop",
) -> FoundSchedule:
    """The fastest order of passes that is found, no slower than the best named schedule.

    Times are in any one unit. A single number holds for all stages; a list has an entry for each
    virtual stage, in the order of the model (in a loop, virtual stage `v` is chunk `v // stages`
    of stage `v % stages`).

    Args:
      stages: of the pipeline.
      micro_batches: of an iteration.
      forward: what forward passes take.
      backward: what backward passes take; with `weight` their part for gradients of inputs.
      weight: what gradients of weights take that may be put off; None: backward passes make them.
      transfer: from a stage to the next, and back; a list has an entry for each stage (the last
        sends to the first, where there are chunks).
      memory: micro-batches that a stage may have in flight, from their forward pass through a
        chunk to the end of its gradients of weights; a list has an entry for each stage. None: any.
      chunks: of layers on each stage; with two copies, of each.
      placement: where virtual stages run, as tables say it: `loop`, `v` (down the stages and up
        again; an even number of chunks) or `both-ways` (two copies, an even number of stages). The
        named schedules are those of the placement.

    Raises:
      InputError: numbers that mean nothing, lists of another length, or a memory that no order
        keeps to.

    >>> found = find_schedule(stages=2, micro_batches=2, forward=1, backward=1, weight=1)
    >>> found.time
    7.0
    >>> found.table
    'F0.0 F1.0 B0.0 W0.0 B1.0 W1.0;F0.0 B0.0 F1.0 B1.0 W0.0 W1.0'
    """
    p = arguments.whole(stages, "stages", 1, _MOST_STAGES)
    v = p * arguments.whole(chunks, "chunks", 1, _MOST_PASSES // p)
    m = arguments.whole(micro_batches, "micro_batches", 1, _MOST_PASSES)
    if v * m > _MOST_PASSES:
        raise InputError(
            f"{m:,} micro-batches through {v:,} virtual stages are more than {_MOST_PASSES:,} "
            "passes. Take fewer micro-batches: a schedule repeats itself."
        )
    each = f"for each of the {v} virtual stages"
    times = {
        "forward": _times(forward, "forward", v, each),
        "backward": _times(backward, "backward", v, each),
        "weight": [] if weight is None else _times(weight, "weight", v, each),
        "transfer": _times(transfer, "transfer", p, f"for each of the {p} stages"),
    }
    if placement not in _PLACEMENTS:
        raise InputError(f"`placement` is `{placement}`; say one of {', '.join(_PLACEMENTS)}.")
    if placement == "v" and (v // p) % 2 != 0:
        raise InputError(f"`v` takes layers down the stages and up again: chunks={v // p} is odd.")
    if placement == "both-ways" and (v > p or p % 2 != 0 or m < 2):
        raise InputError(
            "`both-ways` has one chunk of each copy, an even number of stages and two "
            f"micro-batches at least: chunks={v // p}, stages={p}, micro_batches={m}."
        )
    unit = _unit([time for values in times.values() for time in values])
    ticks = {name: [round(time / unit) for time in values] for name, values in times.items()}
    table, makespan, kept, origin, best_named = _core.find_schedule(
        stages=p,
        chunks=v // p,
        placement=placement,
        micro_batches=m,
        forward=ticks["forward"],
        backward=ticks["backward"],
        weights=ticks["weight"],
        transfer=ticks["transfer"],
        memory=_memory(memory, p),
    )
    return FoundSchedule(table, makespan * unit, tuple(kept), origin, best_named or None)


def _times(value: float | Sequence[float], what: str, count: int, each: str) -> list[float]:
    if isinstance(value, Sequence):
        if len(value) != count:
            raise InputError(
                f"`{what}` has {len(value)} entries; give one {each}, or a single number."
            )
        times = [arguments.number(time, what) for time in value]
    else:
        times = [arguments.number(value, what)] * count
    for time in times:
        if not (math.isfinite(time) and time >= 0):
            raise InputError(f"`{what}` has {time}; give times from 0 on.")
    return times


def _unit(times: list[float]) -> float:
    longest = max(times)
    if longest == 0 or (longest <= _TICKS and all(time == int(time) for time in times)):
        return 1.0
    return longest / _TICKS


def _memory(value: int | Sequence[int] | None, stages: int) -> list[int]:
    if value is None:
        return []
    if not isinstance(value, Sequence):
        return [arguments.whole(value, "memory", 1, _MOST_PASSES)] * stages
    if len(value) != stages:
        raise InputError(
            f"`memory` has {len(value)} entries; give one for each of the {stages} stages, "
            "or a single number."
        )
    return [arguments.whole(kept, "memory", 1, _MOST_PASSES) for kept in value]
