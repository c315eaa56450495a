"""Activations written out: GELU by tanh or erf, SiLU by sigmoid."""

from __future__ import annotations

from plancast.importers.ir import VIEWS, Graph, Node, Value, resolve, source

_UP = (*VIEWS, "scale_nd", "power", "add", "multiply", "divide", "shift", "square")
_CORES = {"tanh_nd": "gelu_tanh_nd", "erf": "gelu_nd"}


def fuse_activations(graph: Graph) -> None:
    """0.5 x (1 + tanh(...x...)), 0.5 x (1 + erf(...x...)) and x sigmoid(...x...)."""
    users = graph.users()
    for node in list(graph.nodes):
        if node.rule in _CORES:
            shifted = _reader(users, node.output)
            if shifted is not None and shifted.rule in ("shift", "add"):
                _fuse(graph, users, _CORES[node.rule], node, shifted.output)
        elif node.rule == "sigmoid_nd":
            _fuse(graph, users, "silu_nd", node, node.output)


def _fuse(graph: Graph, users: dict[int, list[Node]], rule: str, core: Node, value: Value) -> None:
    """The product of `value` with the x that `core` is a function of."""
    leaves = _leaves(core.inputs[0])
    product = _reader(users, value)
    scaled = None
    if product is not None and product.rule == "scale_nd":
        scaled, product = product, _reader(users, product.output)
    if len(leaves) != 1 or product is None or product.rule != "multiply":
        return
    x = leaves[0]
    others = [source(v, through=(*VIEWS, "scale_nd")) for v in product.inputs]
    if x not in others:
        return
    last = product
    after = _reader(users, product.output)
    half = any(
        (made := resolve(v).node) is not None and made.rule == "scale_nd" for v in product.inputs
    )
    if rule != "silu_nd" and scaled is None and not half:
        if after is None or after.rule not in ("scale_nd", "multiply"):
            return
        if after.rule == "scale_nd":
            last = after
    if x.elements == last.output.elements and _flat(core.inputs[0], x):
        x = graph.reshape(x, *last.output.shape)
        graph.replace(last.output, graph.add(rule, [x], [x.shape], like=last).output)


def _reader(users: dict[int, list[Node]], value: Value) -> Node | None:
    readers = users.get(id(value), [])
    return readers[0] if len(readers) == 1 else None


def _flat(value: Value, leaf: Value) -> bool:
    """Whether no dims change places between `leaf` and `value`."""
    value = resolve(value)
    while value is not leaf:
        node = value.node
        if node is None or node.op == "permute":
            return False
        value = resolve(node.inputs[0])
    return True


def _leaves(value: Value) -> list[Value]:
    """The tensors that arithmetic on one tensor starts from; constants are none."""
    found: dict[int, Value] = {}
    stack, steps = [value], 0
    while stack and steps < 64:
        steps += 1
        value = resolve(stack.pop())
        node = value.node
        if value.kind == "op" and node is not None and node.rule in _UP:
            stack.extend(node.inputs)
        elif not (value.kind == "data" and value.elements == 1):
            found[id(value)] = value
    return list(found.values())
