"""From bound nodes to ops as the core takes them: rule texts and named dims."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from plancast.importers.atoms import expand
from plancast.importers.binding import Binding, Call, bind
from plancast.importers.ir import VIEWS, Graph, Node, Value, resolve
from plancast.importers.opaque import opaque_text
from plancast.importers.regroup import insert_regroups, regroup_text
from plancast.importers.roles import DimNames


@dataclass
class Op:
    """One op of the model: a rule, the stored tensors it reads and writes, its dims."""

    node: Node
    text: str
    inputs: list[Value]  # stored tensors
    input_dtypes: list[str]
    outputs: list[Value]
    factor_dims: dict[str, str]


@dataclass
class Lowered:
    """All ops of a model; `dims` are the names and sizes of its dims."""

    ops: list[Op]
    dims: dict[str, int]
    failures: list[Node]
    binding: Binding
    names: DimNames

    def dims_of(self, stored: Value) -> list[str]:
        """Names of the dims of a stored tensor."""
        return [self.names.name(piece.atom) for piece in self.binding.stored(stored)]


def lower(graph: Graph) -> Lowered:
    """Binds a graph and writes its ops; what no rule can say becomes opaque."""
    binding = bind(graph)
    while insert_regroups(graph, binding):
        binding = bind(graph)
    names = DimNames(binding, binding.calls.values())
    failed = {id(node) for node in binding.failures}
    lowered = Lowered([], names.sizes, list(binding.failures), binding, names)
    for node in graph.nodes:
        call = binding.calls.get(id(node))
        op: Op | None = None
        if node.op == "regroup":
            op = _regroup(lowered, node)
        elif call is not None:
            op = _op(binding, names, call)
            if op is None:
                lowered.failures.append(node)
        elif node.op in VIEWS and id(node) not in failed:
            continue
        lowered.ops.append(op or opaque_op(lowered, node))
    _keep_sparse(lowered)
    return lowered


def _keep_sparse(lowered: Lowered) -> None:
    """Gradients are sparse where nothing but one look-up reads the table."""
    readers = Counter(id(value) for op in lowered.ops for value in op.inputs if value.sparse)
    for op in lowered.ops:
        for value in op.inputs:
            value.sparse = value.sparse and readers[id(value)] == 1


def _op(binding: Binding, names: DimNames, call: Call) -> Op | None:
    """The op of a call; None if a factor that must be single is a product."""
    symbols: dict[str, list[str]] = {}
    dims: dict[str, str] = {}
    atoms = {factor: binding.atoms(call, factor) for factor in call.factors}
    plan_dims = call.node.attrs.get("plan_dims", {})
    for factor, parts in atoms.items():
        if factor in plan_dims:
            symbols[factor], dims[factor] = [factor], plan_dims[factor]
            names.sizes[plan_dims[factor]] = 0
        elif factor in call.template.fixed:
            if len(parts) > 1:
                return None
            symbols[factor] = [factor]
            dims[factor] = names.name(parts[0]) if parts else _unit(names)
        elif len(parts) == 1:
            symbols[factor] = [factor]
            dims[factor] = names.name(parts[0])
        else:
            symbols[factor] = [f"{factor}_{place + 1}" for place in range(len(parts))]
            dims.update(zip(symbols[factor], map(names.name, parts), strict=True))
    operands: dict[str, list[str]] = {}
    inputs = []
    for argument, value, factors in zip(
        call.template.inputs, call.node.inputs, call.input_factors, strict=True
    ):
        indices = _indices(binding, call, value, factors, symbols)
        if indices is None:
            return None
        operands[argument.name] = indices
        inputs.append(binding.tensor(value).base)
    text = call.template.text(symbols, operands, [base.kind == "parameter" for base in inputs])
    dtypes = [argument.dtype for argument in call.template.inputs]
    return Op(call.node, text, inputs, dtypes, call.node.outputs, dims)


def _unit(names: DimNames) -> str:
    names.sizes["one"] = 1
    return "one"


def _indices(
    binding: Binding, call: Call, value: Value, factors: list[str], symbols: dict[str, list[str]]
) -> list[str] | None:
    """The index of an argument: a symbol for every dim of the stored tensor."""
    tensor = binding.tensor(value)
    taken: dict[str, int] = {}
    found: dict[tuple[int, int], list[str]] = {}
    for factor, pieces in zip(factors, tensor.layout, strict=True):
        whole = expand(pieces)
        if factor in call.template.fixed and not whole:
            continue
        for piece in whole:
            place = taken.get(factor, 0)
            taken[factor] = place + 1
            if place >= len(symbols[factor]):
                return None
            if not piece.stretched:
                found.setdefault((piece.dim, id(piece.atom)), []).append(symbols[factor][place])
    indices = []
    for piece in binding.stored(tensor.base):
        candidates = found.get((piece.dim, id(piece.atom)))
        if not candidates:
            return None
        indices.append(candidates.pop(0))
    return indices


def _regroup(lowered: Lowered, node: Node) -> Op:
    """A copy that merges or splits dims; kernels read it in place."""
    binding, names = lowered.binding, lowered.names
    written = regroup_text(binding, node)
    if written is None:
        lowered.failures.append(node)
        return opaque_op(lowered, node)
    text, dims = written
    base = binding.tensor(node.inputs[0]).base
    named = {factor: names.name(atom) for factor, atom in dims.items()}
    return Op(node, text, [base], [base.dtype], node.outputs, named)


def opaque_op(lowered: Lowered, node: Node) -> Op:
    """An op that nothing is known of but what it reads and writes."""
    binding, names = lowered.binding, lowered.names
    inputs = []
    for value in node.inputs:
        base = binding.tensor(resolve(value)).base
        if base not in inputs:
            inputs.append(base)
    text, dims = opaque_text(
        [[piece.atom for piece in binding.stored(base)] for base in inputs],
        [base.dtype for base in inputs],
        [base.kind == "parameter" for base in inputs],
        [[piece.atom for piece in binding.stored(value)] for value in node.outputs],
    )
    named = {factor: names.name(atom) for factor, atom in dims.items()}
    dtypes = [base.dtype for base in inputs]
    return Op(node, text, inputs, dtypes, node.outputs, named)
