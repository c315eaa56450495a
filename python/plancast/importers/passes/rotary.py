"""Rotary position embeddings, however they are written."""

from __future__ import annotations

from plancast.importers.ir import VIEWS, Graph, Node, Value, producer, resolve, source
from plancast.importers.passes.attention import before_repeat

_ARITHMETIC = (
    "multiply", "add", "subtract", "negate", "scale_nd", "concat", "slice", "split",
)  # fmt: skip
_COMPLEX = ("view_as_complex", "view_as_real", "mul", "conj_physical")


def fuse_rotary(graph: Graph) -> None:
    """What lies between a projection and attention and mixes one tensor with tables of data."""
    done: dict[int, Value] = {}
    for node in list(graph.nodes):
        if node.op not in ("sdpa", "eager"):
            continue
        for place in (0, 1):
            value = resolve(node.inputs[place])
            if place == 1:
                value = before_repeat(graph, value)
            _rotate(graph, value, "rotary_k" if place else "rotary_q", done)
            if id(value) in done:  # keys as they are before they are repeated
                node.inputs[place] = done[id(value)]


def _rotate(graph: Graph, value: Value, label: str, done: dict[int, Value]) -> None:
    if id(value) in done or value.kind != "op" or len(value.shape) != 4:
        return
    entries, tables = _region(value)
    leaves = {id(source(entry)): entry for entry in entries}
    if not tables:
        return
    if len(leaves) != 1:  # a rotated part beside one that is not (latent attention)
        joined = producer(value, "concat", through=VIEWS)
        for part in joined.inputs if joined is not None else []:
            _rotate(graph, source(part, through=("expand",)), label, done)
        return
    entry = _of_rank_four(next(iter(entries)))
    if entry is None or entry.elements != value.elements:
        return
    order = _order(entry, value)
    if order is None:
        return
    seq, width = value.shape[2:]
    x = graph.permute(entry, *order)  # [batch, heads, seq, width]
    x = graph.permute(x, 0, 2, 1, 3)
    tables_ = [
        Value((seq, width), "", "data", "rotary_cos"),
        Value((seq, width), "", "data", "rotary_sin"),
        Value((width,), "int64", "data", "rotary_pair"),
    ]
    path = value.node.path if value.node else ""
    y = graph.add("rotary_kv", [x, *tables_], [x.shape], path=path, label=label).output
    y = graph.permute(y, 0, 2, 1, 3)
    done[id(value)] = y
    graph.replace(value, y)


def _arithmetic(node: Node) -> bool:
    if node.op == "opaque":
        return node.attrs.get("source") in _COMPLEX
    return node.rule in _ARITHMETIC and all(
        source(value).kind != "parameter" for value in node.inputs
    )


def _region(value: Value) -> tuple[list[Value], list[Value]]:
    """Tensors that enter the arithmetic before `value`, and tables of data in it."""
    entries: list[Value] = []
    tables: list[Value] = []
    seen: set[int] = set()
    stack = [value]
    while stack:
        value = resolve(stack.pop())
        base = source(value)
        if base.kind in ("data",):
            tables.append(base)
        elif base.kind == "op" and base.node is not None and _arithmetic(base.node):
            if id(base) not in seen:
                seen.add(id(base))
                stack.extend(base.node.inputs)
        else:
            entries.append(value)
    return entries, tables


def _of_rank_four(value: Value) -> Value | None:
    value = resolve(value)
    while len(value.shape) != 4:
        if value.kind != "op" or value.node is None or value.node.op not in VIEWS:
            return None
        value = resolve(value.node.inputs[0])
    return value


def _order(entry: Value, value: Value) -> tuple[int, ...] | None:
    """Which dim of `entry` each dim of `value` is; the last one is the head's elements."""
    labels = _labels(entry, value, {})
    if labels is None or len(labels) != 4:
        return None
    known = [label for label in labels if label >= 0]
    if len(set(known)) != len(known) or len(known) < 3:
        return None
    missing = [dim for dim in range(4) if dim not in known]
    return tuple(label if label >= 0 else missing[0] for label in labels)


def _labels(entry: Value, value: Value, memo: dict[int, list[int] | None]) -> list[int] | None:
    """For each dim of `value` the dim of `entry` it is, or -1."""
    value = resolve(value)
    if value is entry:
        return list(range(len(entry.shape)))
    if id(value) in memo:
        return memo[id(value)]
    memo[id(value)] = None
    node = value.node
    if value.kind != "op" or node is None or not (node.op in VIEWS or _arithmetic(node)):
        return None
    found = next((x for x in (_labels(entry, i, memo) for i in node.inputs) if x), None)
    result: list[int] | None = None
    if found is None:
        result = None
    elif node.op == "permute":
        result = [found[dim] for dim in node.attrs["order"]]
    elif node.op == "reshape":
        given = next(i for i in node.inputs if _labels(entry, i, memo))
        result = _through_reshape(found, resolve(given).shape, value.shape)
    elif node.op == "opaque":
        result = (found + [-1] * len(value.shape))[: len(value.shape)]
        result[-1] = -1
    elif len(found) == len(value.shape):
        result = found
    memo[id(value)] = result
    return result


def _through_reshape(
    labels: list[int], before: tuple[int, ...], after: tuple[int, ...]
) -> list[int]:
    """Dims that a reshape leaves alone keep their labels."""
    result = [-1] * len(after)
    old = new = 0
    left = right = 1
    while old < len(before) and new < len(after):
        if left == right and before[old] == after[new]:
            result[new] = labels[old]
            old, new = old + 1, new + 1
        elif left <= right:
            left *= before[old]
            old += 1
        else:
            right *= after[new]
            new += 1
    return result
