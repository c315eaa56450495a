"""Which dims of all tensors are the same, from the op rules that tensors go through."""

from __future__ import annotations

from dataclasses import dataclass, field

from plancast.importers.atoms import Atom, Layout, Piece, atoms_of, expand, find, unify
from plancast.importers.follow import follow
from plancast.importers.ir import Graph, Node, Value, resolve
from plancast.importers.roles import roles
from plancast.importers.rule_text import Template, template


@dataclass
class Tensor:
    """A value as a view of a tensor in memory: `base` with dims in the order of `stored`."""

    base: Value
    layout: Layout


@dataclass
class Call:
    """A node with a rule whose factors are bound: each to the atoms of its dims."""

    node: Node
    template: Template
    factors: dict[str, list[list[Atom]]] = field(default_factory=dict)
    # For each argument and result: which factor each of its dims belongs to.
    input_factors: list[list[str]] = field(default_factory=list)
    output_factors: list[list[str]] = field(default_factory=list)


class Binding:
    """Tensors and bound calls of a graph; `failures` could not be bound to their rules."""

    def __init__(self) -> None:
        self.tensors: dict[int, Tensor] = {}
        self.calls: dict[int, Call] = {}
        self.failures: list[Node] = []
        self.batch = Atom(1, batch=True)
        self._twins: dict[int, Atom] = {}
        self._keep: list[Value] = []  # so that no id is used twice

    def tensor(self, value: Value) -> Tensor:
        """The tensor of a value; inputs and parameters get dims of their own."""
        value = resolve(value)
        found = self.tensors.get(id(value))
        if found is None:
            layout: Layout = []
            for dim, size in enumerate(value.shape):
                atoms = self._batched(size) if dim == 0 and value.batched else [Atom(size)]
                layout.append([Piece(atom, dim) for atom in atoms])
            found = self._set(value, Tensor(value, layout))
        return found

    def _batched(self, size: int) -> list[Atom]:
        """The batch, or a multiple of it; the first that is seen says how large it is."""
        if self.batch.size == 1:
            self.batch.size = size
        if size == self.batch.size:
            return [self.batch]
        return (
            [Atom(size)] if size % self.batch.size else [self.batch, Atom(size // self.batch.size)]
        )

    def _set(self, value: Value, tensor: Tensor) -> Tensor:
        self.tensors[id(value)] = tensor
        self._keep.append(value)
        return tensor

    def stored(self, base: Value) -> list[Piece]:
        """The dims of a tensor in memory, as atoms."""
        return expand(piece for dim in self.tensor(base).layout for piece in dim)

    def view(self, node: Node) -> bool:
        """Binds a view; false if the rule language cannot say it."""
        given = self.tensor(node.inputs[0])
        layout = follow(given.layout, [node])
        if layout is None:
            return False
        self._set(node.output, Tensor(given.base, layout))
        return True

    def regroup(self, node: Node) -> bool:
        """Binds a copy whose dims are those of its input, each as atoms of its own."""
        self.tensor(node.inputs[0])
        layout: Layout = []
        for dim, pieces in enumerate(self.tensor(node.inputs[0]).layout):
            atoms = atoms_of(pieces)
            if len(atoms) != 1 and dim in node.attrs["dims"]:
                atoms = [Atom(node.output.shape[dim])]
            elif dim in node.attrs["dims"]:
                atoms = [Atom(atom.size) for atom in atoms]
            layout.append([Piece(atom, dim) for atom in atoms])
        self._set(node.output, Tensor(node.output, layout))
        return True

    def call(self, node: Node) -> bool:
        """Binds a call of a rule; false if the tensors do not fit it."""
        ranks = tuple(len(value.shape) for value in node.inputs)
        call = Call(node, template(node.op, ranks))
        twin = roles().twins.get(node.rule)
        for argument, value in zip(call.template.inputs, node.inputs, strict=True):
            tensor = self.tensor(value)
            aligned = align(argument.factors, len(value.shape))
            if aligned is None:
                return False
            call.input_factors.append(aligned)
            count: dict[str, int] = {}
            for factor, pieces in zip(aligned, tensor.layout, strict=True):
                atoms = atoms_of(pieces)
                if factor == twin and argument.name != "p":
                    atoms = [self._twin(atom) for atom in atoms]
                dims = call.factors.setdefault(factor, [])
                place = count.setdefault(factor, 0)
                count[factor] += 1
                if place == len(dims):
                    dims.append(atoms)
                elif not unify(dims[place], atoms):
                    return False
        for output, value in zip(call.template.outputs, node.outputs, strict=True):
            aligned = align(output.factors, len(value.shape))
            if aligned is None:
                return False
            call.output_factors.append(aligned)
            layout: Layout = []
            count = {}
            for dim, (factor, size) in enumerate(zip(aligned, value.shape, strict=True)):
                dims = call.factors.setdefault(factor, [])
                place = count.setdefault(factor, 0)
                count[factor] += 1
                if place == len(dims):
                    dims.append([Atom(size)])
                layout.append([Piece(atom, dim) for atom in dims[place]])
            self._set(value, Tensor(value, layout))
        for factor in call.template.factors:
            if factor not in call.factors:
                size = node.attrs.get("sizes", {}).get(factor)
                call.factors[factor] = [] if size is None else [[Atom(size)]]
        self.calls[id(node)] = call
        return True

    def _twin(self, atom: Atom) -> Atom:
        root = find(atom)
        return self._twins.setdefault(id(root), Atom(root.size))

    def atoms(self, call: Call, factor: str) -> list[Atom]:
        """The atoms a factor stands for, outer first."""
        return [
            atom for dim in call.factors[factor] for atom in atoms_of([Piece(a, 0) for a in dim])
        ]


def align(factors: list[str], rank: int) -> list[str] | None:
    """The factor of each dim. A rule over [b,s,...] takes any number of dims for s."""
    spare = rank - len(factors)
    if spare == 0:
        return list(factors)
    if "s" not in factors or spare < -1:
        return None
    place = factors.index("s")
    return factors[:place] + ["s"] * (1 + spare) + factors[place + 1 :]


def bind(graph: Graph) -> Binding:
    """Binds all nodes; a reshape that cannot be said becomes a failure, as do misfits."""
    binding = Binding()
    for node in graph.nodes:
        if node.op in ("reshape", "permute", "expand"):
            if binding.view(node):
                continue
        elif node.op == "regroup":
            binding.regroup(node)
            continue
        elif node.op != "opaque" and binding.call(node):
            continue
        binding.failures.append(node)
        bind_opaque(binding, node)
    return binding


def bind_opaque(binding: Binding, node: Node) -> None:
    """Results of a node without a rule: dims of their own, but for the batch."""
    batched = False
    for value in node.inputs:
        tensor = binding.tensor(value)
        first = atoms_of(tensor.layout[0]) if tensor.layout else []
        batched = batched or bool(first and first[0].batch)
    for value in node.outputs:
        layout: Layout = []
        size = binding.batch.size
        for dim, extent in enumerate(value.shape):
            atoms = [Atom(max(extent, 1))]  # some operators give empty tensors on the side
            if dim == 0 and extent and batched and extent % size == 0:
                atoms = [binding.batch] if extent == size else [binding.batch, Atom(extent // size)]
            layout.append([Piece(atom, dim) for atom in atoms])
        binding._set(value, Tensor(value, layout))
