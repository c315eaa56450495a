"""Splits found by cutting all devices into halves again and again (Tofu, EuroSys'19)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plancast import arguments
from plancast.checked import checked
from plancast.errors import InputError
from plancast.planners.assignment import solve
from plancast.planners.costs import TotalBytes
from plancast.planners.op_choices import Choice
from plancast.planners.op_graph import Op, OpGraph, op_graph
from plancast.planners.plan import Plan
from plancast.planners.split_problem import Rules, SplitProblem
from plancast.planners.trees import Words, tree, word
from plancast.planning import DEFAULT_PROFILE, predict
from plancast.strategy import Strategy

if TYPE_CHECKING:
    from plancast.machine import Machine
    from plancast.model import Model
    from plancast.session import Session


@dataclass(frozen=True)
class Level:
    """One cut of all groups of devices into `parts`: the choice of every op, and the bytes."""

    parts: int
    chosen: tuple[Choice, ...]
    bytes: float


@checked
def recursive_bisection(
    model: Model,
    machine: Machine | None = None,
    *,
    batch: int,
    parts: int | None = None,
    accum: int = 1,
    dtype: str = "bf16",
    profile: str = DEFAULT_PROFILE,
    session: Session | None = None,
) -> Plan:
    """Cuts devices into two groups and every op along one of its factors, then each group again.

    At each level the splits are chosen at least bytes between the groups, exactly, for the sizes
    that earlier levels leave; all groups do the same. A number of devices that is no power of two
    is cut into its prime factors, largest first. Bytes are all that devices receive: all-reduce
    2 S(n-1), all-gather and reduce-scatter S(n-1), all-to-all S(n-1)/n of a tensor of S bytes in a
    group, gradients of copied parameters included. Choosing level by level is a heuristic: what is
    cheapest now can cost more below (docs/planners.md has a figure).

    Args:
      model: what is trained.
      machine: where; without one no forecast is made, and `parts` is needed.
      batch: global batch, samples per step.
      parts: devices; all of the machine by default.
      accum: micro-batches that a rank works on in turn.
      dtype: matmul precision.
      profile: how the framework runs, in the forecast.
      session: shared memo of the forecasts.

    >>> from plancast import Machine, Model
    >>> plan = recursive_bisection(Model.preset("alexnet"), Machine.preset("dgx-a100-80g:1x4"),
    ...                            batch=256)
    >>> plan.unit
    'bytes'
    """
    arguments.dtype(dtype)
    if parts is None:
        if machine is None:
            raise InputError("neither `machine` nor `parts` is given; say how many devices.")
        parts = machine.devices
    if machine is not None and parts != machine.devices:
        raise InputError(f"{parts} parts on {machine.devices} devices; each device is one.")
    if parts < 1 or accum < 1 or batch < 1 or batch % accum:
        raise InputError(
            f"{parts} parts and a batch of {batch} in {accum} micro-batches; give at least one "
            "part and a divisor of the batch."
        )
    graph = op_graph(model, batch // accum, dtype, replicas=math.gcd(batch // accum, parts))
    levels = bisect(graph, parts)
    strategy = _strategy(graph, levels, batch // accum)
    asked: dict[str, Any] = {"dtype": dtype, "profile": profile, "session": session}
    forecast = None
    if machine is not None:
        forecast = predict(model, machine, strategy, batch=batch, **asked)
    remarks = []
    if forecast is not None and not forecast.fits:
        remarks.append("The method knows no bound on memory, and this plan does not fit.")
    return Plan(
        "bisection",
        strategy,
        math.fsum(level.bytes for level in levels),
        "bytes",
        forecast,
        {
            "levels": [
                {
                    "parts": level.parts,
                    "bytes": level.bytes,
                    "splits": {
                        f"{op.module}.{op.name}": None if c.cut[0] is None else word(op, c.cut[0])
                        for op, c in zip(graph.ops, level.chosen, strict=True)
                    },
                }
                for level in levels
            ]
        },
        tuple(remarks),
    )


def bisect(graph: OpGraph, parts: int) -> list[Level]:
    """The levels of a graph, outermost first."""
    before: list[dict[str, int]] = [{} for _ in graph.ops]
    levels = []
    groups = 1
    for factor in prime_factors(parts):
        costs = TotalBytes((factor,), groups)
        problem = SplitProblem.of(graph, costs, Rules(), before)
        found = solve(problem.assignment)
        chosen = tuple(options[a] for options, a in zip(problem.options, found, strict=True))
        levels.append(Level(factor, chosen, problem.assignment.cost(found)))
        before = [
            cut_further(op, choice, factor, cut)
            for op, choice, cut in zip(graph.ops, chosen, before, strict=True)
        ]
        groups *= factor
    return levels


def cut_further(op: Op, choice: Choice, parts: int, before: dict[str, int]) -> dict[str, int]:
    """Parts of every factor after one more cut; factors that maps tie are cut with it."""
    cut = {choice.cut[0]} if choice.cut[0] is not None else set()
    for arguments_, layouts in (
        (op.rule.inputs, choice.reads),
        (op.rule.outputs, choice.writes),
    ):
        for argument, layout in zip(arguments_, layouts, strict=True):
            if layout[0].kind == "shard":
                cut.add(argument.factors[layout[0].dim])
    return {**before, **{factor: before.get(factor, 1) * parts for factor in cut}}


def prime_factors(number: int) -> list[int]:
    """Largest first.

    >>> prime_factors(12)
    [3, 2, 2]
    """
    out = []
    divisor = 2
    while number > 1:
        while number % divisor == 0:
            out.append(divisor)
            number //= divisor
        divisor += 1
    return out[::-1]


def _strategy(graph: OpGraph, levels: Sequence[Level], samples: int) -> Strategy:
    """Outer levels at which most ops cut the batch are `dp`, the others levels of `tp`."""
    outer = 0
    while outer < len(levels) and _mostly_batch(graph, levels[outer]):
        outer += 1
    dp = math.prod(level.parts for level in levels[:outer])
    tp = math.prod(level.parts for level in levels[outer:])
    if samples % dp:
        raise InputError(f"{samples} samples on dp={dp}: choose a batch that {dp} divides.")
    words = []
    for index, op in enumerate(graph.ops):
        words.append(
            {
                "dp": _words(op, index, levels[:outer]),
                "tp": _words(op, index, levels[outer:]),
            }
        )
    order = [axis for axis, ranks in (("dp", dp), ("tp", tp)) if ranks > 1]
    return tree(graph, words, f"dp={dp},tp={tp},mb={samples // dp}", order)


def _mostly_batch(graph: OpGraph, level: Level) -> bool:
    pairs = zip(graph.ops, level.chosen, strict=True)
    cut = sum(op.count for op, c in pairs if c.cut[0] and op.dims[c.cut[0]] == "batch")
    return 2 * cut > sum(op.count for op in graph.ops)


def _words(op: Op, index: int, levels: Sequence[Level]) -> Words:
    factors = [level.chosen[index].cut[0] for level in levels]
    if all(factor is None for factor in factors):
        return ()
    first = factors[0]
    if first is not None and all(factor == first for factor in factors):
        return (word(op, first),)
    return tuple(
        f"{'' if factor is None else word(op, factor)}/{level.parts}"
        for factor, level in zip(factors, levels, strict=True)
    )
