"""What our compiler makes of a case, in the same facts as those of the oracle.

Ops are paired with Proteus's in order of creation: a product and the addition of its bias
are one op there. Names of tensors and parameters follow from the pairs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import plancast as pc
from oracle import Groups, Oracle, Shape, groups_of, shape_of
from passes import Body, Layout, Op, Operand, bodies
from plancast.builder import GraphBuilder
from plancast.planning import compile_passes

# Ours that compute nothing there, and the rules that stand for a type of op.
VIEWS = ("flatten", "merge_last_dims", "split_heads")
RULES = {
    "Activation": ("gelu_nd",),
    "AdaptivePool2d": ("global_avg_pool",),
    "Add": ("add",),
    "AttentionMask": ("attention_mask",),
    "BatchNorm2d": ("batch_norm_local",),
    "Concat": ("concat2", "concat3", "concat4", "stack"),
    "Conv2d": ("conv2d",),
    "CrossEntropy": ("binary_loss", "classification_loss", "cross_entropy"),
    "Dropout": ("dropout_nd",),
    "Embedding": ("embedding", "embedding_bag"),
    "LayerNorm": ("layer_norm",),
    "Linear": ("dense", "linear_bias_nd", "linear_nd", "qkv"),
    "Matmul": ("context", "pairwise_products", "scores"),
    "Pool2d": ("avg_pool2d", "max_pool2d"),
    "ReLU": ("relu_nd",),
    "SliceFW": ("pairs",),
    "Softmax": ("softmax_nd",),
}
BIASES = (".bias", ".add_bias")  # ops that belong to the product before them
# Dims of ours that are one dim of theirs.
JOINED = {
    "Linear": (("kv_heads", "qkv_of_head"), ("kv_heads", "head_dim")),
    "Matmul": (("batch", "kv_heads"),),
    "Concat": (("features", "embedding_dim"),),
}
MACHINE = "dgx-a100-80g:1x{devices}"


@dataclass(frozen=True)
class Model:
    """A model of the examples, built with ours."""

    builder: GraphBuilder
    graph: dict[str, Any]
    without: tuple[str, ...] = ()  # ops of theirs that have none here


@dataclass
class Copy:
    """One run of a module: a layer, a block."""

    path: str
    number: int
    spec: dict[str, Any]
    ops: dict[str, str] = field(default_factory=dict)  # base name of an op: its name there

    def name_of(self, op: str) -> str:
        return self.ops[base(op)]


def base(op: str) -> str:
    """The op that a bias belongs to."""
    for ending in BIASES:
        op = op.removesuffix(ending)
    return op


class Ours:
    """A model under a strategy."""

    def __init__(self, model: Model, strategy: str, oracle: Oracle, batch: int, devices: int) -> None:
        self.model, self.oracle, self._batch = model, oracle, batch
        core = pc.Model.from_graph(model.graph)
        self.parameters = core.parameters
        tree = pc.Strategy.from_yaml(strategy)
        machine = pc.Machine.preset(MACHINE.format(devices=devices))
        options: dict[str, Any] = {"batch": batch, "dtype": "fp32", "profile": "eager"}
        texts = compile_passes(core, machine, tree, **options)
        self.graph = pc.execution_graph(core, machine, tree, **options)
        self.bodies = bodies(texts["relayout"], texts["partition"])
        self.schedule = texts["schedule"]
        self.micro_batches = 1 + max(
            i.micro_batch for program in self.graph.programs for i in program.instances
        )
        self.sizes = dict(model.graph["dims"]) | {"batch": batch // self.micro_batches}

    # --- Names.

    @cached_property
    def copies(self) -> list[Copy]:
        """Every run of a module in order, its ops paired with theirs."""
        copies = [
            Copy(spec["path"], number, spec)
            for spec in self.model.graph["modules"]
            for number in range(spec["repeat"])
        ]
        theirs = iter([op for op in self.oracle.ops if op[0] not in self.model.without])
        for copy in copies:
            for op, rule in self._computing(copy):
                name, of_type = next(theirs)
                assert rule in RULES[of_type], (copy.path, op, rule, name, of_type)
                copy.ops[op] = name
        assert next(theirs, None) is None, "ops of theirs without one of ours"
        return copies

    def _computing(self, copy: Copy) -> list[tuple[str, str]]:
        """Names and rules of a module's ops that compute, in order of creation there."""
        found: dict[str, str] = {}
        for op in copy.spec["ops"]:
            if op["rule"].name not in VIEWS:
                found.setdefault(base(op["name"]), op["rule"].name)
        # Residual blocks: the branch that only changes the shape is created last there.
        late = [name for name in found if name.startswith("downsample")]
        names = [name for name in found if name not in late]
        if late:
            at = names.index("add")
            names[at:at] = late
        return [(name, found[name]) for name in names]

    def _tensors(self, copy: Copy) -> dict[str, str]:
        """Names there of what a module's ops write, and of its parameters."""
        found: dict[str, str] = {}
        tensors = copy.spec["tensors"]
        parameters: dict[str, list[str]] = {}
        for op in copy.spec["ops"]:
            reads = [tensors[at] for at in op["inputs"]]
            for at in op["outputs"]:
                if op["rule"].name in VIEWS:
                    found[tensors[at]["name"]] = found.get(reads[0]["name"], "")
                else:
                    found[tensors[at]["name"]] = f"{copy.name_of(op['name'])}.out"
            parameters.setdefault(base(op["name"]), []).extend(
                one["name"] for one in reads if one["kind"] == "parameter"
            )
        for op, names in parameters.items():
            for name, which in zip(names, ("weight", "bias"), strict=False):
                found[name] = f"{copy.ops[op]}.{which}"
        return found

    @cached_property
    def names(self) -> list[dict[str, str]]:
        """Of each copy: names there of its tensors; what enters has its maker's name."""
        found: list[dict[str, str]] = []
        leaving: list[str] = []
        for copy in self.copies:
            names = {}
            for at, made in zip(copy.spec["in_ports"], leaving, strict=False):
                names[copy.spec["tensors"][at]["name"]] = made
            names |= {name: there or names.get("x", "") for name, there in self._tensors(copy).items()}
            found.append(names)
            leaving = [names[copy.spec["tensors"][at]["name"]] for at in copy.spec["out_ports"]]
        tied = {there: one for one, there in self._ties()}
        return [{ours: tied.get(there, there) for ours, there in names.items()} for names in found]

    def _ties(self) -> Iterator[tuple[str, str]]:
        """Names there of parameters that are one: the first, the other."""
        for (first, one), (second, other) in self.model.graph["ties"]:
            modules = self.model.graph["modules"]
            places = ((modules[first], one), (modules[second], other))
            yield tuple(  # type: ignore[misc]
                self._tensors(next(c for c in self.copies if c.spec is module))[
                    module["tensors"][at]["name"]
                ]
                for module, at in places
            )

    # --- Shapes and places.

    def _part(self, dims: list[str], layout: Layout, of_type: str) -> Shape:
        sizes = [self.sizes[dim] for dim in dims]
        for axis, how in layout.items():
            if how.startswith("Shard("):
                sizes[int(how[6:].rstrip(")"))] //= self.graph.axes[axis]
        for first, second in JOINED.get(of_type, ()):
            if first in dims and second in dims:
                sizes[dims.index(first)] *= sizes[dims.index(second)]
                sizes[dims.index(second)] = 1
        return shape_of(sizes)

    def _program_of(self, at: int) -> dict[str, int]:
        """Where the devices are that run a copy."""
        copy = self.copies[at]
        for program in self.graph.programs:
            for instance in program.instances:
                first, count = instance.first_layer, instance.layers * instance.repeats
                if instance.block.name == f"{copy.path}.F" and first <= copy.number < first + count:
                    return dict(program.where)
        raise AssertionError(f"{copy.path} {copy.number} runs nowhere")

    # --- Facts.

    def compute(self, phase: str) -> Counter[tuple[Any, ...]]:
        """As Oracle.compute."""
        if phase == "recompute":
            again = self._again()
            return Counter({f: n for f, n in self.compute("forward").items() if f[0] in again})
        types = dict(self.oracle.ops)
        found: Counter[tuple[Any, ...]] = Counter()
        for at, copy in enumerate(self.copies):
            devices = frozenset(self.graph.devices(self._program_of(at)))
            for op in copy.ops:
                of_type = types[copy.ops[op]]
                parts = [
                    one
                    for one in self.bodies[copy.path].ops
                    if base(one.name) == op and (one.phase == "F") == (phase == "forward")
                ]
                reads, writes = self._border(copy, parts, of_type, backward=phase == "backward")
                if phase == "backward" and of_type == "CrossEntropy":
                    reads = ()
                found[(copy.ops[op], reads, writes, devices)] += 1
        return found

    def _border(
        self, copy: Copy, parts: list[Op], of_type: str, *, backward: bool
    ) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
        """Shapes of what an op reads and writes; the addition of a bias brings the bias alone."""
        tensors = {tensor["name"]: tensor for tensor in copy.spec["tensors"]}
        sides: tuple[list[Shape], list[Shape]] = ([], [])
        seen: set[str] = set()
        for op in parts:
            reads = () if backward else self._named(copy, op)
            if backward:  # the gradient of a result, which several ops read
                reads = tuple(r for r in op.reads if r.name.startswith("d ") and r.name not in seen)
                seen |= {one.name for one in reads}
            for side, operands in zip(sides, (reads, op.writes), strict=True):
                for one in operands:
                    tensor = tensors.get(one.name.removeprefix("d "))
                    if tensor is None:
                        continue
                    if op.name == base(op.name) or tensor["kind"] == "parameter":
                        side.append(self._part(tensor["dims"], one.layout, of_type))
        return tuple(sorted(sides[0])), tuple(sorted(sides[1]))

    def _named(self, copy: Copy, op: Op) -> tuple[Operand, ...]:
        """What a forward op reads, with the names of data."""
        spec = next(one for one in copy.spec["ops"] if one["name"] == op.name)
        names = [copy.spec["tensors"][at]["name"] for at in spec["inputs"]]
        return tuple(Operand(name, one.layout) for name, one in zip(names, op.reads, strict=True))

    def _again(self) -> set[str]:
        """Names there of the ops that run again in backward."""
        found = set()
        for at, label in self._tasks_of_copies("B"):
            if label.endswith(".again"):
                name = base(label.removesuffix(".again"))
                if name in self.copies[at].ops:
                    found.add(self.copies[at].ops[name])
        return found

    def _tasks_of_copies(self, phase: str) -> Iterator[tuple[int, str]]:
        for at, task in self._run(phase):
            yield at, task.label

    def _run(self, phase: str) -> Iterator[tuple[int, Any]]:
        """(copy, task) of one micro-batch's passes; with `_where`, those of one program."""
        for at, _, task in self._run_with_place(phase):
            yield at, task

    def _run_with_place(self, phase: str) -> Iterator[tuple[int, dict[str, int], Any]]:
        places = {(copy.path, copy.number): at for at, copy in enumerate(self.copies)}
        for program in self.graph.programs:
            for instance in program.instances:
                path, _, ending = instance.block.name.rpartition(".")
                if ending != phase or instance.micro_batch != 0:
                    continue
                for repeat in range(instance.repeats):
                    at = places[path, instance.first_layer + repeat]
                    for task in instance.block.tasks:
                        yield at, dict(program.where), task

    def collectives(self) -> Counter[tuple[Any, ...]]:
        """As Oracle.collectives; a sum inside an op has the name of the op and of the sum."""
        found: Counter[tuple[Any, ...]] = Counter()
        for letter, phase in (("F", "forward"), ("B", "backward")):
            for at, where, task in self._run_with_place(letter):
                if not task.collective or task.stream != "model_comm":
                    continue
                label = task.label.partition(" ")[2]
                of_phase = "recompute" if label.endswith("'") else phase
                groups = groups_of(self.graph.groups(task.axes, where))
                size = task.bytes
                if task.collective == "all_to_all":
                    size //= math.prod(self.graph.axes[axis] for axis in task.axes)
                tensor = self._tensor(at, label.rstrip("'"))
                found[(of_phase, task.collective, groups, size, tensor)] += 1
        return found + self._of_parameters()

    def _tensor(self, at: int, label: str) -> str:
        if "/" in label:
            op, _, inner = label.partition("/")
            return f"{self.copies[at].name_of(op)}/{inner}"
        if label.startswith("d "):
            return f"grad({self.names[at][label[2:]]})"
        return self.names[at][label]

    def _of_parameters(self) -> Counter[tuple[Any, ...]]:
        """Gathers of parameters, and what stages exchange for a parameter that they share."""
        found: Counter[tuple[Any, ...]] = Counter()
        for program in self.graph.programs:
            for instance in program.instances:
                for task in instance.block.tasks * instance.repeats:
                    if task.stream != "grad_comm" or instance.micro_batch != 0:
                        continue
                    if task.collective == "all_gather":
                        phase = {"F": "forward", "B": "backward"}.get(instance.phase, "optimizer")
                        if task.label.startswith("all_gather ") and phase == "optimizer":
                            phase = "forward"  # ahead of the first pass
                        unit = task.label.removeprefix("all_gather ")
                        unit = "parameters" if unit == "param all_gather" else unit
                        groups = groups_of(self.graph.groups(task.axes, program.where))
                        # One fused collective is a row for each group there.
                        if unit == "parameters":
                            for group in groups:
                                found[(phase, "all_gather", frozenset((group,)), task.bytes, unit)] += 1
                        else:
                            found[(phase, "all_gather", groups, task.bytes, unit)] += 1
                    elif task.collective == "send_recv" and task.label == "tied gradient":
                        if program is self.graph.programs[0]:
                            pairs = groups_of(self.graph.groups(task.axes))
                            tied = f"grad({next(self._ties())[0]})"
                            found[("optimizer", "send_recv", pairs, task.bytes, tied)] += 1
        return found

    def messages(self) -> Counter[tuple[Any, ...]]:
        """As Oracle.messages."""
        found: Counter[tuple[Any, ...]] = Counter()
        for program in self.graph.programs:
            for instance in program.instances:
                for task in instance.block.tasks:
                    if task.label != "send" or instance.micro_batch != 0:
                        continue
                    phase = "forward" if task.peer_offset > 0 else "backward"
                    there = {**program.where, "pp": program.where["pp"] + task.peer_offset}
                    pairs = zip(
                        self.graph.devices(program.where), self.graph.devices(there), strict=True
                    )
                    for pair in pairs:
                        found[(phase, *pair, task.bytes)] += 1
        return found

    def reductions(self) -> Counter[tuple[Any, ...]]:
        """As Oracle.reductions."""
        return Counter(fact[:3] for fact in self.gradients())

    def gradients(self) -> list[tuple[str, frozenset[int], str, int, int]]:
        """(kind, group, parameter, bytes, depth) of each reduction of a gradient."""
        made = {t.collective for p in self.graph.programs for i in p.instances
                for t in i.block.tasks if t.stream == "grad_comm"}
        kind = "reduce_scatter" if "reduce_scatter" in made else "all_reduce"
        depths = self._depths()
        found: dict[tuple[str, frozenset[int], str], tuple[int, int]] = {}
        for at, copy in enumerate(self.copies):
            for name, where in self.bodies[copy.path].gradients.items():
                axes = [axis for axis, how in where.items()
                        if how.startswith("Partial") and self.graph.axes[axis] > 1]
                if not axes:
                    continue
                dims = next(t["dims"] for t in copy.spec["tensors"] if t["name"] == name)
                size = 4 * math.prod(self._part(dims, where, ""))
                depth = depths[at, f"d {name}"]
                for group in self.graph.groups(axes, self._program_of(at)):
                    key = (kind, frozenset(group), self.names[at][name])
                    found[key] = max(found.get(key, (0, 0)), (size, depth))
        return [(*key, *value) for key, value in found.items()]

    def _depths(self) -> dict[tuple[int, str], int]:
        """Longest path of backward ops up to each gradient, by copy and name."""
        found: dict[tuple[int, str], int] = {}
        arriving: list[int] = []
        for at in range(len(self.copies) - 1, -1, -1):
            copy = self.copies[at]
            names = [tensor["name"] for tensor in copy.spec["tensors"]]
            for port, depth in zip(copy.spec["out_ports"], arriving, strict=False):
                found[at, f"d {names[port]}"] = depth
            for op in self.bodies[copy.path].ops:
                if op.phase == "F":
                    continue
                before = [found.get((at, one.name), 0) for one in op.reads]
                depth = 1 + max(before, default=0)
                for one in op.writes:
                    found[at, one.name] = max(found.get((at, one.name), 0), depth)
            arriving = [found.get((at, f"d {names[port]}"), 0) for port in copy.spec["in_ports"]]
        return found

    def state(self) -> Counter[tuple[Any, ...]]:
        """As Oracle.state."""
        kinds = {"parameters": "parameter", "gradients": "gradient", "optimizer": "buffer"}
        return Counter(
            (kind, device, program.bytes[ours])
            for program in self.graph.programs
            for device in self.graph.devices(program.where)
            for ours, kind in kinds.items()
            if program.bytes[ours]
        )

    def parameter_layouts(self) -> Counter[tuple[Any, ...]]:
        """As Oracle.parameter_layouts, without ZeRO's shards."""
        found: dict[str, tuple[int, Groups]] = {}
        stages: dict[str, list[Groups]] = {}
        for at, copy in enumerate(self.copies):
            for op in self.bodies[copy.path].ops:
                for one in op.reads:
                    tensor = next((t for t in copy.spec["tensors"] if t["name"] == one.name), None)
                    if op.phase != "F" or tensor is None or tensor["kind"] != "parameter":
                        continue
                    name = self.names[at][one.name]
                    cut = [axis for axis, how in one.layout.items() if how.startswith("Shard")]
                    alike = [axis for axis in self.graph.axes if axis not in cut and axis != "pp"]
                    groups = groups_of(self.graph.groups(alike, self._program_of(at)))
                    stages.setdefault(name, []).append(groups)
                    found[name] = (4 * math.prod(self._part(tensor["dims"], one.layout, "")), groups)
        return Counter(
            (name, size, groups)
            for name, (size, _) in found.items()
            for groups in set(stages[name])
        )

    def order(self) -> list[list[str]]:
        """As Oracle.order."""
        return [
            [step.partition(".")[0] for step in line.split(": ")[1].split()]
            for line in self.schedule.splitlines()
        ]
