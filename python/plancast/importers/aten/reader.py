"""From operators of PyTorch to the importers' graph; needs no torch itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plancast.importers.aten.writes import Writes
from plancast.importers.ir import Graph, Node, Value
from plancast.importers.operators import Operators

Handler = Callable[["Reader", "Op"], Any]
OPERATORS: Operators[Handler] = Operators(Path(__file__).parent)
handles = OPERATORS.handles


@dataclass(frozen=True)
class Meta:
    """Shape and element type of a result; floating-point types are "", the compute type."""

    shape: tuple[int, ...]
    dtype: str = ""


@dataclass
class Op:
    """One operator call: arguments by name, and what export says of the results.

    A result that is no tensor is the number that it was in the example.
    """

    name: str
    arguments: dict[str, Any]
    results: list[Any]
    path: str = ""
    several: bool = False  # a list of results, even if of one

    def __getitem__(self, name: str) -> Any:
        return self.arguments.get(name)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the first result."""
        shape: tuple[int, ...] = self.results[0].shape
        return shape

    @property
    def where(self) -> dict[str, Any]:
        """Keywords that tell a node its module."""
        return {"path": self.path}


class Reader:
    """Makes nodes of operators, one after the other."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._writes = Writes()

    def operator(self, op: Op) -> Any:
        """The results of an operator: values, or numbers where it computes sizes."""
        if op.name in OPERATORS.table["nothing"]:
            return op["self"]
        if not any(isinstance(result, Meta) for result in op.results):
            return op.results if op.several else op.results[0]
        if op.name == "copy_" and isinstance(op["src"], Value) and op["self"].kind == "data":
            self._writes.note(op["self"], op["src"])
            return op["src"]
        op.arguments = self._writes.settled(self.graph, op)
        tensors = tensors_in(op.arguments.values())
        if op.name in OPERATORS.table["factories"] or all(
            value.kind == "data" for value in tensors
        ):
            made = self._data(op, tensors)
            return made if op.several else made[0]
        return self.make(op)

    def _data(self, op: Op, tensors: list[Value]) -> list[Value]:
        """What follows from data alone is data, and remembers how."""
        attrs = {key: item for key, item in op.arguments.items() if not isinstance(item, Value)}
        node = Node(op.name, tensors, [], op.path, attrs=attrs)
        if op.name in OPERATORS.table["factories"]:
            node.inputs = []
        batches = {value.shape[0] for value in tensors if value.batched}
        for meta in op.results:
            if not isinstance(meta, Meta):
                node.outputs.append(meta)
                continue
            value = Value(meta.shape, meta.dtype, "data", op.name, node)
            value.batched = bool(value.shape) and value.shape[0] in batches
            node.outputs.append(value)
        return node.outputs

    def make(self, op: Op) -> Any:
        """Nodes for one operator: from the tables, a handler, or opaque."""
        tables, name = OPERATORS.table, op.name
        x = op["self"] if op["self"] is not None else op["input"]
        if name in tables["same"]:
            return x
        handler = OPERATORS.handlers.get(name)
        made = handler(self, op) if handler is not None else None
        if made is None:
            made = self._from_tables(op)
        if made is None:
            metas = [meta for meta in op.results if isinstance(meta, Meta)]
            shapes = [meta.shape for meta in metas]
            values = tensors_in(op.arguments.values())
            node = self.graph.add("opaque", values, shapes, source=name, **op.where)
            for value, meta in zip(node.outputs, metas, strict=True):
                value.dtype = meta.dtype
            made = list(node.outputs) if op.several else node.output
        return made

    def _from_tables(self, op: Op) -> Value | None:
        from plancast.importers import make

        tables = OPERATORS.table
        x, other = op["self"], op["other"]
        if other is None and op.name == "pow":
            other = op["exponent"]
        binary = tables["binary"].get(op.name)
        if binary is not None and isinstance(x, Value) and isinstance(other, Value):
            return make.elementwise(self.graph, binary[0], x, other, **op.where)
        if binary is not None and other is not None:
            tensor, number = (x, other) if isinstance(x, Value) else (other, x)
            return self.graph.add(
                binary[1], [tensor], [tensor.shape], number=number, **op.where
            ).output
        rule = tables["pointwise"].get(op.name)
        if rule is not None:
            return self.graph.add(rule, [x], [x.shape], **op.where).output
        text = tables["formula"].get(op.name)
        if text is not None:
            return make.formula(self.graph, op.name.strip("_"), text, x, **op.where)
        return None


def tensors_in(arguments: Any) -> list[Value]:
    """All tensors of a list of arguments, those in lists too."""
    found: list[Value] = []
    for argument in arguments:
        if isinstance(argument, Value):
            found.append(argument)
        elif isinstance(argument, tuple | list):
            found.extend(tensors_in(argument))
    return found
