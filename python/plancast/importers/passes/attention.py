"""Attention: one kernel, or products and a softmax, over grouped heads."""

from __future__ import annotations

from typing import Any

from plancast.importers import make
from plancast.importers.atoms import Atom, Layout, Piece, expand
from plancast.importers.follow import follow, views_between
from plancast.importers.ir import VIEWS, Graph, Node, Value, resolve, source
from plancast.importers.passes.masks import Mask, read_mask

_GROUP = "core_attention"


def fuse_eager(graph: Graph) -> None:
    """softmax(q k^T * scale + mask) v, written out, becomes `eager` with the same operands."""
    users = graph.users()
    for node in list(graph.nodes):
        if node.rule != "softmax_nd" or len(node.output.shape) not in (3, 4):
            continue
        found = _scores(node)
        after = _context(users, node.output)
        if found is None or after is None:
            continue
        scores, mask, bias, capped = found
        dropout, context = after
        q, k = (_unscaled(value) for value in scores.inputs)
        v = context.inputs[1]
        k = graph.permute(k, *range(len(k.shape) - 2), len(k.shape) - 1, len(k.shape) - 2)
        values = [q, k, v] + ([bias] if bias is not None else [])
        op = (
            "sdpa" if graph.kernels_unsaid and bias is None and not (dropout or capped) else "eager"
        )
        new = graph.add(
            op,
            values,
            [context.output.shape],
            like=node,
            path=scores.path,
            mask=read_mask(mask),
            dropout=dropout,
            capped=capped,
        )
        graph.replace(context.output, new.output)


def _scores(softmax: Node) -> tuple[Node, Value | None, Value | None, bool] | None:
    """The product before a softmax; the mask, the learned bias and whether a cap (tanh)
    are between them."""
    value, mask, bias, capped = resolve(softmax.inputs[0]), None, None, False
    while value.kind == "op" and value.node is not None:
        node = value.node
        if node.rule == "matmul" and len(node.inputs) == 2:
            return node, mask, bias, capped
        if node.op == "reshape" and len(node.output.shape) == len(node.inputs[0].shape) + 1:
            return None
        capped = capped or node.rule == "tanh_nd"
        plain = node.rule in ("scale_nd", "cast", "clamp", "shift", "tanh_nd")
        if plain or node.op in VIEWS:
            value = resolve(node.inputs[0])
        elif node.rule in ("add", "masked_fill", "select_where", "multiply", "divide"):
            sides = [resolve(side) for side in node.inputs]
            others = [side for side in sides if source(side).kind == "data"]
            trunk = [side for side in sides if source(side).kind == "op"]
            if others and len(trunk) == 1:
                mask = mask if node.rule in ("multiply", "divide") else source(others[0])
                value = trunk[0]
            elif node.rule == "add" and bias is None and not others:
                products = [side for side in sides if _is_product(side)]
                if len(products) != 1:
                    return None
                bias = sides[1 - sides.index(products[0])]
                value = products[0]
            else:
                return None
        else:
            return None
    return None


def _is_product(value: Value) -> bool:
    made = source(value, through=(*VIEWS, "scale_nd")).node
    return made is not None and made.rule == "matmul"


def _context(users: dict[int, list[Node]], value: Value) -> tuple[bool, Node] | None:
    """Whether dropout follows a softmax, and the product that does."""
    dropout = False
    while True:
        readers = users.get(id(value), [])
        if len(readers) != 1:
            return None
        node = readers[0]
        if node.rule in ("dropout_nd", "cast") or node.op == "expand":
            dropout = dropout or node.rule == "dropout_nd"
            value = node.output
        elif node.rule == "matmul" and resolve(node.inputs[0]) is value:
            return dropout, node
        else:
            return None


def _unscaled(value: Value) -> Value:
    """An operand before it was multiplied by a number."""
    value = resolve(value)
    while value.kind == "op" and value.node is not None and value.node.rule == "scale_nd":
        value = resolve(value.node.inputs[0])
    return value


