"""Shapes and small constants of an ONNX graph."""

from __future__ import annotations

from typing import Any

from plancast.errors import InputError
from plancast.importers import limits
from plancast.importers.aten.reader import Meta

_BATCH = 3  # for a batch that the file leaves open
_MOST_AXIS = 1024  # by either end; no tensor of a model has so many dims
_SMALL = 64  # elements of constants that are looked into


class Known:
    """What is known of each tensor by name."""

    def __init__(self) -> None:
        self._metas: dict[str, Meta] = {}
        self._numbers: dict[str, list[Any]] = {}

    def meta(self, label: str) -> Meta | None:
        """Shape and element type."""
        return self._metas.get(label)

    def numbers(self, label: str) -> list[Any] | None:
        """Contents of a small constant."""
        return self._numbers.get(label)

    def note(self, path: str, label: str, shape: tuple[int, ...], kind: int) -> None:
        """Adds a tensor."""
        limits.check_shape(path, label, shape)
        self._metas[label] = Meta(shape, _dtype(kind))

    def note_constant(self, path: str, tensor: Any, label: str) -> None:
        """Adds a constant, with its contents if they are few and in the file."""
        import onnx
        from onnx import numpy_helper

        shape = tuple(int(size) for size in tensor.dims)
        self.note(path, label, shape, tensor.data_type)
        elements = 1
        for size in shape:
            elements *= size
        if elements <= _SMALL and tensor.data_location != onnx.TensorProto.EXTERNAL:
            self._numbers[label] = numpy_helper.to_array(tensor).flatten().tolist()


def infer(model: Any, path: str, seq: int | None) -> Known:
    """Shapes of all tensors, with open dims of inputs set."""
    import onnx

    graph = model.graph
    _check_axes(graph, path)
    weights = {tensor.name for tensor in graph.initializer}
    opened = _set_open_dims(graph, weights, path, seq)
    if opened:
        del graph.value_info[:]
        for output in graph.output:
            output.type.tensor_type.ClearField("shape")
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    except (RuntimeError, onnx.shape_inference.InferenceError) as error:
        reason = limits.brief(error)
        raise InputError(f"`{path}`: shapes do not fit each other ({reason}).") from None
    known = Known()
    for tensor in graph.initializer:
        known.note_constant(path, tensor, tensor.name)
    for info in [*inferred.input, *inferred.value_info, *inferred.output]:
        kind = info.type.tensor_type
        if not info.type.HasField("tensor_type") or not kind.HasField("shape"):
            continue
        if all(dim.HasField("dim_value") for dim in kind.shape.dim):
            sizes = tuple(int(dim.dim_value) for dim in kind.shape.dim)
            known.note(path, info.name, sizes, kind.elem_type)
    for node in graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "value":
                    known.note_constant(path, attribute.t, node.output[0])
    return known


def _check_axes(graph: Any, path: str) -> None:
    """onnx cuts an axis down to 32 bits and looks it up: a process may end by it."""
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name == "axis" and abs(attribute.i) > _MOST_AXIS:
                raise InputError(
                    f"`{path}`: `axis` of `{node.name or node.op_type}` is {attribute.i}; no "
                    "tensor has so many dims."
                )
            for inner in (attribute.g, *attribute.graphs):
                _check_axes(inner, path)


def _set_open_dims(graph: Any, weights: set[str], path: str, seq: int | None) -> bool:
    """Sizes for dims that the file leaves open: the batch, and the sequence."""
    chosen: dict[str, int] = {}
    opened = False
    for entry in graph.input:
        if entry.name in weights:
            continue
        for place, dim in enumerate(entry.type.tensor_type.shape.dim):
            if dim.HasField("dim_value") and dim.dim_value > 0:
                continue
            opened = True
            name = dim.dim_param or f"dim {place} of {entry.name}"
            if place == 0:
                chosen.setdefault(name, _BATCH)
            elif name not in chosen:
                if seq is None:
                    raise InputError(
                        f"`{path}` leaves `{name}` of input `{entry.name}` open. "
                        "Say the length of sequences: --seq N."
                    )
                chosen[name] = seq
            dim.dim_value = chosen[name]
    return opened


def _dtype(kind: int) -> str:
    import onnx

    proto = onnx.TensorProto
    if kind in (proto.BOOL, proto.UINT8):
        return "uint8"
    whole = (
        proto.INT8,
        proto.INT16,
        proto.INT32,
        proto.INT64,
        proto.UINT16,
        proto.UINT32,
        proto.UINT64,
    )
    return "int64" if kind in whole else ""
