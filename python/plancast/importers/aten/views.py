"""Operators that move elements: views, parts, joins."""

from __future__ import annotations

from typing import Any

from plancast.importers import make
from plancast.importers.aten.reader import Op, Reader, handles
from plancast.importers.ir import Value


@handles(
    "view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "flatten", "unflatten", "ravel",
    "view_as", "reshape_as", "_reshape_alias", "unsqueeze_", "squeeze_",
)  # fmt: skip
def _reshape(reader: Reader, op: Op) -> Value:
    return reader.graph.view(op["self"], "reshape", op.shape)


@handles("transpose", "transpose_", "swapaxes", "swapdims")
def _transpose(reader: Reader, op: Op) -> Value:
    rank = len(op["self"].shape)
    first = make.positive(op["dim0"] if op["dim0"] is not None else op["axis0"], rank)
    second = make.positive(op["dim1"] if op["dim1"] is not None else op["axis1"], rank)
    order = list(range(rank))
    order[first], order[second] = second, first
    return reader.graph.permute(op["self"], *order)


@handles("t", "numpy_T", "mT", "adjoint", "matrix_H")
def _matrix_transpose(reader: Reader, op: Op) -> Value:
    rank = len(op["self"].shape)
    order = list(range(rank))
    if op.name == "numpy_T":
        order.reverse()
    elif rank > 1:
        order[-2:] = order[-1], order[-2]
    return reader.graph.permute(op["self"], *order)


@handles("permute")
def _permute(reader: Reader, op: Op) -> Value:
    rank = len(op["self"].shape)
    return reader.graph.permute(op["self"], *(make.positive(dim, rank) for dim in op["dims"]))


@handles("movedim", "moveaxis")
def _movedim(reader: Reader, op: Op) -> Value:
    rank = len(op["self"].shape)
    sources = op["source"] if isinstance(op["source"], list | tuple) else [op["source"]]
    targets = (
        op["destination"] if isinstance(op["destination"], list | tuple) else [op["destination"]]
    )
    order = [-1] * rank
    for source, target in zip(sources, targets, strict=True):
        order[make.positive(target, rank)] = make.positive(source, rank)
    rest = iter(dim for dim in range(rank) if dim not in order)
    return reader.graph.permute(op["self"], *(dim if dim >= 0 else next(rest) for dim in order))


@handles("expand", "expand_as", "broadcast_to")
def _expand(reader: Reader, op: Op) -> Value:
    return reader.graph.view(op["self"], "expand", op.shape)


@handles("broadcast_tensors")
def _broadcast(reader: Reader, op: Op) -> list[Value]:
    return make.broadcast(reader.graph, op["tensors"])


@handles("slice", "narrow")
def _slice(reader: Reader, op: Op) -> Value:
    x = op["self"]
    dim = make.positive(op["dim"] or 0, len(x.shape))
    if op.name == "narrow":
        start, stop, step = op["start"], op["start"] + op["length"], 1
    else:
        start, stop, step = op["start"] or 0, op["end"], op["step"] or 1
    stop = x.shape[dim] if stop is None else stop
    return make.slice_dim(reader.graph, x, dim, start, stop, step, **op.where)


@handles("select")
def _select(reader: Reader, op: Op) -> Value:
    x = op["self"]
    dim = make.positive(op["dim"], len(x.shape))
    return make.select(reader.graph, x, dim, op["index"], **op.where)


@handles("split", "split_with_sizes", "chunk", "tensor_split", "unsafe_split", "unsafe_chunk")
def _split(reader: Reader, op: Op) -> list[Value]:
    x = op["self"]
    dim = make.positive(op["dim"] or 0, len(x.shape))
    sizes = [result.shape[dim] for result in op.results]
    return make.split(reader.graph, x, dim, sizes, **op.where)


