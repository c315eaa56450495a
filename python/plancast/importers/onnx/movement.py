"""Operators of ONNX that move elements."""

from __future__ import annotations

from plancast.importers import make
from plancast.importers.ir import Node, Value
from plancast.importers.onnx.reader import Op, Reader, handles


@handles("Reshape", "Flatten", "Squeeze", "Unsqueeze")
def _reshape(reader: Reader, op: Op) -> Value:
    return reader.graph.view(op[0], "reshape", op.shape)


@handles("Transpose")
def _transpose(reader: Reader, op: Op) -> Value:
    order = op.numbers("perm") or list(range(len(op[0].shape)))[::-1]
    return reader.graph.permute(op[0], *order)


@handles("Expand")
def _expand(reader: Reader, op: Op) -> Value:
    return reader.graph.view(op[0], "expand", op.shape)


@handles("Slice")
def _slice(reader: Reader, op: Op) -> Value | None:
    x: Value = op[0]
    starts, ends = (_numbers(reader, op, place) for place in (1, 2))
    axes = _numbers(reader, op, 3) or list(range(len(starts or [])))
    steps = _numbers(reader, op, 4) or [1] * len(axes)
    if starts is None or ends is None or any(step < 1 for step in steps):
        return None
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        dim = make.positive(axis, len(x.shape))
        x = make.slice_dim(reader.graph, x, dim, start, end, step, **op.where)
    return x


def _numbers(reader: Reader, op: Op, place: int) -> list[int] | None:
    value = op[place]
    found = reader.known.numbers(value.name) if value is not None else None
    if found is None and value is not None and isinstance(value.constant, int):
        found = [value.constant]
    return [int(number) for number in found] if found is not None else None


@handles("Split")
def _split(reader: Reader, op: Op) -> list[Value]:
    dim = make.positive(op.number("axis"), len(op[0].shape))
    sizes = [meta.shape[dim] for meta in op.results]
    return make.split(reader.graph, op[0], dim, sizes, **op.where)


@handles("Concat")
def _concat(reader: Reader, op: Op) -> Value:
    values = [value for value in op.inputs if value is not None]
    dim = make.positive(op.number("axis"), len(op.shape))
    return make.concat(reader.graph, values, dim, **op.where)


@handles("Pad")
def _pad(reader: Reader, op: Op) -> Value | None:
    amounts = _numbers(reader, op, 1) or op.numbers("pads")
    rank = len(op[0].shape)
    if len(amounts) != 2 * rank:
        return None
    return make.pad(reader.graph, op[0], amounts[:rank], amounts[rank:], **op.where)


@handles("Gather")
def _gather(reader: Reader, op: Op) -> Value | None:
    x, index = op[0], op[1]
    axis = make.positive(op.number("axis"), len(x.shape))
    if x.kind == "parameter" and axis == 0 and len(x.shape) == 2:
        return reader.graph.add("embedding_nd", [index, x], [op.shape], **op.where).output
    if index.elements == 1 and index.kind == "data":
        number = reader.scalar(index)
        y = make.select(reader.graph, x, axis, int(number or 0), **op.where)
        return reader.graph.reshape(y, *op.shape)
    return None


@handles("Where")
def _where(reader: Reader, op: Op) -> Value | None:
    mask, x, z = op[0], op[1], op[2]
    made = mask.node
    if isinstance(made, Node) and made.op == "opaque" and made.attrs.get("source") == "IsNaN":
        # What exporters write behind a softmax for rows that are masked altogether.
        guarded = made.inputs[0]
        return guarded if guarded in (x, z) else None
    if mask.kind != "data":
        return None
    if x.kind == "data" or z.kind == "data":
        kept = z if x.kind == "data" else x
        return make.elementwise(reader.graph, "masked_fill", kept, mask, **op.where)
    return make.elementwise(reader.graph, "select_where", mask, x, z, **op.where)
