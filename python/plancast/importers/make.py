"""Nodes for the ops that every source of models has, whatever they are called there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plancast.importers.ir import Graph, Node, Value


def _letters(rank: int) -> list[str]:
    return [f"i{dim}" for dim in range(rank)]


def positive(dim: int, rank: int) -> int:
    """A dim counted from the front."""
    return dim + rank if dim < 0 else dim


def broadcast(graph: Graph, values: Sequence[Value]) -> list[Value]:
    """All values stretched to the shape that they have together."""
    rank = max(len(value.shape) for value in values)
    shape = [1] * rank
    for value in values:
        for dim, size in enumerate(value.shape, rank - len(value.shape)):
            shape[dim] = max(shape[dim], size) if size else size
    return [graph.view(value, "expand", tuple(shape)) for value in values]


def elementwise(graph: Graph, rule: str, *values: Value, dtype: str = "", **where: Any) -> Value:
    """One result for each element of operands that are broadcast."""
    values = tuple(broadcast(graph, values))
    return graph.add(rule, values, [values[0].shape], dtype=dtype, **where).output


def slice_dim(
    graph: Graph, x: Value, dim: int, start: int, stop: int, step: int = 1, **where: Any
) -> Value:
    """Elements start, start + step, ... below stop of one dim."""
    size = x.shape[dim]
    start = min(max(start + size if start < 0 else start, 0), size)
    stop = min(max(stop + size if stop < 0 else stop, start), size)
    if start == 0 and stop == size and step == 1:
        return x
    count = max(0, -(-(stop - start) // step))
    index = _letters(len(x.shape))
    read = index.copy()
    read[dim] = "p"
    shape = (*x.shape[:dim], count, *x.shape[dim + 1 :])
    attrs = {"dim": dim, "start": start, "step": step, **where}
    if count == 1:
        left = _one("y", index, dim)
        text = f"slice(x) -> (y) {{\n {left} = x[{','.join(read)}] where p == {start}\n}}"
        thin = (*x.shape[:dim], *x.shape[dim + 1 :])
        y = graph.add(text, [x], [thin], dtype=x.dtype, **attrs).output
        return graph.reshape(y, *shape)
    text = (
        f"slice(x) -> (y) {{\n y[{','.join(index)}] = x[{','.join(read)}] "
        f"where p == {step} * i{dim} + {start}\n}}"
    )
    return graph.add(text, [x], [shape], dtype=x.dtype, **attrs).output


def _one(name: str, index: list[str], dim: int) -> str:
    """A tensor that lacks a dim."""
    return f"{name}[{','.join(letter for d, letter in enumerate(index) if d != dim)}]"


def select(graph: Graph, x: Value, dim: int, index: int, **where: Any) -> Value:
    """One element of a dim, which goes away."""
    index = positive(index, x.shape[dim])
    kept = slice_dim(graph, x, dim, index, index + 1, **where)
    return graph.reshape(kept, *(size for d, size in enumerate(x.shape) if d != dim))


def split(graph: Graph, x: Value, dim: int, sizes: Sequence[int], **where: Any) -> list[Value]:
    """Neighbouring parts of one dim."""
    if len(sizes) == 1:
        return [x]
    index = _letters(len(x.shape))
    lines, shapes, start = [], [], 0
    for number, size in enumerate(sizes):
        part, read = index.copy(), index.copy()
        part[dim], read[dim] = f"p{number}", "h"
        left, place = f"y{number}[{','.join(part)}]", f"p{number} + {start}"
        if size == 1:
            left, place = _one(f"y{number}", index, dim), str(start)
        lines.append(f" {left} = x[{','.join(read)}] where h == {place}")
        kept = (size,) if size > 1 else ()
        shapes.append((*x.shape[:dim], *kept, *x.shape[dim + 1 :]))
        start += size
    names = ", ".join(f"y{number}" for number in range(len(sizes)))
    text = "\n".join([f"split(x) -> ({names}) {{", *lines, "}"])
    node = graph.add(text, [x], shapes, dtype=x.dtype, dim=dim, parts=list(sizes), **where)
    return [
        graph.reshape(value, *x.shape[:dim], size, *x.shape[dim + 1 :])
        for value, size in zip(node.outputs, sizes, strict=True)
    ]


def concat(graph: Graph, values: Sequence[Value], dim: int, **where: Any) -> Value:
    """One after the other along a dim."""
    values = [value for value in values if value.elements]
    if len(values) == 1:
        return values[0]
    first = values[0]
    index = _letters(len(first.shape))
    written = index.copy()
    written[dim] = "h"
    lines, start = [], 0
    operands: list[Value] = []
    for number, value in enumerate(values):
        size = value.shape[dim]
        read = index.copy()
        read[dim] = f"p{number}"
        right, place = f"x{number}[{','.join(read)}]", f"p{number} + {start}"
        if value.shape[dim] == 1:
            right, place = _one(f"x{number}", index, dim), str(start)
            value = graph.reshape(value, *value.shape[:dim], *value.shape[dim + 1 :])
        operands.append(value)
        lines.append(f" y{number}[{','.join(written)}] = {right} where h == {place}")
        start += size
    sum_ = " + ".join(f"y{number}[{','.join(written)}]" for number in range(len(values)))
    names = ", ".join(f"x{number}" for number in range(len(values)))
    text = "\n".join(
        [f"concat({names}) -> (y) {{", *lines, f" y[{','.join(written)}] = {sum_}", "}"]
    )
    shape = (*first.shape[:dim], start, *first.shape[dim + 1 :])
    return graph.add(text, operands, [shape], dtype=first.dtype, dim=dim, **where).output


def pad(graph: Graph, x: Value, before: Sequence[int], after: Sequence[int], **where: Any) -> Value:
    """Zeros around; negative amounts cut off."""
    for dim, (front, back) in enumerate(zip(before, after, strict=True)):
        if front == 0 and back == 0:
            continue
        index, read = _letters(len(x.shape)), _letters(len(x.shape))
        read[dim] = "p"
        text = (
            f"pad(x) -> (y) {{\n y[{','.join(index)}] = x[{','.join(read)}] "
            f"where p == i{dim} - {front}\n}}"
        ).replace("- -", "+ ")
        shape = (*x.shape[:dim], x.shape[dim] + front + back, *x.shape[dim + 1 :])
        x = graph.add(text, [x], [shape], dtype=x.dtype, **where).output
    return x


def reduce(
    graph: Graph, kind: str, x: Value, dims: Sequence[int], keep: bool, **where: Any
) -> Value:
    """`sum`, `mean` or `max` over some dims."""
    rank = len(x.shape)
    gone = sorted({positive(dim, rank) for dim in dims} or range(rank))
    gone = [dim for dim in gone if x.shape[dim] != 1]
    index = _letters(rank)
    left = ",".join(name for dim, name in enumerate(index) if dim not in gone)
    count = " * ".join(f"size(i{dim})" for dim in gone)
    kept = tuple(1 if dim in gone else size for dim, size in enumerate(x.shape))
    dropped = {positive(dim, rank) for dim in dims} or set(range(rank))
    if gone:
        divided = f" / ({count})" if kind == "mean" else ""
        how = "max=" if kind == "max" else "+="
        saved = " save x, y\n" if kind == "max" else ""
        text = f"{kind}(x) -> (y) {{\n y[{left}] {how} x[{','.join(index)}]{divided}\n{saved}}}"
        shape = tuple(size for dim, size in enumerate(x.shape) if dim not in gone)
        x = graph.add(text, [x], [shape], reduced=tuple(gone), **where).output
    if keep:
        return graph.reshape(x, *kept)
    return graph.reshape(x, *(size for dim, size in enumerate(kept) if dim not in dropped))


def formula(graph: Graph, name: str, text: str, *values: Value, **where: Any) -> Value:
    """A result for each element, by a formula of `x[...]` (and `z[...]`)."""
    values = tuple(broadcast(graph, values))
    names = ("x", "z", "u")[: len(values)]
    index = ",".join(_letters(len(values[0].shape)))
    saves = f" save {', '.join(names)}\n"
    rule = f"{name}({', '.join(names)}) -> (y) {{\n y[...] = {text}\n{saves}}}"
    return graph.add(rule.replace("...", index), values, [values[0].shape], **where).output


def linear(graph: Graph, x: Value, w: Value, bias: Value | None, **where: Any) -> Value:
    """x times the transpose of w [features, inputs], plus a bias."""
    shape = (*x.shape[:-1], w.shape[0])
    if bias is None:
        return graph.add("linear_nd", [x, w], [shape], **where).output
    return graph.add("linear_bias_nd", [x, w, bias], [shape], **where).output


def matmul(graph: Graph, x: Value, z: Value, **where: Any) -> Value:
    """The product over the last dim of x and the one before the last of z, as `torch.matmul`."""
    if len(z.shape) == 1:
        column = graph.reshape(z, z.shape[0], 1)
        y = matmul(graph, x, column, **where)
        return graph.reshape(y, *y.shape[:-1])
    if len(x.shape) == 1:
        y = matmul(graph, graph.reshape(x, 1, x.shape[0]), z, **where)
        return graph.reshape(y, *y.shape[:-2], y.shape[-1])
    if len(z.shape) == 2:
        return linear(graph, x, graph.permute(z, 1, 0), None, **where)
    rank = max(len(x.shape), len(z.shape))
    lead = [1] * (rank - 2)
    for value in (x, z):
        for dim, size in enumerate(value.shape[:-2], rank - len(value.shape)):
            lead[dim] = max(lead[dim], size)
    x = graph.view(x, "expand", (*lead, *x.shape[-2:]))
    z = graph.view(z, "expand", (*lead, *z.shape[-2:]))
    return graph.add("matmul", [x, z], [(*lead, x.shape[-2], z.shape[-1])], **where).output


def softmax(graph: Graph, x: Value, dim: int, rule: str = "softmax_nd", **where: Any) -> Value:
    """Softmax along a dim."""
    rank = len(x.shape)
    dim = positive(dim, rank)
    if dim == rank - 1:
        return graph.add(rule, [x], [x.shape], **where).output
    order = [d for d in range(rank) if d != dim] + [dim]
    moved = graph.permute(x, *order)
    y = graph.add(rule, [moved], [moved.shape], **where).output
    return graph.permute(y, *(order.index(d) for d in range(rank)))


def opaque(
    graph: Graph,
    name: str,
    values: Sequence[Value],
    shapes: Sequence[tuple[int, ...]],
    **where: Any,
) -> Node:
    """An op that no rule is known for."""
    return graph.add("opaque", values, shapes, source=name, **where)
