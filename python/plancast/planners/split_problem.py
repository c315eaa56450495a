"""Splits of a graph's ops as an assignment: what every choice and every pair of them costs."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from plancast import _core
from plancast.errors import InputError
from plancast.planners.assignment import Assignment
from plancast.planners.costs import MeshCosts
from plancast.planners.op_choices import Choice, choices
from plancast.planners.op_graph import Edge, OpGraph, Value, trained_arguments
from plancast.planners.relayout import REPLICATE, Layout, Step, shards, steps

# Bytes per element of a parameter: gradient and Adam's state. Mixed precision keeps a gradient
# of the parameter's type, a copy in fp32 and two moments (ZeRO, SC'20, section 3.1).
_STATE = {2.0: 12.0, 4.0: 8.0}
# Bytes of an index, and of Adam's moments of an element.
_INDEX = 8
_MOMENTS = 8.0


@dataclass(frozen=True)
class Rules:
    """What holds for all ops.

    `zero` as in the short form: gradients of copies are all-reduced (0), or reduce-scattered with
    an all-gather of weights after the update (1, 2), or before each pass (3).
    """

    zero: int = 0
    limit: float = math.inf  # bytes of a device


@dataclass
class SplitProblem:
    """The assignment, its graph, and the choices by op."""

    graph: OpGraph
    costs: MeshCosts
    rules: Rules
    options: list[list[Choice]] = field(default_factory=list)
    assignment: Assignment = field(default_factory=Assignment)

    @classmethod
    def of(
        cls,
        graph: OpGraph,
        costs: MeshCosts,
        rules: Rules,
        cut_before: Sequence[dict[str, int]] | None = None,
    ) -> SplitProblem:
        """The problem of a graph on a mesh; `cut_before` per op as `choices` takes it."""
        problem = cls(graph, costs, rules)
        problem.assignment.limit = rules.limit
        trained = trained_arguments(graph)
        for index, op in enumerate(graph.ops):
            before = cut_before[index] if cut_before is not None else {}
            found = choices(
                op, costs.mesh, busy=costs.busy, trained=trained[index], cut_before=before
            )
            if not found:
                raise InputError(f"op `{op.module}.{op.name}` cannot be run on the mesh.")
            problem.options.append(found)
            problem._values.append(
                (
                    [
                        _shrunk(*both, before)
                        for both in zip(op.inputs, op.rule.inputs, strict=True)
                    ],
                    [
                        _shrunk(*both, before)
                        for both in zip(op.outputs, op.rule.outputs, strict=True)
                    ],
                )
            )
            problem.assignment.node(
                [op.count * math.fsum(problem.parts(index, c).values()) for c in found],
                [op.count * problem.memory(index, c) for c in found],
            )
        for edge in graph.edges:
            problem._add(edge)
        problem._tie()
        return problem

    _values: list[tuple[list[Value], list[Value]]] = field(default_factory=list)

    def _add(self, edge: Edge) -> None:
        writers, readers = self.options[edge.writer], self.options[edge.reader]
        known: dict[tuple[object, ...], float] = {}
        matrix = np.zeros((len(writers), len(readers)))
        for a, writer in enumerate(writers):
            for b, reader in enumerate(readers):
                key = (
                    writer.writes[edge.out],
                    reader.reads[edge.into],
                    reader.gives[edge.into],
                    writer.wants[edge.out],
                )
                if key not in known:
                    made = self.relayout(edge, writer, reader)
                    known[key] = edge.count * math.fsum(step.cost(self.costs) for step in made)
                matrix[a, b] = known[key]
        self.assignment.edge(edge.writer, edge.reader, matrix)

    def _tie(self) -> None:
        """Shared parameters are laid out alike where both ops read them."""
        for tie in self.graph.ties:
            first, second = self.options[tie.first], self.options[tie.second]
            matrix = np.full((len(first), len(second)), math.inf)
            for a, one in enumerate(first):
                for b, other in enumerate(second):
                    if one.reads[tie.first_into] == other.reads[tie.second_into]:
                        matrix[a, b] = 0.0
            if tie.first != tie.second and np.any(np.isfinite(matrix)):
                self.assignment.edge(tie.first, tie.second, matrix)

    def relayout(self, edge: Edge, writer: Choice, reader: Choice) -> tuple[Step, ...]:
        """The collectives on an edge, forward and backward.

        Each goes to whoever reads: a tensor has the size that its reader's earlier cuts leave.
        """
        mesh = self.costs.mesh
        read = self._values[edge.reader][0][edge.into]
        made = self._values[edge.writer][1][edge.out]
        scatter = self.costs.scatter
        out = steps(
            writer.writes[edge.out],
            reader.reads[edge.into],
            read.sizes,
            made.element,
            mesh,
            scatter,
        )
        given, wanted = reader.gives[edge.into], writer.wants[edge.out]
        if given is not None and wanted is not None:
            out += steps(given, wanted, made.sizes, made.element, mesh, scatter)
        return out

    def synchronise(self, index: int, choice: Choice) -> list[tuple[str, Step]]:
        """What parameters and their gradients owe, as (when, collective)."""
        out: list[tuple[str, Step]] = []
        shared = self.graph.ops[index].shared
        for into, (value, given) in enumerate(
            zip(self._values[index][0], choice.gives, strict=True)
        ):
            if value.kind != "parameter" or given is None or into in shared:
                continue
            for axis in _partial(given, self.costs.mesh):
                if value.sparse:
                    rows = self._rows(index, choice, value) * self.costs.mesh[axis]
                    out.append(("gradients", Step("all_gather", axis, rows)))
                    continue
                size = value.size / shards(_without(given, axis), self.costs.mesh)
                if self.rules.zero == 0:
                    out.append(("gradients", Step("all_reduce", axis, size)))
                    continue
                out.append(("gradients", Step("reduce_scatter", axis, size)))
                whens = ("weights, forward", "weights, backward")
                for when in whens if self.rules.zero == 3 else ("weights, updated",):
                    out.append((when, Step("all_gather", axis, size)))
        return out

    def _rows(self, index: int, choice: Choice, table: Value) -> float:
        """Bytes of the rows, with their indices, that an op looks up on a device."""
        rows = math.prod(
            value.size / value.element / shards(read, self.costs.mesh)
            for value, read in zip(self._values[index][0], choice.reads, strict=True)
            if value.kind == "input"
        )
        return rows * (table.sizes[-1] * table.element + _INDEX)

    def shared_over(self, chosen: Sequence[int]) -> dict[str, set[int]]:
        """By module the axes over which parameters have copies whose gradients are summed."""
        found: dict[str, set[int]] = {}
        for index, (op, a) in enumerate(zip(self.graph.ops, chosen, strict=True)):
            for _, step in self.synchronise(index, self.options[index][a]):
                found.setdefault(op.module, set()).add(step.axis)
        return found

    def inside(self, index: int, choice: Choice) -> tuple[Step, ...]:
        """What an op reduces by itself: statistics, and sums that leave the model."""
        mesh = self.costs.mesh
        out = choice.inside
        for number, (value, written) in enumerate(
            zip(self._values[index][1], choice.writes, strict=True)
        ):
            if (index, number) in self.graph.results and _partial(written, mesh):
                whole = (REPLICATE,) * len(mesh)
                sums = tuple(p if p.kind == "partial" else REPLICATE for p in written)
                size = value.size / shards(written, mesh)
                out += steps(sums, whole, (1,), size, mesh)
        return out

    def parts(self, index: int, choice: Choice) -> dict[str, float]:
        """What a choice costs by itself, one layer."""
        costs = self.costs
        copies = sum(
            3
            for value, read in zip(self.graph.ops[index].inputs, choice.reads, strict=True)
            if value.kind == "parameter" and all(place.kind != "shard" for place in read)
        )
        return {
            "compute": costs.compute(choice.product_flops, choice.other_flops, choice.moved),
            "inside ops": math.fsum(step.cost(costs) for step in self.inside(index, choice)),
            "parameters": math.fsum(
                step.cost(costs) for _, step in self.synchronise(index, choice)
            ),
            # The parameter and two moments of Adam.
            "replication penalty": copies * costs.replicate() if copies else 0.0,
        }

    def memory(self, index: int, choice: Choice) -> float:
        """Bytes of a device for one layer: parameters with their state, and results."""
        mesh = self.costs.mesh
        total = 0.0
        arguments, results = self._values[index]
        for into, (value, read, given) in enumerate(
            zip(arguments, choice.reads, choice.gives, strict=True)
        ):
            if value.kind != "parameter" or into in self.graph.ops[index].shared:
                continue
            own = value.size / shards(read, mesh)
            copies = math.prod(mesh[axis] for axis in _partial(given or (), mesh))
            if value.sparse:  # whole, without a gradient of its own
                total += own * (1 + _MOMENTS / value.element)
                continue
            zero, state = self.rules.zero, _STATE.get(value.element, 8.0) / value.element
            total += own / (copies if zero == 3 else 1)
            total += own / (copies if zero >= 2 else 1)
            total += own * state / (copies if zero >= 1 else 1)
        for value, written in zip(results, choice.writes, strict=True):
            total += value.size / shards(written, mesh)
        return total

    def parts_of(self, chosen: Sequence[int]) -> dict[str, float]:
        """What an assignment costs, by kind; the parts sum to its cost."""
        out: defaultdict[str, float] = defaultdict(float)
        for index, (op, a) in enumerate(zip(self.graph.ops, chosen, strict=True)):
            for name, cost in self.parts(index, self.options[index][a]).items():
                out[name] += op.count * cost
        between = 0.0
        for edge in self.graph.edges:
            for step in self.between(edge, chosen):
                between += edge.count * step.cost(self.costs)
        return {**out, "relayouts": between}

    def collectives(self, chosen: Sequence[int]) -> dict[str, int]:
        """Collectives by kind. Those of all parameters at one moment count as one, as frameworks
        join them; those of activations wait for each other and count one by one.
        """
        out: Counter[str] = Counter()
        moments = set()
        for index, (op, a) in enumerate(zip(self.graph.ops, chosen, strict=True)):
            choice = self.options[index][a]
            for step in self.inside(index, choice):
                out[step.kind] += op.count
            moments |= {(when, s.kind, s.axis) for when, s in self.synchronise(index, choice)}
        for _, kind, _ in moments:
            out[kind] += 1
        for edge in self.graph.edges:
            for step in self.between(edge, chosen):
                out[step.kind] += edge.count
        return {kind: out[kind] for kind in sorted(out) if out[kind]}

    def between(self, edge: Edge, chosen: Sequence[int]) -> tuple[Step, ...]:
        """The collectives on an edge under an assignment."""
        writer = self.options[edge.writer][chosen[edge.writer]]
        return self.relayout(edge, writer, self.options[edge.reader][chosen[edge.reader]])


def _partial(layout: Layout, mesh: tuple[int, ...]) -> list[int]:
    return [axis for axis, place in enumerate(layout) if place.kind == "partial" and mesh[axis] > 1]


def _without(layout: Layout, axis: int) -> Layout:
    return tuple(REPLICATE if other == axis else place for other, place in enumerate(layout))


def _shrunk(value: Value, argument: _core.Argument, before: dict[str, int]) -> Value:
    """What is left of a tensor where factors are cut already."""
    if not before:
        return value
    sizes = tuple(
        size // before.get(factor, 1)
        for size, factor in zip(value.sizes, argument.factors, strict=True)
    )
    return Value(value.name, sizes, value.element, value.kind)
