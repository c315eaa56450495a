"""From exported programs in memory to the importers' graph."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from plancast.errors import InputError
from plancast.importers.aten.reader import Meta, Op, Reader
from plancast.importers.aten.results import choose_result
from plancast.importers.ir import Graph, Value


def read(program: Any, name: str) -> Graph:
    """The graph of an exported program; parameters have the names of the module's."""
    graph = Graph(name)
    walker = _Walker(Reader(graph))
    signature = program.graph_signature
    batch = _batch_of(program)
    inputs: list[Any] = []
    shared: dict[Any, Value] = {}
    kinds = {spec.arg.name: spec for spec in signature.input_specs if hasattr(spec.arg, "name")}
    for node in program.graph.nodes:
        if node.op != "placeholder":
            continue
        spec: Any = kinds.get(node.name)
        meta = node.meta.get("val")
        kind = spec.kind.name if spec is not None else "USER_INPUT"
        known = meta_of(meta)
        if not isinstance(known, Meta):
            inputs.append(getattr(getattr(spec, "arg", None), "value", meta))
        elif kind == "PARAMETER":
            inputs.append(_parameter(program, spec.target, known, shared))
        elif kind == "USER_INPUT":
            kind = "input" if known.dtype == "" else "data"
            value = Value(known.shape, known.dtype, kind, node.name)
            value.batched = bool(value.shape) and value.shape[0] == batch
            inputs.append(value)
        else:
            label = str(getattr(spec, "target", None) or node.name)
            inputs.append(Value(known.shape, known.dtype, "data", label))
    results = walker.run(program.graph_module, inputs)
    metas = next(node for node in program.graph.nodes if node.op == "output").args[0]
    wanted = []
    for spec, value, node in zip(signature.output_specs, results, metas, strict=False):
        meta = meta_of(getattr(node, "meta", {}).get("val"))
        if spec.kind.name in ("USER_OUTPUT", "LOSS_OUTPUT") and isinstance(meta, Meta):
            wanted.append((value, meta.shape))
    choose_result(graph, wanted)
    return graph


def _batch_of(program: Any) -> int:
    for node in program.graph.nodes:
        meta = node.meta.get("val")
        if node.op == "placeholder" and hasattr(meta, "shape"):
            spec = next(s for s in program.graph_signature.input_specs if s.arg.name == node.name)
            if spec.kind.name == "USER_INPUT" and len(meta.shape):
                return as_int(meta.shape[0])
    raise InputError("the program has no input with a batch as first dim.")


def _parameter(program: Any, target: str, meta: Meta, shared: dict[Any, Value]) -> Value:
    """The value of a parameter; names of one tensor share it."""
    key: Any = target
    found = program.state_dict.get(target)
    if found is not None:
        key = id(found)
    value = shared.get(key)
    if value is None:
        value = shared[key] = Value(meta.shape, "", "parameter", target)
    return value


def meta_of(fake: Any) -> Any:
    """Shape and type of a fake tensor; the example's number of a size; else as it is."""
    if hasattr(fake, "shape") and hasattr(fake, "dtype"):
        return Meta(tuple(as_int(size) for size in fake.shape), _dtype(fake.dtype))
    return as_int(fake) if hasattr(fake, "node") else fake


def as_int(size: Any) -> int:
    """A size, or the example's value of a symbolic one."""
    node = getattr(size, "node", None)
    if node is not None:
        hint = getattr(node, "hint", None)
        return int(hint if hint is not None else 1)
    return int(size)


def _dtype(dtype: Any) -> str:
    if dtype.is_floating_point or dtype.is_complex:
        return ""
    return "uint8" if str(dtype) in ("torch.bool", "torch.uint8") else "int64"


class _Walker:
    """Follows a graph module, and the graphs inside it."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def run(self, module: Any, inputs: Sequence[Any], outer: str = "") -> list[Any]:
        """Nodes of one graph module; gives its results."""
        env: dict[Any, Any] = {}
        given = iter(inputs)
        for node in module.graph.nodes:
            if node.op == "placeholder":
                env[node] = next(given)
            elif node.op == "get_attr":
                env[node] = _attribute(module, node.target)
            elif node.op == "output":
                return list(self._look_up(env, node.args[0]))
            elif node.op == "call_function":
                env[node] = self._call(env, node, _path(node) or outer)
        return []

    def _look_up(self, env: dict[Any, Any], argument: Any) -> Any:
        import torch.fx

        if isinstance(argument, torch.fx.Node):
            return env[argument]
        if isinstance(argument, tuple | list):
            return type(argument)(self._look_up(env, item) for item in argument)
        return argument

    def _call(self, env: dict[Any, Any], node: Any, path: str) -> Any:
        arguments = [self._look_up(env, argument) for argument in node.args]
        target, meta = node.target, node.meta.get("val")
        if target is operator.getitem:
            return arguments[0][arguments[1]]
        if hasattr(target, "_schema"):
            schema = target._schema
            known = {argument.name: argument.default_value for argument in schema.arguments}
            known.update(zip(known, arguments, strict=False))
            known.update({key: self._look_up(env, item) for key, item in node.kwargs.items()})
            several = isinstance(meta, tuple | list)
            metas = [meta_of(one) for one in (meta if several else [meta])]
            name = schema.name.removeprefix("aten::")
            return self._reader.operator(Op(name, known, metas, path, several))
        inner = next((argument for argument in arguments if hasattr(argument, "graph")), None)
        if inner is not None:  # a block under no_grad or autocast
            place = arguments.index(inner)
            return self.run(inner, arguments[place + 1 :], path)
        return meta_of(meta)


def _attribute(module: Any, target: str) -> Any:
    found = module
    for part in target.split("."):
        found = getattr(found, part)
    if hasattr(found, "graph"):
        return found
    meta = meta_of(found)
    return Value(meta.shape, meta.dtype, "data", target)


def _path(node: Any) -> str:
    """The innermost module that a node was traced in."""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return ""
    path = list(stack.values())[-1][0]
    return str(path).replace("L['self'].", "").replace("L['self']", "")
