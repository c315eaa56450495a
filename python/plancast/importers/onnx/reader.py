"""ONNX files as the importers' graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from plancast import files
from plancast.errors import InputError
from plancast.importers import limits, make
from plancast.importers.aten.reader import Meta
from plancast.importers.aten.results import choose_result
from plancast.importers.ir import Graph, Node, Value
from plancast.importers.onnx import shapes
from plancast.importers.onnx.constants import is_causal
from plancast.importers.onnx.names import module_path
from plancast.importers.onnx.weights import is_trained
from plancast.importers.operators import Operators

Handler = Callable[["Reader", "Op"], Any]
OPERATORS: Operators[Handler] = Operators(Path(__file__).parent)
handles = OPERATORS.handles

_KIND = "an ONNX model"
_REMEDY = "Write it with torch.onnx.export(module, inputs, PATH)."


def read(path: str, name: str, seq: int | None = None) -> Graph:
    """The graph of an ONNX file; tensors kept outside the file are not read."""
    try:
        import onnx
    except ImportError:
        raise InputError(
            "onnx is not installed, and .onnx files are read with it. "
            "Get it with: pip install plancast[onnx]"
        ) from None
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    with limits.reading(path, _KIND, _REMEDY):
        try:
            with files.opened(path, most=limits.LARGEST_ONNX_BYTES) as file:
                model = onnx.load_model_from_string(file.read())
        except DecodeError as error:
            reason = limits.brief(error)
            raise InputError(f"`{path}` is not {_KIND} ({reason}). {_REMEDY}") from None
        return from_model(model, path, name, seq)


def from_model(model: Any, path: str, name: str, seq: int | None = None) -> Graph:
    """The graph of a parsed model."""
    if len(model.graph.node) > limits.MOST_NODES:
        raise InputError(f"`{path}` has {len(model.graph.node):,} nodes; no model has that.")
    known = shapes.infer(model, path, seq)
    return Reader(path, name, model.graph, known).run()


class Op:
    """One operator call. Inputs that are left out are None."""

    def __init__(self, node: Any, inputs: list[Value | None], shapes_: list[Any]) -> None:
        self.name: str = node.op_type
        self.inputs = inputs
        self.results = shapes_
        self.path = module_path(node)
        self.attributes = {attribute.name: attribute for attribute in node.attribute}

    def __getitem__(self, place: int) -> Any:
        return self.inputs[place] if place < len(self.inputs) else None

    @property
    def given(self) -> list[Value]:
        """The inputs that are not left out."""
        return [value for value in self.inputs if value is not None]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the first result."""
        shape: tuple[int, ...] = self.results[0].shape
        return shape

    @property
    def where(self) -> dict[str, Any]:
        """Keywords that tell a node its module."""
        return {"path": self.path}

    def number(self, name: str, default: int = 0) -> int:
        """A whole-number attribute."""
        return int(self.attributes[name].i) if name in self.attributes else default

    def numbers(self, name: str) -> list[int]:
        """A list of whole numbers."""
        return [int(n) for n in self.attributes[name].ints] if name in self.attributes else []

    def word(self, name: str) -> str:
        """A text attribute."""
        return self.attributes[name].s.decode("utf-8", "replace") if name in self.attributes else ""


