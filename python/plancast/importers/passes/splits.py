"""Fused weights: parts of a linear layer's result become results of layers of their own."""

from __future__ import annotations

from plancast.importers.atoms import Atom, Layout, Piece, expand, reshape
from plancast.importers.follow import follow
from plancast.importers.ir import VIEWS, Graph, Node, Value, resolve, source

_LINEAR = ("linear_nd", "linear_bias_nd")


def split_weights(graph: Graph) -> None:
    """A linear layer whose result is only read in parts becomes one layer for each part."""
    users = graph.users()
    for node in list(graph.nodes):
        if node.rule in _LINEAR and all(_is_weight(resolve(value)) for value in node.inputs[1:]):
            _split(graph, users, node)


def _is_weight(value: Value) -> bool:
    """A parameter, or one that is stored with its dims the other way round."""
    if value.kind == "op" and value.node is not None and value.node.op == "permute":
        value = resolve(value.node.inputs[0])
    return value.kind == "parameter"


class _Part:
    """A view of the layer's result that is `size` elements of `dim` from `start` on."""

    def __init__(self, node: Node, output: Value, start: int, size: int) -> None:
        self.node, self.output, self.start, self.size = node, output, start, size


def _split(graph: Graph, users: dict[int, list[Node]], linear: Node) -> None:
    if any(len(users.get(id(source(value)), [])) != 1 for value in linear.inputs[1:]):
        return
    value, views = linear.output, []
    readers = users.get(id(value), [])
    while len(readers) == 1 and readers[0].op in VIEWS and readers[0].op != "expand":
        views.append(readers[0])
        value = readers[0].output
        readers = users.get(id(value), [])
    parts = _parts(readers)
    if not parts:
        return
    dim = parts[0].node.attrs["dim"]
    if not views and dim == len(value.shape) - 1:
        for number, part in enumerate(parts):
            graph.replace(part.output, _layer(graph, linear, number, part.size))
        return
    stored: Layout = [[Piece(Atom(n), place)] for place, n in enumerate(linear.output.shape)]
    layout = follow(stored, views)
    size = parts[0].size
    if layout is None or any(part.size != size for part in parts):
        return
    cut = reshape([layout[dim]], (len(parts), size))
    if cut is None or any(piece.dim != len(stored) - 1 for piece in expand(layout[dim])):
        return
    gone = {id(piece.atom) for piece in expand(cut[0])}
    memory = [p for p in expand(p for d in stored for p in d) if id(p.atom) not in gone]
    wanted = [p for p in expand(p for d in layout for p in d) if id(p.atom) not in gone]
    order = [memory.index(piece) for piece in wanted]
    for number, part in enumerate(parts):
        new = _layer(graph, linear, number, linear.output.shape[-1] // len(parts))
        thin = graph.reshape(new, *(piece.atom.size for piece in memory))
        graph.replace(part.output, graph.reshape(graph.permute(thin, *order), *part.output.shape))


def _layer(graph: Graph, linear: Node, number: int, features: int) -> Value:
    """The layer with part `number` of the features."""
    weights = [
        Value((features, *value.shape[1:]), "", "parameter", f"{source(value).name}.{number}")
        for value in map(resolve, linear.inputs[1:])
    ]
    shape = (*linear.output.shape[:-1], features)
    values = [linear.inputs[0], *weights]
    return graph.add(linear.op, values, [shape], like=linear, label=str(number)).output


def _parts(readers: list[Node]) -> list[_Part]:
    """The parts that readers take, if they take each element once; else none."""
    parts: list[_Part] = []
    for node in readers:
        if node.rule == "split":
            start = 0
            for output, size in zip(node.outputs, node.attrs["parts"], strict=True):
                parts.append(_Part(node, output, start, size))
                start += size
        elif node.rule == "slice" and node.attrs["step"] == 1:
            dim = node.attrs["dim"]
            thin = len(node.output.shape) < len(node.inputs[0].shape)
            size = 1 if thin else node.output.shape[dim]
            parts.append(_Part(node, node.output, node.attrs["start"], size))
        else:
            return []
    parts.sort(key=lambda part: part.start)
    end = 0
    for part in parts:
        if part.start != end or part.node.attrs["dim"] != parts[0].node.attrs["dim"]:
            return []
        end += part.size
    if not parts or end != parts[0].node.inputs[0].shape[parts[0].node.attrs["dim"]]:
        return []
    return parts