def before_repeat(graph: Graph, value: Value) -> Value:
    """Keys or values before each head was repeated for the queries of its group.

    `value` is [batch, heads, positions, width]. If its heads are heads of a smaller
    tensor, each stretched, that tensor is given in the same order of dims.
    """
    given = resolve(value)
    base = source(given)
    if base is given or len(given.shape) != 4:
        return given
    stored: Layout = [[Piece(Atom(n), place)] for place, n in enumerate(base.shape)]
    layout = follow(stored, views_between(base, given))
    if layout is None:
        return given
    dims = [expand(dim) for dim in layout]
    stretched = [any(piece.stretched for piece in dim) for dim in dims]
    if stretched != [False, True, False, False]:
        return given
    kept = [[piece for piece in dim if not piece.stretched] for dim in dims]
    memory = expand(piece for dim in stored for piece in dim)
    wanted = [piece for dim in kept for piece in dim]
    if sorted(map(memory.index, wanted)) != list(range(len(memory))):
        return given
    thin = graph.reshape(base, *(piece.atom.size for piece in memory))
    moved = graph.permute(thin, *map(memory.index, wanted))
    heads = 1
    for piece in kept[1]:
        heads *= piece.atom.size
    return graph.reshape(moved, given.shape[0], heads, *given.shape[2:])


def shape_attention(graph: Graph) -> None:
    """Attention over [batch, heads, seq, dim] as rules say it: heads in groups that share keys."""
    for node in list(graph.nodes):
        if node.op not in ("sdpa", "eager"):
            continue
        q, k, v = (resolve(value) for value in node.inputs[:3])
        lead = q.shape[:-2]
        if len(lead) != 2:  # one head, or heads and batch in one dim
            q, k, v = (graph.reshape(x, x.shape[0], 1, *x.shape[1:]) for x in (q, k, v))
            if len(lead) != 1:
                continue
        k, v = before_repeat(graph, k), before_repeat(graph, v)
        heads, groups = q.shape[1], k.shape[1]
        if groups != v.shape[1] or heads % groups:
            k, v = resolve(node.inputs[1]), resolve(node.inputs[2])
            groups = k.shape[1]
        per_group = heads // groups
        batch, _, seq, width = q.shape
        q = graph.reshape(q, batch, groups, per_group, seq, width)
        q = graph.permute(q, 0, 3, 1, 2, 4)
        k, v = graph.permute(k, 0, 2, 1, 3), graph.permute(v, 0, 2, 1, 3)
        y = _kernels(graph, node, q, k, v)
        y = graph.reshape(graph.permute(y, 0, 2, 3, 1, 4), batch, heads, seq, v.shape[-1])
        graph.replace(node.output, graph.reshape(y, *node.output.shape))


def _kernels(graph: Graph, node: Node, q: Value, k: Value, v: Value) -> Value:
    """The result [batch, seq, groups, heads per group, dim]."""
    batch, seq, groups, per_group, _ = q.shape
    keys, width = k.shape[1], v.shape[-1]
    mask = node.attrs.get("mask")
    bias = node.inputs[3] if len(node.inputs) > 3 else None
    if mask is None:
        data = bias is None or source(bias).kind == "data"
        mask = read_mask(bias) if data else Mask()
        bias = None if data else bias
        mask = Mask(mask.causal or node.attrs.get("causal", False), mask.window)
    where: dict[str, Any] = {"like": node, "recompute_group": _GROUP}
    result = (batch, seq, groups, per_group, width)
    if node.op == "sdpa" and bias is None:
        if mask.window is not None and mask.window < keys and seq == keys:
            sizes = {"w": mask.window}
            return graph.add("attention_window", [q, k, v], [result], sizes=sizes, **where).output
        rule = "attention" if mask.causal and seq == keys else "attention_full"
        return graph.add(rule, [q, k, v], [result], label="core", **where).output
    square = (batch, groups, per_group, seq, keys)
    p = graph.add("scores", [q, k], [square], label="scores", **where).output
    if node.attrs.get("capped"):
        p = graph.add("scores_softcap", [p], [square], label="softcap", **where).output
    if bias is not None:
        p = graph.reshape(p, batch, groups * per_group, seq, keys)
        p = make.elementwise(graph, "add", p, bias, label="bias", path=node.path)
        p = graph.reshape(p, *square)
    rule = "softmax_causal" if mask.causal and seq == keys else "softmax"
    p = graph.add(rule, [p], [square], label="softmax", **where).output
    if node.attrs.get("dropout"):
        p = graph.add("attention_dropout", [p], [square], label="dropout", **where).output
    y = graph.add(
        "context", [p, v], [(batch, groups, per_group, seq, width)], label="context", **where
    ).output
    return graph.add("merge_heads", [y], [result], label="merge_heads", **where).output
