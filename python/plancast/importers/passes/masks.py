"""What an attention mask says, from how it was computed."""

from __future__ import annotations

from dataclasses import dataclass

from plancast.importers.ir import Node, Value, resolve

_ORDERS = ("le", "ge", "lt", "gt", "less_equal", "greater_equal", "Less", "LessOrEqual",
           "Greater", "GreaterOrEqual")  # fmt: skip
_TRIANGLES = ("tril", "triu", "tril_", "triu_", "Trilu")
_SHIFTS = ("sub", "add", "rsub", "Sub", "Add")


@dataclass(frozen=True)
class Mask:
    """`causal`: later keys are hidden. `window`: so are keys that many positions back."""

    causal: bool = False
    window: int | None = None


def read_mask(mask: Value | None) -> Mask:
    """The mask that a value of data is.

    Masks are made of comparisons of positions, and of what padding hides, which a
    forecast knows nothing of and takes as nothing.
    """
    if mask is None:
        return Mask()
    causal, window = False, None
    stack, seen = [resolve(mask)], set()
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if value.constant == "causal":
            causal = True
        node = value.node
        if node is None:
            continue
        if node.op in _TRIANGLES:
            causal = True
        elif node.op in _ORDERS and _of_positions(node):
            shift = _shift(node)
            if shift is None:
                causal = True
            else:
                window = shift if window is None else min(window, shift)
        stack.extend(resolve(value) for value in node.inputs)
    return Mask(causal, window)


def _of_positions(node: Node) -> bool:
    """Whether two tensors are compared; against a number it is padding or a sequence's end."""
    return len(node.inputs) == 2


def _shift(node: Node) -> int | None:
    """The number by which one side of a comparison was moved: more than one is a window."""
    for side in node.inputs:
        value = resolve(side)
        while value.node is not None and value.node.inputs:
            made = value.node
            number = made.attrs.get("other")
            if made.op in _SHIFTS and isinstance(number, int) and abs(number) > 1:
                return abs(number)
            if made.op in ("cumsum", "diff", "embedding") or len(made.inputs) > 1:
                break
            value = resolve(made.inputs[0])
    return None
