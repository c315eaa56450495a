"""Splits within an op graph, as an integer program (Alpa's intra-op pass, OSDI'22)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plancast import arguments
from plancast.checked import checked
from plancast.errors import InputError
from plancast.planners.assignment import solve
from plancast.planners.costs import AlphaBeta, MachineMesh, MeshCosts, by
from plancast.planners.op_graph import OpGraph, op_graph
from plancast.planners.plan import Plan
from plancast.planners.split_problem import Rules, SplitProblem
from plancast.planners.trees import axis_names, tree, word
from plancast.planning import DEFAULT_PROFILE, predict
from plancast.strategy import Strategy

if TYPE_CHECKING:
    from plancast.machine import Machine
    from plancast.model import Model
    from plancast.session import Session

_TRIES = 3
# What a stage of ZeRO shards first; the rest follows.
_HOMES = {1: "state", 2: "gradients", 3: "weights"}
# Above the least memory that any choice needs, so that there is a choice.
_MORE = 1.02


@checked
def plan_intra_op(
    model: Model,
    machine: Machine | None = None,
    *,
    batch: int,
    mesh: Sequence[int] | None = None,
    costs: AlphaBeta | None = None,
    zero: int = 0,
    accum: int = 1,
    memory_limit: float | None = None,
    each_layer: bool = False,
    dtype: str = "bf16",
    profile: str = DEFAULT_PROFILE,
    session: Session | None = None,
) -> Plan:
    """The splits of all ops at least cost: one choice an op and mesh axis, taken from its rule.

    An op costs what it and its gradients compute and reduce; an edge what the tensor and its
    gradient are relaid by; a parameter what its gradient is reduced by. The sum is minimised under
    a bound on memory, as an integer program, exactly. Relayouts do not overlap with work in this
    objective, and every reader of a tensor pays its own; the forecast knows better.

    Args:
      model: what is trained.
      machine: where; without one no forecast is made, and `costs` are needed.
      batch: global batch, samples per step.
      mesh: ranks of one or two axes, outermost first; by default the best of all meshes of two
        axes over the machine's devices.
      costs: prices of communication in place of the machine's; products are then cut over all
        devices.
      zero: how copies of parameters are kept, as in the short form.
      accum: micro-batches that a rank works on in turn.
      memory_limit: bytes of a device; the machine's memory by default.
      each_layer: layers of a list may be cut differently; by default they are planned alike.
      dtype: matmul precision.
      profile: how the framework runs, in the forecast.
      session: shared memo of the forecasts.

    Raises:
      InputError: no choice is within the limit.

    >>> from plancast import Machine, Model
    >>> plan = plan_intra_op(Model.preset("alexnet"), Machine.preset("dgx-a100-80g:1x4"),
    ...                      batch=256, mesh=[4])
    >>> plan.forecast.fits
    True
    """
    arguments.dtype(dtype)
    if not 0 <= zero <= 3:
        raise InputError(f"`zero` is {zero}; it is 0, 1, 2 or 3.")
    if accum < 1 or batch < 1 or batch % accum:
        raise InputError(f"a batch of {batch} in {accum} micro-batches; choose a divisor of it.")
    if machine is None and costs is None:
        raise InputError("neither `machine` nor `costs` is given; the planner needs prices.")
    limit = memory_limit
    if limit is None:
        limit = math.inf if machine is None else machine.memory_bytes
    asked: dict[str, Any] = {"dtype": dtype, "profile": profile, "session": session}
    best: Plan | None = None
    failed: InputError | None = None
    for shape in _meshes(machine, mesh, costs):
        prices: MeshCosts
        if costs is not None:
            prices = costs
        elif machine is not None:
            prices = MachineMesh(machine, shape, dtype)
        try:
            found = _on_mesh(
                model,
                machine,
                prices,
                batch,
                accum,
                Rules(zero, limit),
                memory_limit is not None,
                not each_layer,
                asked,
            )
        except InputError as error:
            failed = error
            continue
        if best is None or _key(found) < _key(best):
            best = found
    if best is None:
        raise failed or InputError(f"no mesh of {machine} divides a batch of {batch}.")
    return best


def _key(plan: Plan) -> tuple[bool, float]:
    if plan.forecast is None:
        return False, plan.objective
    return not plan.forecast.fits, plan.forecast.iteration_time


def _meshes(
    machine: Machine | None, mesh: Sequence[int] | None, costs: AlphaBeta | None
) -> list[tuple[int, ...]]:
    if costs is not None:
        if mesh is not None and tuple(mesh) != costs.mesh:
            raise InputError(f"`mesh` is {by(mesh)}, and `costs` are of {by(costs.mesh)}.")
        return [costs.mesh]
    assert machine is not None
    if mesh is not None:
        if math.prod(mesh) != machine.devices:
            raise InputError(
                f"a mesh of {by(mesh)} has {math.prod(mesh)} devices, and {machine} has "
                f"{machine.devices}; give axes that multiply to that."
            )
        return [tuple(mesh)]
    count = machine.devices
    return [(count // n, n) for n in range(1, count + 1) if count % n == 0]


def _on_mesh(
    model: Model,
    machine: Machine | None,
    costs: MeshCosts,
    batch: int,
    accum: int,
    rules: Rules,
    given: bool,
    alike: bool,
    asked: dict[str, Any],
) -> Plan:
    graph = op_graph(
        model,
        batch // accum,
        asked["dtype"],
        replicas=math.gcd(batch // accum, math.prod(costs.mesh)),
        alike=alike,
    )
    problem = SplitProblem.of(graph, costs, rules)
    samples = batch // accum
    checked = machine is not None and math.prod(costs.mesh) == machine.devices
    if checked and not given:
        # The estimate counts every result, the executor what is kept: let it decide.
        least = sum(float(min(memory)) for memory in problem.assignment.memory)
        problem.assignment.limit = max(rules.limit, least * _MORE)
    chosen, forecast = solve(problem.assignment), None
    strategy = strategy_of(problem, chosen, samples)
    if checked and machine is not None:
        forecast = predict(model, machine, strategy, batch=batch, **asked)
        for _ in range(_TRIES):
            if forecast.fits:
                break
            # Ask for as much less as the executor has too much.
            over = forecast.peak_memory / forecast.memory_capacity
            problem.assignment.limit = problem.assignment.memory_of(chosen) / over * 0.98
            try:
                chosen = solve(problem.assignment)
            except InputError:
                break
            strategy = strategy_of(problem, chosen, samples)
            forecast = predict(model, machine, strategy, batch=batch, **asked)
    parts = problem.parts_of(chosen)
    penalty = costs.replicate()
    if penalty and parts["replication penalty"]:
        parts["replication penalty"] += penalty  # the optimizer's count of steps
    remarks = []
    if forecast is not None and not forecast.fits:
        remarks.append(
            f"This needs {forecast.peak_memory / 2**30:.3g} GiB of a device, and nothing that "
            "needs less was found. Take more devices, more micro-batches (accum) or a higher zero."
        )
    return Plan(
        "intra-op",
        strategy,
        math.fsum(parts.values()),
        costs.unit,
        forecast,
        {
            "mesh": by(costs.mesh),
            "splits": _splits(graph, problem, chosen),
            "parts": parts,
            "collectives": problem.collectives(chosen),
            "memory_bytes": problem.assignment.memory_of(chosen),
        },
        tuple(remarks),
    )


def _splits(
    graph: OpGraph, problem: SplitProblem, chosen: Sequence[int]
) -> dict[str, list[str | None]]:
    """By op the dim or factor that each axis cuts."""
    out = {}
    for op, options, a in zip(graph.ops, problem.options, chosen, strict=True):
        layer = "" if op.layer < 0 else f".{'*' if op.count > 1 else op.layer}"
        cut = options[a].cut
        out[f"{op.module}{layer}.{op.name}"] = [None if f is None else word(op, f) for f in cut]
    return out


def strategy_of(problem: SplitProblem, chosen: Sequence[int], samples: int) -> Strategy:
    """The tree of a choice for every op; `samples` are a micro-batch of all ranks."""
    graph, mesh = problem.graph, problem.costs.mesh
    cuts = [options[a].cut for options, a in zip(problem.options, chosen, strict=True)]
    names = axis_names(graph, cuts, mesh)
    words = [
        {name: (word(op, f),) if f is not None else () for name, f in zip(names, cut, strict=True)}
        for op, cut in zip(graph.ops, cuts, strict=True)
    ]
    ranks = dict(zip(names, mesh, strict=True))
    dp = ranks.get("dp", 1)
    if samples % dp:
        raise InputError(f"{samples} samples on dp={dp}: choose a batch that {dp} divides.")
    root = [f"dp={dp}"] + ([f"tp={ranks['tp']}"] if "tp" in ranks else [])
    if names == ("tp", "dp") and 1 not in mesh:
        root.append("order=dp-tp-pp")  # fastest first
    homes: dict[str, dict[str, str]] = {}
    if problem.rules.zero:
        # `zero` shards over dp alone; copies over other axes have a home of their own, but for
        # weights that modules share, which have one over dp.
        shared = problem.shared_over(chosen)
        tied = {graph.ops[op].module for tie in graph.ties for op in (tie.first, tie.second)}
        if any(names[axis] == "dp" for axes in shared.values() for axis in axes):
            root.append(f"zero={problem.rules.zero}")
        for module, axes in shared.items():
            over = sorted(names[axis] for axis in axes)
            if over != ["dp"] and module not in tied:
                homes[module] = {_HOMES[problem.rules.zero]: f"shard({','.join(over)})"}
    order = [name for name in names if ranks[name] > 1]
    return tree(graph, words, ",".join([*root, f"mb={samples // dp}"]), order, homes)
