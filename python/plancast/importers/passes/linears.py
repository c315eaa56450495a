"""Linear layers of one input that run as one product."""

from __future__ import annotations

from plancast.importers.ir import VIEWS, Graph, Node, Value, common_path, producer, resolve, source

_PLAIN, _BIASED = "linear_nd", "linear_bias_nd"


def join_biases(graph: Graph) -> None:
    """A sum of a product with a weight and a vector is a linear layer with a bias."""
    users = graph.users()
    for node in list(graph.nodes):
        if node.rule != "add":
            continue
        for x, other in (node.inputs, node.inputs[::-1]):
            made, bias = producer(x, _PLAIN), source(other, through=("expand",))
            features = resolve(x).shape[-1:]
            if made is None or bias.kind != "parameter" or bias.shape != features:
                continue
            weighted = source(made.inputs[1]).kind == "parameter"
            if not weighted or len(users.get(id(made.output), [])) != 1:
                continue
            values = [*made.inputs, bias]
            new = graph.add(_BIASED, values, [node.output.shape], like=made, label=made.label)
            graph.replace(node.output, new.output)
            break


def join_gated(graph: Graph) -> None:
    """act(gate(x)) * up(x) is a gated layer, and its activation one kernel."""
    for node in list(graph.nodes):
        if node.rule != "multiply":
            continue
        for first, second in (node.inputs, node.inputs[::-1]):
            act = producer(first, "silu_nd", "gelu_nd", "gelu_tanh_nd")
            if act is None or resolve(second).shape != node.output.shape:
                continue
            gate, up = resolve(act.inputs[0]), resolve(second)
            left, right = producer(gate, _PLAIN), producer(up, _PLAIN)
            if left and right and resolve(left.inputs[0]) is resolve(right.inputs[0]):
                weights = [left.inputs[1], right.inputs[1]]
                joined = graph.add(
                    "gated_linear",
                    [left.inputs[0], *weights],
                    [gate.shape, up.shape],
                    path=common_path(left.path, right.path),
                    like=left,
                    label="gate_up",
                )
                graph.replace(gate, joined.outputs[0])
                graph.replace(up, joined.outputs[1])
            rule = "swiglu" if act.rule == "silu_nd" else "geglu"
            new = graph.add(rule, [gate, up], [node.output.shape], like=node, label="act")
            graph.replace(node.output, new.output)
            break


def join_query_key_value(graph: Graph) -> None:
    """The projections to query, key and value of one input."""
    joined: set[int] = set()
    for node in list(graph.nodes):
        if node.rule in ("attention", "attention_full", "attention_window"):
            operands = node.inputs[:3]
        elif node.rule == "scores":
            found = _values_of(graph, node)
            if found is None:
                continue
            operands = [*node.inputs, found]
        else:
            continue
        linears = [_projection(value) for value in operands]
        if any(linear is None or id(linear) in joined for linear in linears):
            continue
        q, k, v = (linear for linear in linears if linear is not None)
        if len({id(q), id(k), id(v)}) < 3 or len({q.rule, k.rule, v.rule}) > 1:
            continue
        if len({id(resolve(linear.inputs[0])) for linear in (q, k, v)}) > 1:
            continue
        _join(graph, (q, k, v), [resolve(value).shape for value in operands])
        joined |= {id(q), id(k), id(v)}


def _values_of(graph: Graph, scores: Node) -> Value | None:
    """The third operand of attention that is written out."""
    for node in graph.nodes:
        if node.rule == "context":
            value = source(node.inputs[0], through=(*VIEWS, "softmax", "softmax_causal", "add",
                                                    "scores_softcap",
                                                    "attention_dropout"))  # fmt: skip
            if value is scores.output:
                return node.inputs[1]
    return None


def _projection(value: Value) -> Node | None:
    """The linear layer that an operand comes from, through views, rotation and norms."""
    value = resolve(value)
    while value.kind == "op" and value.node is not None:
        node = value.node
        if node.rule in (_PLAIN, _BIASED):
            return node
        if node.op in VIEWS or node.rule in ("rotary_kv", "rotary", "rms_norm_nd", "layer_norm_nd"):
            value = resolve(node.inputs[0])
        else:
            return None
    return None


def _join(graph: Graph, linears: tuple[Node, Node, Node], shapes: list[tuple[int, ...]]) -> None:
    heads = [shape[2:] for shape in shapes]  # (groups, per group, width), (groups, width), ...
    for linear, parts in zip(linears, heads, strict=True):
        count = 1
        for size in parts:
            count *= size
        if linear.output.shape[-1] != count:
            return
    x = resolve(linears[0].inputs[0])
    weights = [
        graph.reshape(resolve(linear.inputs[1]), *parts, x.shape[-1])
        for linear, parts in zip(linears, heads, strict=True)
    ]
    rule, values = "qkv_linear", [x, *weights]
    if linears[0].rule == _BIASED:
        rule = "qkv_linear_bias"
        values += [
            graph.reshape(resolve(linear.inputs[2]), *parts)
            for linear, parts in zip(linears, heads, strict=True)
        ]
    results = [(*x.shape[:-1], *parts) for parts in heads]
    path = common_path(*(linear.path for linear in linears))
    node = graph.add(rule, values, results, like=linears[0], path=path, label="qkv")
    for linear, output in zip(linears, node.outputs, strict=True):
        graph.replace(linear.output, graph.reshape(output, *linear.output.shape))
