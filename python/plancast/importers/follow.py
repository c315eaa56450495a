"""How a chain of views arranges a tensor."""

from __future__ import annotations

from collections.abc import Sequence

from plancast.importers.atoms import Atom, Layout, Piece, reshape
from plancast.importers.ir import Node, Value, resolve


def views_between(base: Value, value: Value) -> list[Node]:
    """The views that lead from `base` to `value`, in order."""
    chain: list[Node] = []
    value = resolve(value)
    while value is not base and value.node is not None:
        chain.append(value.node)
        value = resolve(value.node.inputs[0])
    return chain[::-1]


def stretch(layout: Layout, before: Sequence[int], after: Sequence[int]) -> Layout:
    """The layout of a tensor that is expanded from one shape to another."""
    missing = len(after) - len(before)
    result: Layout = []
    for dim, size in enumerate(after):
        old_size = before[dim - missing] if dim >= missing else 1
        old = layout[dim - missing] if dim >= missing else []
        result.append(old if old_size == size else [Piece(Atom(size), -1)])
    return result


def follow(stored: Layout, views: list[Node]) -> Layout | None:
    """The layout after all views; None if products of sizes do not line up."""
    layout: Layout | None = [list(dim) for dim in stored]
    for view in views:
        if layout is None:
            return None
        if view.op == "permute":
            layout = [layout[dim] for dim in view.attrs["order"]]
        elif view.op == "reshape":
            layout = reshape(layout, view.output.shape)
        else:
            layout = stretch(layout, resolve(view.inputs[0]).shape, view.output.shape)
    return layout