class Reader:
    """Makes nodes of operators, one after the other."""

    def __init__(self, path: str, name: str, source: Any, known: shapes.Known) -> None:
        self.graph = Graph(name)
        self.graph.kernels_unsaid = True
        self._file, self._source, self.known = path, source, known
        self._env: dict[str, Value] = {}
        # Vectors that exporters made one because their first values are the same.
        self._merged: set[str] = set()

    def run(self) -> Graph:
        """The importers' graph."""
        self._enter()
        for node in self._source.node:
            inputs = [self._value(label) if label else None for label in node.input]
            results = [self.known.meta(label) for label in node.output]
            made = self._make(Op(node, inputs, results), list(node.output))
            for label, value in zip(node.output, made, strict=False):
                if label and isinstance(value, Value):
                    self._env[label] = value
        outputs: list[tuple[object, tuple[int, ...]]] = []
        for output in self._source.output:
            meta = self.known.meta(output.name)
            if meta is not None:
                outputs.append((self._env.get(output.name), meta.shape))
        choose_result(self.graph, outputs)
        return self.graph

    def _enter(self) -> None:
        readers: dict[str, list[tuple[Any, int]]] = {}
        for node in self._source.node:
            for place, label in enumerate(node.input):
                readers.setdefault(label, []).append((node, place))
        after = {label: [node.op_type for node, _ in found] for label, found in readers.items()}
        weights = {tensor.name for tensor in self._source.initializer}
        for tensor in self._source.initializer:
            meta = self.known.meta(tensor.name)
            if meta is None:
                continue
            trained = is_trained(tensor, meta.dtype, readers.get(tensor.name, []), after)
            kind = "parameter" if trained else "data"
            value = Value(meta.shape, meta.dtype, kind, tensor.name)
            if trained and len(meta.shape) == 1 and len(readers[tensor.name]) > 1:
                self._merged.add(tensor.name)
            if not trained and len(meta.shape) >= 2 and is_causal(tensor, self._file):
                value.constant = "causal"
            self._env[tensor.name] = value
        batch = 0
        for entry in self._source.input:
            meta = self.known.meta(entry.name)
            if entry.name in weights or meta is None:
                continue
            value = Value(meta.shape, meta.dtype, "data" if meta.dtype else "input", entry.name)
            batch = batch or (meta.shape[0] if meta.shape else 0)
            value.batched = bool(meta.shape) and meta.shape[0] == batch
            self._env[entry.name] = value
        if not batch:
            raise InputError(f"`{self._file}` has no input with a batch as first dim.")

    def _value(self, label: str) -> Value:
        if label not in self._env:
            raise InputError(
                f"`{self._file}`: a node reads `{label}`, which nothing before it makes."
            )
        value = self._env[label]
        if label in self._merged:
            return Value(value.shape, value.dtype, value.kind)
        return value

    def _make(self, op: Op, labels: list[str]) -> list[Any]:
        values = [value for value in op.inputs if value is not None]
        if all(value.kind == "data" for value in values):
            return self._data(op, values, labels)
        if any(meta is None for meta in op.results[:1]):
            raise InputError(
                f"`{self._file}`: the shape of `{labels[0]}`, a result of {op.name}, does not "
                "follow from the file. Export the model with fixed sizes."
            )
        tables = OPERATORS.table
        if op.name in tables["same"]:
            return [op[0]]
        handler = OPERATORS.handlers.get(op.name)
        made = handler(self, op) if handler is not None else None
        made = self._from_tables(op) if made is None else made
        if made is None:
            metas = [meta for meta in op.results if meta is not None]
            node = self.graph.add(
                "opaque", values, [meta.shape for meta in metas], source=op.name, **op.where
            )
            for value, meta in zip(node.outputs, metas, strict=True):
                value.dtype = meta.dtype
            made = node.outputs
        return list(made) if isinstance(made, list) else [made]

    def _data(self, op: Op, values: list[Value], labels: list[str]) -> list[Value]:
        """What follows from data alone is data, and remembers how."""
        node = Node(op.name, values, [], op.path)
        batches = {value.shape[0] for value in values if value.batched and value.shape}
        for label, meta in zip(labels, op.results, strict=True):
            known = meta if meta is not None else Meta((), "int64")
            value = Value(known.shape, known.dtype, "data", op.name, node)
            value.batched = bool(known.shape) and known.shape[0] in batches
            numbers = self.known.numbers(label)
            if numbers is not None and len(numbers) == 1:
                value.constant = numbers[0]
            node.outputs.append(value)
        return list(node.outputs)

    def _from_tables(self, op: Op) -> Value | None:
        tables, x, other = OPERATORS.table, op[0], op[1]
        if op.name in tables["binary"] and other is not None:
            tensors, number = tables["binary"][op.name]
            for tensor, constant in ((x, other), (other, x)):
                if constant.kind == "data" and constant.elements == 1:
                    return self.graph.add(
                        number, [tensor], [op.shape], number=self.scalar(constant), **op.where
                    ).output
            return make.elementwise(self.graph, tensors, x, other, **op.where)
        if op.name in tables["pointwise"]:
            rule = tables["pointwise"][op.name]
            return self.graph.add(rule, [x], [x.shape], **op.where).output
        if op.name in tables["formula"]:
            text = tables["formula"][op.name]
            return make.formula(self.graph, op.name.lower(), text, x, **op.where)
        return None

    def scalar(self, value: Value) -> Any:
        """The number a constant is, if the file says it."""
        if value.constant is not None:
            return value.constant
        numbers = self.known.numbers(value.name)
        return numbers[0] if numbers else None
