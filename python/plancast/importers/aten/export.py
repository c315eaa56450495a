"""Modules and exported programs as the importers' graph."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from plancast.errors import InputError
from plancast.importers.aten.reader import Reader, dtype_of, shape_of
from plancast.importers.ir import Graph, Value

# An example batch that no other size is likely to be taken for, and that is not the
# one that torch.export makes a constant of.
_BATCHES = (3, 5, 7, 11, 13)


def require_torch() -> Any:
    """The module torch, or an error that says how to get it."""
    try:
        import torch
        import torch.export
    except ImportError:
        raise InputError(
            "torch is not installed, and modules and .pt2 files are read with it. "
            "Get it with: pip install plancast[torch]"
        ) from None
    return torch


def export(module: Any, example_inputs: Any, seq: int | None) -> Any:
    """The exported program of a module, with a batch of its own choice.

    Args:
      module: an `nn.Module`, on any device; `meta` needs no memory.
      example_inputs: positional arguments as a tuple, or keyword arguments as a mapping;
        the first dim of the first tensor, and of all others that have the same size there,
        is the batch.
      seq: replaces the second dim of integer inputs, if said.
    """
    torch = require_torch()
    if not isinstance(module, torch.nn.Module):
        raise InputError(
            f"`module` is a {type(module).__name__}; a torch.nn.Module or an exported program "
            "is needed."
        )
    arguments, keywords = _examples(example_inputs)
    tensors = [item for item in [*arguments, *keywords.values()] if isinstance(item, torch.Tensor)]
    if not tensors or not tensors[0].dim():
        raise InputError(
            "`example_inputs` holds no tensor with a batch as first dim. "
            'Give what the module is called with, such as (ids,) or {"input_ids": ids}.'
        )
    batch = tensors[0].shape[0]
    known = {size for tensor in tensors for size in tensor.shape[1:]} | {batch}
    chosen = next(size for size in (*_BATCHES, 17, 19, 23) if size not in known)

    def resized(item: Any, size: int) -> Any:
        if not isinstance(item, torch.Tensor):
            return item
        shape = list(item.shape)
        if shape and shape[0] == batch:
            shape[0] = size
        if seq is not None and len(shape) > 1 and not item.dtype.is_floating_point:
            shape[1] = seq
        if item.device.type == "meta" or tuple(shape) != tuple(item.shape):
            return torch.empty(shape, dtype=item.dtype, device=item.device)
        return item.clone()  # two inputs that are one tensor would become one input

    with warnings.catch_warnings(), _quiet(), _mixture_as_leaves(module):
        warnings.simplefilter("ignore")
        for size in (chosen, batch):
            given = tuple(resized(item, size) for item in arguments)
            named = {key: resized(item, size) for key, item in keywords.items()}
            try:
                return torch.export.export(module, given, named, strict=False)
            except Exception as error:  # whatever the module's own code raises
                failure = error
    first = str(failure).strip().splitlines()[0] if str(failure).strip() else ""
    raise InputError(
        f"torch.export cannot trace `{type(module).__name__}`: {type(failure).__name__}: {first}"
    ) from failure


def _examples(example_inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(example_inputs, Mapping):
        return (), dict(example_inputs)
    if isinstance(example_inputs, Sequence):
        return tuple(example_inputs), {}
    return (example_inputs,), {}


def _quiet() -> Any:
    """Export logs what it finds odd in modules; forecasts do not depend on it."""
    import contextlib
    import logging

    @contextlib.contextmanager
    def quiet() -> Any:
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(before)

    return quiet()


def _mixture_as_leaves(module: Any) -> Any:
    from plancast.importers.aten.mixture import as_leaves

    return as_leaves(module)


def read(program: Any, name: str) -> tuple[Graph, Reader]:
    """The graph of an exported program; parameters have the names of the module's."""
    graph = Graph(name)
    reader = Reader(graph)
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
        if not hasattr(meta, "shape"):
            inputs.append(getattr(getattr(spec, "arg", None), "value", meta))
        elif kind == "PARAMETER":
            inputs.append(_parameter(program, spec.target, meta, shared))
        elif kind == "USER_INPUT":
            real = dtype_of(meta) == ""
            value = Value(shape_of(meta), dtype_of(meta), "input" if real else "data", node.name)
            value.batched = bool(value.shape) and value.shape[0] == batch
            inputs.append(value)
        else:
            inputs.append(
                Value(shape_of(meta), dtype_of(meta), "data", str(spec.target or node.name))
            )
    results = reader.run(program.graph_module, inputs)
    wanted = [
        result
        for spec, result in zip(signature.output_specs, results, strict=False)
        if spec.kind.name in ("USER_OUTPUT", "LOSS_OUTPUT")
    ]
    metas = next(node for node in program.graph.nodes if node.op == "output").args[0]
    shapes = [
        getattr(getattr(meta, "meta", {}).get("val"), "shape", None)
        for spec, meta in zip(signature.output_specs, metas, strict=False)
        if spec.kind.name in ("USER_OUTPUT", "LOSS_OUTPUT")
    ]
    pairs = [
        (value, tuple(shape))
        for value, shape in zip(wanted, shapes, strict=False)
        if isinstance(value, Value) and value.kind == "op" and shape is not None
    ]
    if not pairs:
        raise InputError(
            f"`{name}` computes nothing from its parameters; there is nothing to train."
        )
    scalars = [value for value, shape in pairs if shape == ()]
    graph.outputs = scalars[:1] or [value for value, _ in pairs[:1]]
    graph.has_loss = bool(scalars)
    return graph, reader


def _batch_of(program: Any) -> int:
    for node in program.graph.nodes:
        meta = node.meta.get("val")
        if node.op == "placeholder" and hasattr(meta, "shape"):
            spec = next(s for s in program.graph_signature.input_specs if s.arg.name == node.name)
            if spec.kind.name == "USER_INPUT" and len(meta.shape):
                return shape_of(meta)[0]
    raise InputError("the program has no input with a batch as first dim.")


def _parameter(program: Any, target: str, meta: Any, shared: dict[Any, Value]) -> Value:
    """The value of a parameter; names of one tensor share it."""
    key: Any = target
    found = program.state_dict.get(target)
    if found is not None:
        key = id(found)
    value = shared.get(key)
    if value is None:
        value = shared[key] = Value(shape_of(meta), dtype_of(meta), "parameter", target)
    return value
