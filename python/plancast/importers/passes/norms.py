"""Norms written out: powers, means, roots and products become one op."""

from __future__ import annotations

from plancast.importers.ir import VIEWS, Graph, Node, Value, producer, resolve, source
from plancast.importers.make_layers import norm

_THROUGH = (*VIEWS, "shift")


def fuse_norms(graph: Graph) -> None:
    """x * rsqrt(mean(x^2) + eps) * gamma [+ beta], in any order, also with 1 + gamma.

    Where x has its mean taken off first, it is a layer norm.
    """
    users = graph.users()
    for node in list(graph.nodes):
        if node.rule not in ("rsqrt_nd", "sqrt_nd"):
            continue
        x = _normalised(node)
        scaled = x and _scaled(users, node, x)
        if x is None or not isinstance(scaled, Node):
            continue
        centred = _centred(x)
        final, gamma = _weighted(users, scaled.output)
        if centred is None:
            graph.replace(final, norm(graph, "rms_norm_nd", x, gamma, None, like=node))
            continue
        final, beta = _shifted(users, final)
        graph.replace(final, norm(graph, "layer_norm_nd", centred, gamma, beta, like=node))


def _scaled(users: dict[int, list[Node]], root: Node, x: Value) -> Node | None:
    """The product of x with 1 / root, or its quotient by the square root."""
    if root.rule == "rsqrt_nd":
        return _product(users, root.output, x)
    for node, read in _reached(users, root.output):
        if node.rule == "reciprocal":
            return _product(users, node.output, x)
        divided = node.rule == "divide" and resolve(node.inputs[1]) is read
        if divided and source(node.inputs[0], through=("expand",)) is x:
            return node
    return None


def _centred(x: Value) -> Value | None:
    """The z of x = z - mean(z)."""
    node = producer(x, "subtract")
    if node is None:
        return None
    z = source(node.inputs[0], through=("expand",))
    mean = producer(node.inputs[1], "mean", through=VIEWS)
    return z if mean is not None and resolve(mean.inputs[0]) is z else None


def _shifted(users: dict[int, list[Node]], value: Value) -> tuple[Value, Value | None]:
    """The sum with beta, if there is one, and beta."""
    reached = _reached(users, value)
    if len(reached) == 1 and reached[0][0].rule == "add":
        node, read = reached[0]
        other = next((v for v in map(resolve, node.inputs) if v is not read), None)
        beta = other and source(other)
        if beta is not None and beta.kind == "parameter" and beta.shape == value.shape[-1:]:
            return node.output, beta
    return value, None


def _normalised(rsqrt: Node) -> Value | None:
    """The x of rsqrt(mean(x^2) + eps)."""
    mean = producer(rsqrt.inputs[0], "mean", through=_THROUGH)
    if mean is None or mean.attrs.get("reduced") != (len(mean.inputs[0].shape) - 1,):
        return None
    square = producer(mean.inputs[0], "power", "square", "multiply")
    if square is None:
        return None
    if square.rule == "power" and square.attrs.get("number") not in (2, 2.0):
        return None
    x = resolve(square.inputs[0])
    if square.rule == "multiply" and resolve(square.inputs[1]) is not x:
        return None
    return x


def _reached(users: dict[int, list[Node]], value: Value) -> list[tuple[Node, Value]]:
    """Nodes that read a value or a view of it, with what they read."""
    found = []
    stack = [value]
    while stack:
        value = stack.pop()
        for node in users.get(id(value), []):
            if node.op in VIEWS:
                stack.append(node.output)
            else:
                found.append((node, value))
    return found


def _product(users: dict[int, list[Node]], rsqrt: Value, x: Value) -> Node | None:
    for node, read in _reached(users, rsqrt):
        if node.rule != "multiply":
            continue
        other = next((v for v in map(resolve, node.inputs) if v is not read), None)
        if other is not None and source(other, through=("expand",)) is x:
            return node
    return None


def _weighted(users: dict[int, list[Node]], scaled: Value) -> tuple[Value, Value | None]:
    """The product with gamma, if there is one, and gamma."""
    reached = _reached(users, scaled)
    if len(reached) == 1 and reached[0][0].rule == "multiply":
        node, read = reached[0]
        other = next((v for v in map(resolve, node.inputs) if v is not read), None)
        gamma = other and source(other, through=_THROUGH)
        if gamma is not None and gamma.kind == "parameter" and gamma.shape == scaled.shape[-1:]:
            return node.output, gamma
    return scaled, None
