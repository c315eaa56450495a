"""RMS norms written out: pow, mean, rsqrt and products become one `rms_norm`."""

from __future__ import annotations

from plancast.importers.ir import VIEWS, Graph, Node, Value, producer, resolve, source
from plancast.importers.make_layers import norm

_THROUGH = (*VIEWS, "shift")


def fuse_norms(graph: Graph) -> None:
    """x * rsqrt(mean(x^2) + eps) * gamma, in any order, also with 1 + gamma."""
    users = graph.users()
    for node in list(graph.nodes):
        if node.rule != "rsqrt_nd":
            continue
        x = _normalised(node)
        if x is None:
            continue
        scaled = _product(users, node.output, x)
        if scaled is None:
            continue
        final, gamma = _weighted(users, scaled.output)
        graph.replace(final, norm(graph, "rms_norm_nd", x, gamma, None, like=node))


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
