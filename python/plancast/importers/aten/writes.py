"""Tensors that are written in parts: `x[..., :n] = a` and `x[..., n:] = b` make a concat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plancast.importers import make
from plancast.importers.ir import Graph, Value

if TYPE_CHECKING:
    from plancast.importers.aten.reader import Op


class Writes:
    """Parts that were written into constants, until the constants are read."""

    def __init__(self) -> None:
        self._parts: dict[int, tuple[Value, list[tuple[int, int, Value]]]] = {}
        self._settled: dict[int, Value] = {}

    def note(self, target: Value, value: Value) -> None:
        """`value` was copied into `target`, a slice of a constant or the whole of it."""
        dim, start, root = 0, 0, target
        while root.node is not None and root.node.op == "slice" and root.node.inputs:
            attrs, whole = root.node.attrs, root.node.inputs[0]
            if root.shape != whole.shape:
                dim = make.positive(int(attrs.get("dim") or 0), len(root.shape))
                begin = int(attrs.get("start") or 0)
                start = make.positive(begin, whole.shape[dim])
            root = whole
        self._parts.setdefault(id(root), (root, []))[1].append((dim, start, value))

    def settled(self, graph: Graph, op: Op) -> dict[str, Any]:
        """The arguments of an operator, with what was written in place of constants."""
        if not self._parts and not self._settled:
            return op.arguments
        if op.name == "slice" and id(op["self"]) in self._parts:
            root, parts = self._parts[id(op["self"])]
            written = sum(value.shape[dim] for dim, _, value in parts)
            if written < root.shape[parts[0][0]]:
                return op.arguments  # a part that is yet to be written
        return {key: self._look_up(graph, value) for key, value in op.arguments.items()}

    def _look_up(self, graph: Graph, argument: Any) -> Any:
        if isinstance(argument, tuple | list):
            return [self._look_up(graph, item) for item in argument]
        if not isinstance(argument, Value):
            return argument
        if id(argument) in self._settled:
            return self._settled[id(argument)]
        if id(argument) not in self._parts:
            return argument
        root, parts = self._parts.pop(id(argument))
        dim = parts[0][0]
        parts.sort(key=lambda part: part[1])
        values = [
            graph.view(
                value, "expand", (*root.shape[:dim], value.shape[dim], *root.shape[dim + 1 :])
            )
            for _, _, value in parts
        ]
        path = values[0].node.path if values[0].node else ""
        result = make.concat(graph, values, dim, path=path)
        self._settled[id(root)] = result
        return result