@handles("unbind")
def _unbind(reader: Reader, op: Op) -> list[Value]:
    x = op["self"]
    dim = make.positive(op["dim"] or 0, len(x.shape))
    parts = make.split(reader.graph, x, dim, [1] * x.shape[dim], **op.where)
    shape = tuple(size for d, size in enumerate(x.shape) if d != dim)
    return [reader.graph.reshape(part, *shape) for part in parts]


@handles("cat", "concat", "concatenate")
def _cat(reader: Reader, op: Op) -> Value:
    values = op["tensors"]
    dim = make.positive(op["dim"] or 0, len(op.shape))
    return make.concat(reader.graph, values, dim, **op.where)


@handles("stack")
def _stack(reader: Reader, op: Op) -> Value:
    values = op["tensors"]
    rank = len(op.shape)
    dim = make.positive(op["dim"] or 0, rank)
    thick = [
        reader.graph.reshape(value, *value.shape[:dim], 1, *value.shape[dim:]) for value in values
    ]
    return make.concat(reader.graph, thick, dim, **op.where)


@handles("pad", "constant_pad_nd", "reflection_pad2d", "replication_pad2d")
def _pad(reader: Reader, op: Op) -> Value:
    x, amounts = op["self"], list(op["pad"] if op["pad"] is not None else op["padding"])
    rank = len(x.shape)
    before, after = [0] * rank, [0] * rank
    for place in range(len(amounts) // 2):
        before[rank - 1 - place] = amounts[2 * place]
        after[rank - 1 - place] = amounts[2 * place + 1]
    return make.pad(reader.graph, x, before, after, **op.where)


@handles("roll")
def _roll(reader: Reader, op: Op) -> Value:
    x = op["self"]
    for shift, dim in zip(op["shifts"], op["dims"] or [0], strict=False):
        dim = make.positive(dim, len(x.shape))
        shift %= x.shape[dim]
        if shift:
            first, second = make.split(
                reader.graph, x, dim, [x.shape[dim] - shift, shift], **op.where
            )
            x = make.concat(reader.graph, [second, first], dim, **op.where)
    result: Value = x
    return result


@handles("repeat")
def _repeat(reader: Reader, op: Op) -> Value | None:
    x, counts = op["self"], list(op["repeats"])
    shape = (1,) * (len(counts) - len(x.shape)) + x.shape
    thick = tuple(part for size in shape for part in (1, size))
    wide = tuple(part for count, size in zip(counts, shape, strict=True) for part in (count, size))
    graph = reader.graph
    return graph.reshape(graph.view(graph.reshape(x, *thick), "expand", wide), *op.shape)


@handles("repeat_interleave")
def _repeat_interleave(reader: Reader, op: Op) -> Value | None:
    x, dim = op["self"], op["dim"]
    if dim is None or not isinstance(op["repeats"], int):
        return None
    dim = make.positive(dim, len(x.shape)) + 1
    thick = (*x.shape[:dim], 1, *x.shape[dim:])
    wide = (*x.shape[:dim], op["repeats"], *x.shape[dim:])
    graph = reader.graph
    return graph.reshape(graph.view(graph.reshape(x, *thick), "expand", wide), *op.shape)


@handles("index_select", "embedding_renorm_", "index", "gather", "take_along_dim")
def _index(reader: Reader, op: Op) -> Any:
    x, index = op["self"], op["indices"] if op.name == "index" else op["index"]
    if op.name == "index":
        used = [item for item in index if item is not None]
        if len(used) != 1 or index[0] is None:
            return None
        index = used[0]
    elif op.name != "index_select" or op["dim"] not in (0, -len(x.shape)):
        return None
    if index.kind != "data" or len(x.shape) < 1 or index.dtype == "uint8":
        return None
    wide = x.elements // x.shape[0]
    flat = reader.graph.reshape(x, x.shape[0], wide)
    shape = (*index.shape, wide)
    rows = reader.graph.add("embedding_nd", [index, flat], [shape], **op.where).output
    return reader.graph.reshape(rows, *op.shape)
