"""What our compiler makes of a case, in the same facts as those of `theirs`."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import plancast as pc
from pairing import Copy, Pairing, base
from plancast.compiled import Task
from plancast.planning import compile_passes
from relayout_text import Layout, Op, Operand, bodies
from theirs import Fact, Facts, Groups, Shape, Theirs, groups_of, shape_of

# Dims of ours that are one dim of theirs, by type of op.
_JOINED = {
    "Linear": (("kv_heads", "qkv_of_head"), ("kv_heads", "head_dim")),
    "Matmul": (("batch", "kv_heads"),),
    "Concat": (("features", "embedding_dim"),),
}
_ELEMENT = 4  # bytes


@dataclass(frozen=True)
class Gradient:
    """Of a parameter, on the devices of `group`; reduced where they are several."""

    stage: int
    devices: frozenset[int]  # of the stage
    kind: str
    group: frozenset[int]
    parameter: str
    bytes: int
    depth: int


class Ours:
    """A model under a strategy."""

    def __init__(
        self,
        graph: dict[str, Any],
        strategy: str,
        theirs: Theirs,
        *,
        without: tuple[str, ...],
        batch: int,
        devices: int,
    ) -> None:
        self.name: str = graph["name"]
        pairs = [op for op in theirs.ops if op[0] not in without]
        self.pairing = Pairing(graph, pairs)
        self._types = dict(pairs)
        model = pc.Model.from_graph(graph)
        self.parameters = model.parameters
        machine = pc.Machine.preset(f"dgx-a100-80g:1x{devices}")
        tree = pc.Strategy.from_yaml(strategy)
        options: dict[str, Any] = {"batch": batch, "dtype": "fp32", "profile": "eager"}
        self.graph = pc.execution_graph(model, machine, tree, **options)
        texts = compile_passes(model, machine, tree, **options)
        self._bodies = bodies(texts["relayout"], texts["partition"])
        self._schedule = texts["schedule"]
        self.micro_batches = 1 + max(
            i.micro_batch for program in self.graph.programs for i in program.instances
        )
        self.sizes = dict(graph["dims"]) | {"batch": batch // self.micro_batches}

    # --- Ops.

    def compute(self, phase: str) -> Facts:
        """As Theirs.compute."""
        if phase == "recompute":
            again = self._again()
            return Counter({f: n for f, n in self.compute("forward").items() if f[0] in again})
        backward = phase == "backward"
        found: Facts = Counter()
        for at, copy in enumerate(self.pairing.copies):
            stage = self._place(at)
            for op, name in copy.ops.items():
                parts = [
                    one
                    for one in self._bodies[copy.path].ops
                    if base(one.name) == op and (one.phase != "F") == backward
                ]
                of_type = self._types[name]
                reads, writes = self._border(copy, parts, of_type, backward=backward)
                if backward and of_type == "CrossEntropy":
                    reads = ()
                ranks = {axis: int(how[3:-1]) for one in parts for axis, how in one.on().items()}
                devices = frozenset(self.graph.devices(stage | ranks))
                found[(name, reads, writes, devices)] += 1
        return found

    def _border(
        self, copy: Copy, parts: list[Op], of_type: str, *, backward: bool
    ) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
        """Shapes of what an op reads and writes; the addition of a bias brings the bias alone."""
        sides: tuple[list[Shape], list[Shape]] = ([], [])
        seen: set[str] = set()
        for op in parts:
            if backward:  # the gradient of a result, which several ops read
                reads = [r for r in op.reads if r.name.startswith("d ") and r.name not in seen]
                seen |= {one.name for one in reads}
            else:  # with the names of data
                names = copy.read_by(op.name)
                reads = [
                    Operand(*row) for row in zip(names, [r.layout for r in op.reads], strict=True)
                ]
            for side, operands in zip(sides, (reads, op.writes), strict=True):
                for one in operands:
                    tensor = copy.tensor(one.name)
                    if tensor is None:  # what only kernels know, such as a mask
                        continue
                    if op.name == base(op.name) or tensor["kind"] == "parameter":
                        side.append(self._part(tensor["dims"], one.layout, of_type))
        return tuple(sorted(sides[0])), tuple(sorted(sides[1]))

    def _part(self, dims: list[str], layout: Layout, of_type: str = "") -> Shape:
        """Shape of the part of a tensor that a device has."""
        sizes = [self.sizes[dim] for dim in dims]
        for axis, how in layout.items():
            if how.startswith("Shard("):
                sizes[int(how[6:].rstrip(")"))] //= self.graph.axes[axis]
        for first, second in _JOINED.get(of_type, ()):
            if first in dims and second in dims:
                sizes[dims.index(first)] *= sizes[dims.index(second)]
                sizes[dims.index(second)] = 1
        return shape_of(sizes)

    def _bytes(self, dims: list[str], layout: Layout) -> int:
        return _ELEMENT * math.prod(self._part(dims, layout))

    def _place(self, at: int) -> dict[str, int]:
        """The stage that runs a copy."""
        copy = self.pairing.copies[at]
        for program in self.graph.programs:
            for instance in program.instances:
                first, count = instance.first_layer, instance.layers * instance.repeats
                if instance.block.name == f"{copy.path}.F" and first <= copy.number < first + count:
                    return {"pp": program.where["pp"]}
        raise AssertionError(f"{copy.path} {copy.number} runs nowhere")

    def _again(self) -> set[str]:
        """Names there of the ops that run again in backward."""
        found = set()
        for at, _, task in self._run("B"):
            name = base(task.label.removesuffix(".again"))
            if task.label.endswith(".again") and name in self.pairing.copies[at].ops:
                found.add(self.pairing.copies[at].ops[name])
        return found

    def _run(self, phase: str) -> Iterator[tuple[int, dict[str, int], Task]]:
        """(copy, place, task) of the passes of one micro-batch."""
        places = {(copy.path, copy.number): at for at, copy in enumerate(self.pairing.copies)}
        for program in self.graph.programs:
            for instance in program.instances:
                path, _, ending = instance.block.name.rpartition(".")
                if ending != phase or instance.micro_batch != 0:
                    continue
                for repeat in range(instance.repeats):
                    at = places[path, instance.first_layer + repeat]
                    for task in instance.block.tasks:
                        # What goes on over axes along which programs differ is met for by all.
                        crossed = [axis for axis in task.axes if axis in program.where]
                        if all(program.where[axis] == 0 for axis in crossed):
                            where = {k: v for k, v in program.where.items() if k not in crossed}
                            yield at, where, task

    # --- Communication.

    def collectives(self) -> Facts:
        """As Theirs.collectives; a sum inside an op has the name of the op and of the sum."""
        found = self._of_parameters()
        for letter, name in (("F", "forward"), ("B", "backward")):
            for at, where, task in self._run(letter):
                if not task.collective or task.stream not in ("model_comm", "expert_comm"):
                    continue
                label = task.label.partition(" ")[2]
                phase = "recompute" if label.endswith("'") else name
                groups = groups_of(self.graph.groups(task.axes, where))
                size = task.bytes
                if task.collective == "all_to_all":
                    size //= math.prod(self.graph.axes[axis] for axis in task.axes)
                for tensor in self._moved(at, letter, label):
                    found[(phase, task.collective, groups, size, tensor)] += 1
        return found

    def _moved(self, at: int, letter: str, label: str) -> list[str]:
        """The tensors of a collective, several where they go in one exchange."""
        if not re.search(r" and \d+ more$", label):
            return [self._tensor(at, label)]
        joined = self._bodies[self.pairing.copies[at].path].joined[letter]
        return [self._tensor(at, name) for name in joined]

    def _tensor(self, at: int, label: str) -> str:
        name = label.rstrip("'")
        if "/" in name:
            op, _, inner = name.partition("/")
            return f"{self.pairing.copies[at].ops[base(op)]}/{inner}"
        there = self.pairing.names[at][name.removeprefix("d ")]
        return f"grad({there})" if name.startswith("d ") else there

    def _of_parameters(self) -> Facts:
        """Gathers of parameters, and what stages exchange for a parameter that they share."""
        found: Facts = Counter()
        for program in self.graph.programs:
            for phase, task in self._of_data_parallelism(program):
                groups = groups_of(self.graph.groups(task.axes, program.where))
                if task.label == "param all_gather":  # a row for each group there
                    for group in groups:
                        fact = ("all_gather", frozenset((group,)), task.bytes, "parameters")
                        found[("optimizer", *fact)] += 1
                elif task.collective == "all_gather":
                    unit = task.label.removeprefix("all_gather ")
                    name = "backward" if phase == "B" else "forward"
                    found[(name, "all_gather", groups, task.bytes, unit)] += 1
                elif task.label == "tied gradient" and program is self.graph.programs[0]:
                    pairs = groups_of(self.graph.groups(task.axes))
                    tied = f"grad({self.pairing.ties[0][0]})"
                    found[("optimizer", task.collective, pairs, task.bytes, tied)] += 1
        return found

    def _of_data_parallelism(self, program: pc.compiled.Program) -> Iterator[tuple[str, Task]]:
        """(phase, task) of gradients and parameters."""
        for instance in program.instances:
            for task in instance.block.tasks * instance.repeats:
                if task.stream == "grad_comm":
                    yield instance.phase, task

    def messages(self) -> Facts:
        """As Theirs.messages."""
        found: Facts = Counter()
        for program in self.graph.programs:
            for instance in program.instances:
                for task in instance.block.tasks:
                    if task.label != "send" or instance.micro_batch != 0:
                        continue
                    phase = "forward" if task.peer_offset > 0 else "backward"
                    there = {**program.where, "pp": program.where["pp"] + task.peer_offset}
                    ends = (self.graph.devices(where) for where in (program.where, there))
                    for pair in zip(*ends, strict=True):
                        found[(phase, *pair, task.bytes)] += 1
        return found

    # --- Gradients.

    def gradients(self) -> Counter[Gradient]:
        """The gradient of each parameter, once for each group that reduces it."""
        made = {
            task.collective for p in self.graph.programs for _, task in self._of_data_parallelism(p)
        }
        kind = "reduce_scatter" if "reduce_scatter" in made else "all_reduce"
        depths = self._depths()
        found: dict[tuple[int, frozenset[int], str], Gradient] = {}
        for at, copy in enumerate(self.pairing.copies):
            where = self._place(at)
            devices = frozenset(self.graph.devices(where))
            for name, layout in self._bodies[copy.path].gradients.items():
                axes = [axis for axis, how in layout.items() if how.startswith("Partial")]
                size = self._bytes((copy.tensor(name) or {})["dims"], layout)
                there, depth = self.pairing.names[at][name], depths[at, f"d {name}"]
                for members in self.graph.groups(axes, where):
                    group = frozenset(members)
                    one = Gradient(where["pp"], devices, kind, group, there, size, depth)
                    before = found.get((one.stage, group, there))
                    if before is None or before.depth < depth:  # of a tied one, the later
                        found[one.stage, group, there] = one
        return Counter(found.values())

    def reduced_bytes(self) -> list[int]:
        """Bytes of the compiled reductions of gradients, by any device of each stage."""
        return [
            sum(
                task.bytes
                for _, task in self._of_data_parallelism(program)
                if task.collective in ("all_reduce", "reduce_scatter")
            )
            for program in self.graph.programs
            if all(place == 0 for axis, place in program.where.items() if axis != "pp")
        ]

    def _depths(self) -> dict[tuple[int, str], int]:
        """Longest path of backward ops up to each gradient, by copy and name."""
        found: dict[tuple[int, str], int] = {}
        arriving: list[int] = []
        for at, copy in reversed(list(enumerate(self.pairing.copies))):
            names = [f"d {tensor['name']}" for tensor in copy.spec["tensors"]]
            leaving = [(at, names[port]) for port in copy.spec["out_ports"]]
            found.update(zip(leaving, arriving, strict=False))  # the last copy's leave for nowhere
            for op in self._bodies[copy.path].ops:
                if op.phase == "F":
                    continue
                depth = 1 + max((found.get((at, one.name), 0) for one in op.reads), default=0)
                for one in op.writes:
                    found[at, one.name] = max(found.get((at, one.name), 0), depth)
            arriving = [found.get((at, names[port]), 0) for port in copy.spec["in_ports"]]
        return found

    # --- State and schedule.

    def state(self) -> Facts:
        """As Theirs.state; of a gradient that is reduced at once, the shard."""
        found: Facts = Counter()
        for program in self.graph.programs:
            shards = sum(
                task.bytes // math.prod(self.graph.axes[axis] for axis in task.axes)
                for _, task in self._of_data_parallelism(program)
                if task.collective == "reduce_scatter"
            )
            sizes = {
                "parameter": program.bytes["parameters"],
                "gradient": program.bytes["gradients"] or shards,
                "buffer": program.bytes["optimizer"],
            }
            for device in self.graph.devices(program.where):
                found.update((kind, device, size) for kind, size in sizes.items() if size)
        return found

    def layouts(self) -> Facts:
        """As Theirs.layouts, but for ZeRO's shards."""
        found: set[Fact] = set()
        for at, copy in enumerate(self.pairing.copies):
            for op in self._bodies[copy.path].ops:
                for one in op.reads:
                    tensor = copy.tensor(one.name)
                    if op.phase == "F" and tensor is not None and tensor["kind"] == "parameter":
                        size = self._bytes(tensor["dims"], one.layout)
                        name = self.pairing.names[at][one.name]
                        found.add((name, size, self._alike(at, one.layout)))
        return Counter(found)

    def _alike(self, at: int, layout: Layout) -> Groups:
        """Groups of devices that have the same part."""
        cut = [axis for axis, how in layout.items() if how.startswith("Shard")]
        on = {axis: int(how[3:-1]) for axis, how in layout.items() if how.startswith("On")}
        axes = [axis for axis in self.graph.axes if axis not in (*cut, *on, "pp")]
        return groups_of(self.graph.groups(axes, self._place(at) | on))

    def order(self) -> Facts:
        """As Theirs.order."""
        lines = self._schedule.splitlines()
        rows = [line.partition(": ")[2].split() for line in lines]
        return Counter(
            (stage, tuple(step.partition(".")[0] for step in row)) for stage, row in enumerate(rows)
        )
