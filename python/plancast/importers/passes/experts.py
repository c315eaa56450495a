"""Mixtures of experts: grouped products of sorted tokens become routed ops.

Frameworks sort the tokens by expert, run one grouped product for each weight, weigh the
results and put them back. Which tokens go where only the data knows; the rules of
graph/rule/rules/moe.rules say it with tables that are fed in.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from plancast.importers.ir import VIEWS, Graph, Node, Value, resolve, source

_GROUPED = ("grouped_mm_fallback", "_grouped_mm", "grouped_mm")
_SPLITS = ("split", "slice")


def fuse_experts(graph: Graph) -> None:
    """Every pair of grouped products, with its router, dispatch and combination."""
    users = graph.users()
    for node in list(graph.nodes):
        if _is_grouped(node):
            found = _block(users, node)
            if found is not None:
                _write(graph, found)


@dataclass
class _Block:
    """What a block of experts is made of."""

    first: Node  # the grouped product to the experts' width, or to twice of it
    second: Node  # the one back
    act: Node
    x: Value  # [batch, seq, hidden]
    result: Value  # [tokens, hidden], summed over the experts of a token
    router: Node
    topk: int
    rules: set[str] = field(default_factory=set)  # of the ops between router and weights


def _is_grouped(node: Node) -> bool:
    name = str(node.attrs.get("source", ""))
    return node.op == "opaque" and name.rpartition("::")[2] in _GROUPED


def _block(users: dict[int, list[Node]], first: Node) -> _Block | None:
    act = _after(users, first.output, ("swiglu", "geglu", "gelu_nd", "gelu_tanh_nd", "relu_nd"))
    second = act and _after(users, act.output, ("opaque",), grouped=True)
    if act is None or second is None:
        return None
    gathered = resolve(first.inputs[0])
    tokens = _tokens(gathered)
    weighted = _after(users, second.output, ("multiply",))
    if tokens is None or weighted is None:
        return None
    rows = tokens.elements // tokens.shape[-1]
    result = _summed(users, weighted.output, rows)
    weights = next(v for v in map(resolve, weighted.inputs) if not _comes_from(v, second))
    router, rules = _router(weights, source(tokens))
    stream = _stream(tokens)
    if result is None or router is None or stream is None:
        return None
    topk = gathered.shape[0] // rows
    return _Block(first, second, act, stream, result, router, topk, rules)


def _after(
    users: dict[int, list[Node]], value: Value, rules: tuple[str, ...], *, grouped: bool = False
) -> Node | None:
    """The nearest reader with one of these rules, behind views and splits."""
    stack, steps = [value], 0
    while stack and steps < 64:
        steps += 1
        for node in users.get(id(stack.pop(0)), []):
            if node.rule in rules and (not grouped or _is_grouped(node)):
                return node
            if node.op in VIEWS or node.rule in (*_SPLITS, "add", "scale_nd", "clamp"):
                stack.extend(node.outputs)
    return None


def _tokens(gathered: Value) -> Value | None:
    """The rows that were sorted by expert."""
    base = source(gathered)
    while base.node is not None and base.node.op == "opaque" and base.node.inputs:
        if str(base.node.attrs.get("source")) not in ("index", "index_select", "gather"):
            return None
        given = resolve(base.node.inputs[0])
        if len(given.shape) == 2:
            return given
        base = source(given)
    return None


def _stream(tokens: Value) -> Value | None:
    """The same rows as [batch, seq, hidden]."""
    value = resolve(tokens)
    while len(value.shape) != 3:
        if value.kind != "op" or value.node is None or value.node.op != "reshape":
            return None
        value = resolve(value.node.inputs[0])
    return value


def _comes_from(value: Value, node: Node) -> bool:
    return source(value) is node.output


def _summed(users: dict[int, list[Node]], value: Value, rows: int) -> Value | None:
    """The sum over the experts of each token."""
    stack, steps = [value], 0
    while stack and steps < 64:
        steps += 1
        for node in users.get(id(stack.pop(0)), []):
            if node.rule in ("sum", "einsum") and node.output.elements == rows * value.shape[-1]:
                return node.output
            source_name = str(node.attrs.get("source", ""))
            if source_name in ("index_add", "scatter_add", "index_add_"):
                return node.output
            if node.op in VIEWS or source_name in ("index", "index_select"):
                stack.extend(node.outputs)
    return None


def _router(weights: Value, tokens: Value) -> tuple[Node | None, set[str]]:
    """The linear layer of the tokens that the weights come from, and what is between."""
    rules: set[str] = set()
    stack, seen = [weights], set()
    found: Node | None = None
    while stack:
        value = resolve(stack.pop())
        node = value.node
        if value.kind != "op" or node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if node.rule in ("linear_nd", "linear_bias_nd"):
            if source(node.inputs[0]) is tokens:
                found = node
            continue
        rules.add(node.rule)
        if source(value) is not tokens:
            stack.extend(node.inputs)
    return found, rules


def _write(graph: Graph, block: _Block) -> None:
    batch, seq, hidden = block.x.shape
    router, path = block.router, block.router.path.rpartition(".")[0]
    experts = router.output.shape[-1]
    slots = max(1, -(-seq * block.topk // experts))
    chosen = Value((batch, seq, block.topk), "int64", "data", "chosen_experts", batched=True)
    table = Value((batch, experts, slots), "int64", "data", "expert_tokens", batched=True)

    def add(rule: str, values: list[Value], shape: tuple[int, ...], label: str) -> Value:
        return graph.add(rule, values, [shape], like=router, path=path, label=label).output

    x, scores = block.x, (batch, seq, experts)
    biased = router.rule == "linear_bias_nd"
    logits = add("router_bias" if biased else "router", [x, *router.inputs[1:]], scores, "router")
    sigmoid = "sigmoid_nd" in block.rules and "softmax_nd" not in block.rules
    p = add("router_sigmoid" if sigmoid else "router_softmax", [logits], scores, "scores")
    normalized = "divide" in block.rules
    gate = add("moe_gate_normalized" if normalized else "moe_gate", [p, chosen], scores, "gate")
    rows = (batch, experts, slots)
    d = add("moe_dispatch", [x, table], (*rows, hidden), "dispatch")
    wide = _first_product(graph, block, d)
    width = wide[0].shape[-1]
    act = {"swiglu": "expert_swiglu", "geglu": "expert_geglu", "relu_nd": "expert_relu"}
    rule = act.get(block.act.rule, "expert_gelu")
    h = add(rule, wide, (*rows, width), "experts.act")
    down = _weight(graph, block.second, width, hidden)
    y = add("expert_linear", [h, down], (*rows, hidden), "experts.down")
    y = add("moe_combine", [y, gate, table], (batch, seq, hidden), "combine")
    graph.replace(block.result, graph.reshape(y, *block.result.shape))


def _weight(graph: Graph, product: Node, inputs: int, outputs: int) -> Value:
    """A weight of all experts as [experts, outputs, inputs]."""
    value = resolve(product.inputs[1])
    if value.shape[1:] == (inputs, outputs):
        return graph.permute(value, 0, 2, 1)
    return value


def _first_product(graph: Graph, block: _Block, d: Value) -> list[Value]:
    """The experts' wide results: gate and up, or one."""
    weight = resolve(block.first.inputs[1])
    hidden = d.shape[-1]
    wide = weight.shape[1] if weight.shape[2] == hidden else weight.shape[2]
    shape, path = (*d.shape[:-1], wide), block.first.path
    if block.act.rule not in ("swiglu", "geglu"):
        w = _weight(graph, block.first, hidden, wide)
        node = graph.add("expert_linear", [d, w], [shape], like=block.router, path=path, label="up")
        return node.outputs
    base = source(weight)
    halves = [
        Value((weight.shape[0], wide // 2, hidden), "", "parameter", f"{base.name}.{half}")
        for half in ("gate", "up")
    ]
    half = (*d.shape[:-1], wide // 2)
    node = graph.add(
        "expert_gated_linear",
        [d, *halves],
        [half, half],
        like=block.router,
        path=path,
        label="gate_up",
    )
    return node.outputs
