"""From an exported program to the importers' graph."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from plancast.importers.ir import Graph, Node, Value

Handler = Callable[["Reader", "Op"], Any]
HANDLERS: dict[str, Handler] = {}


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Registers what makes nodes of these operators."""

    def register(handler: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = handler
        return handler

    return register


@functools.cache
def table() -> dict[str, Any]:
    """Operators that need no code."""
    import yaml

    text = Path(__file__).with_name("table.yaml").read_text(encoding="utf-8")
    tables: dict[str, Any] = yaml.safe_load(text)
    return tables


class Op:
    """One operator call: arguments by name, and what export says of the results."""

    def __init__(self, name: str, arguments: dict[str, Any], results: list[Any], path: str) -> None:
        self.name = name
        self.arguments = arguments
        self.results = results
        self.path = path

    def __getitem__(self, name: str) -> Any:
        return self.arguments.get(name)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the first result."""
        return shape_of(self.results[0])

    @property
    def where(self) -> dict[str, Any]:
        """Keywords that tell a node its module."""
        return {"path": self.path}


def shape_of(meta: Any) -> tuple[int, ...]:
    """Sizes of a fake tensor; dims that vary have the size they were exported with."""
    return tuple(as_int(size) for size in meta.shape)


def as_int(size: Any) -> int:
    """A size, or the example's value of a symbolic one."""
    node = getattr(size, "node", None)
    if node is not None:
        hint = getattr(node, "hint", None)
        return int(hint if hint is not None else 1)
    return int(size)


def dtype_of(meta: Any) -> str:
    """Element type as op rules name it; all floating-point types are the compute type."""
    dtype = meta.dtype
    if dtype.is_floating_point or dtype.is_complex:
        return ""
    return "uint8" if str(dtype) in ("torch.bool", "torch.uint8") else "int64"


class Reader:
    """Walks an exported graph, following the graphs inside it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.unknown: dict[str, int] = {}

    def run(self, module: Any, inputs: Sequence[Any], outer: str = "") -> list[Any]:
        """Nodes of one graph module; gives its results."""
        env: dict[Any, Any] = {}
        given = iter(inputs)
        for node in module.graph.nodes:
            if node.op == "placeholder":
                env[node] = next(given)
            elif node.op == "get_attr":
                env[node] = self._attribute(module, node)
            elif node.op == "output":
                return list(self._look_up(env, node.args[0]))
            elif node.op == "call_function":
                env[node] = self._call(module, env, node, _path(node) or outer)
        return []

    def _look_up(self, env: dict[Any, Any], argument: Any) -> Any:
        import torch.fx

        if isinstance(argument, torch.fx.Node):
            return env[argument]
        if isinstance(argument, tuple | list):
            return type(argument)(self._look_up(env, item) for item in argument)
        return argument

    def _attribute(self, module: Any, node: Any) -> Any:
        found = module
        for part in node.target.split("."):
            found = getattr(found, part)
        if hasattr(found, "graph"):
            return found
        return self.constant(found, node.target)

    def constant(self, tensor: Any, name: str) -> Value:
        """A tensor of the program that is not trained."""
        return Value(shape_of(tensor), dtype_of(tensor), "data", name)

    def _call(self, module: Any, env: dict[Any, Any], node: Any, path: str) -> Any:
        import operator

        arguments = [self._look_up(env, argument) for argument in node.args]
        target = node.target
        if target is operator.getitem:
            return arguments[0][arguments[1]]
        if hasattr(target, "_schema"):
            names = [argument.name for argument in target._schema.arguments]
            known = {argument.name: argument.default_value for argument in target._schema.arguments}
            known.update(zip(names, arguments, strict=False))
            known.update({key: self._look_up(env, item) for key, item in node.kwargs.items()})
            return self._operator(target._schema.name, known, node, path)
        inner = next((argument for argument in arguments if hasattr(argument, "graph")), None)
        if inner is not None:  # a block under no_grad or autocast
            place = arguments.index(inner)
            return self.run(inner, arguments[place + 1 :], path)
        meta = node.meta.get("val")
        return as_int(meta) if not hasattr(meta, "shape") else None

    def _operator(self, schema: str, arguments: dict[str, Any], node: Any, path: str) -> Any:
        meta = node.meta.get("val")
        several = isinstance(meta, tuple | list)
        results = list(meta) if several else [meta]
        space, _, name = schema.partition("::")
        op = Op(name if space == "aten" else schema, arguments, results, path)
        if op.name in table()["nothing"]:
            return arguments.get("self")
        tensors = tensors_in(arguments.values())
        if not any(hasattr(result, "shape") for result in results):
            return [as_int(r) for r in results] if several else as_int(results[0])
        if all(value.kind == "data" for value in tensors):
            made = self._data(op, tensors)
            return made if several else made[0]
        return self.make(op, several)

    def _data(self, op: Op, tensors: list[Value]) -> list[Value]:
        """What follows from data alone is data, and remembers how."""
        attrs = {key: item for key, item in op.arguments.items() if not isinstance(item, Value)}
        node = Node(op.name, tensors, [], op.path, attrs=attrs)
        batches = {value.shape[0] for value in tensors if value.batched}
        for meta in op.results:
            value = Value(shape_of(meta), dtype_of(meta), "data", op.name, node)
            value.batched = bool(value.shape) and value.shape[0] in batches
            node.outputs.append(value)
        return node.outputs

    def make(self, op: Op, several: bool = False) -> Any:
        """Nodes for one operator: from the tables, a handler, or opaque."""
        tables, name = table(), op.name
        x = op["self"] if op["self"] is not None else op["input"]
        if name in tables["same"]:
            return x
        handler = HANDLERS.get(name)
        made = handler(self, op) if handler is not None else None
        if made is None:
            made = self._from_tables(op)
        if made is None:
            self.unknown[name] = self.unknown.get(name, 0) + 1
            shapes = [shape_of(meta) for meta in op.results if hasattr(meta, "shape")]
            values = tensors_in(op.arguments.values())
            node = self.graph.add("opaque", values, shapes, source=name, **op.where)
            for value, meta in zip(node.outputs, op.results, strict=False):
                value.dtype = dtype_of(meta)
            made = list(node.outputs) if several else node.output
        return made

    def _from_tables(self, op: Op) -> Value | None:
        from plancast.importers import make

        tables = table()
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


def _path(node: Any) -> str:
    """The innermost module that a node was traced in."""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return ""
    path = list(stack.values())[-1][0]
    return str(path).replace("L['self'].", "").replace("L['self']", "")
