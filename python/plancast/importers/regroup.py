"""Products of dims where a rule wants one dim: views that number their elements anew."""

from __future__ import annotations

from plancast.importers.atoms import Atom, atoms_of, expand
from plancast.importers.binding import Binding, Call
from plancast.importers.ir import Graph, Node, Value, resolve


def insert_regroups(graph: Graph, binding: Binding) -> bool:
    """Puts a `regroup` node before and after calls that need dims in one piece.

    True if there was any; dims must be bound again then.
    """
    added: dict[int, tuple[list[Node], list[Node]]] = {}
    for call in binding.calls.values():
        before, after = _around(binding, call)
        if before or after:
            added[id(call.node)] = before, after
    if not added:
        return False
    nodes: list[Node] = []
    for node in graph.nodes:
        before, after = added.get(id(node), ([], []))
        nodes += [*before, node, *after]
    graph.nodes = nodes
    for node in graph.nodes:
        if id(node) not in added:
            node.inputs = [resolve(value) for value in node.inputs]
    graph.outputs = [resolve(value) for value in graph.outputs]
    return True


def _around(binding: Binding, call: Call) -> tuple[list[Node], list[Node]]:
    wide = {
        factor for factor in call.template.fixed
        if factor in call.factors and len(binding.atoms(call, factor)) > 1
    }  # fmt: skip
    wide -= set(call.node.attrs.get("plan_dims", {}))
    before: list[Node] = []
    after: list[Node] = []
    if not wide or call.node.attrs.get("regrouped"):
        return before, after
    call.node.attrs["regrouped"] = True
    for place, factors in enumerate(call.input_factors):
        dims = {dim for dim, factor in enumerate(factors) if factor in wide}
        if dims:
            node = _node(call.node, call.node.inputs[place], dims)
            call.node.inputs[place] = node.output
            before.append(node)
    for place, factors in enumerate(call.output_factors):
        dims = {dim for dim, factor in enumerate(factors) if factor in wide}
        if dims:
            given = call.node.outputs[place]
            own = Value(given.shape, given.dtype, node=call.node)
            call.node.outputs[place] = own
            node = _node(call.node, own, dims)
            node.outputs = [given]
            given.node = node
            after.append(node)
    return before, after


def _node(like: Node, value: Value, dims: set[int]) -> Node:
    node = Node("regroup", [value], [], like.path, like.label, {"dims": dims}, like.order)
    node.outputs = [Value(value.shape, value.dtype, node=node)]
    return node


def regroup_text(binding: Binding, node: Node) -> tuple[str, dict[str, Atom]] | None:
    """The rule of a regroup and the atoms of its factors; None if products do not line up."""
    source, target = binding.tensor(node.inputs[0]), binding.tensor(node.output)
    factors: dict[str, Atom] = {}
    read: dict[tuple[int, int], str] = {}
    written: list[str] = []
    maps: list[str] = []
    for dim, (old, new) in enumerate(zip(source.layout, target.layout, strict=True)):
        given, wanted = expand(old), atoms_of(new)
        if len(given) == len(wanted):
            names = [f"i{dim}_{place}" for place in range(len(wanted))]
            written += names
            letters = names
            factors.update(zip(names, wanted, strict=True))
        elif len(wanted) == 1 or len(given) == 1:
            whole = f"f{dim}"
            parts = [piece.atom for piece in given] if len(wanted) == 1 else wanted
            names = [f"i{dim}_{place}" for place in range(len(parts))]
            factors.update(zip(names, parts, strict=True))
            factors[whole] = wanted[0] if len(wanted) == 1 else given[0].atom
            maps.append(f"{whole} == {_radix(names)}")
            written += [whole] if len(wanted) == 1 else names
            letters = names if len(wanted) == 1 else [whole]
        else:
            return None
        for piece, letter in zip(given, letters, strict=True):
            if piece.stretched:
                continue
            read[piece.dim, id(piece.atom)] = letter
    index = []
    for piece in binding.stored(source.base):
        letter_of = read.get((piece.dim, id(piece.atom)))
        if letter_of is None:
            return None
        index.append(letter_of)
    where = f" where {' and '.join(maps)}" if maps else ""
    text = f"regroup(x) -> (y) {{\n y[{','.join(written)}] = x[{','.join(index)}]{where}\n}}"
    return text, factors


def _radix(names: list[str]) -> str:
    """The number of a point, outer first."""
    terms = []
    for place, name in enumerate(names):
        sizes = [f"size({inner})" for inner in names[place + 1 :]]
        terms.append(" * ".join([*sizes, name]))
    return " + ".join(terms)
