"""Biases and sums as kernels that frameworks fuse with what follows."""

from __future__ import annotations

from plancast.importers.ir import VIEWS, Graph, Node, Value, resolve, source

_ACTIVATIONS = ("gelu_nd", "gelu_tanh_nd", "relu_nd", "silu_nd")


def name_biases(graph: Graph) -> None:
    """A bias before an activation or a residual sum is an op of its own, with a fusion label.

    It can then run with what follows, and under tensor parallelism it is added once,
    after the sum over ranks.
    """
    users = graph.users()
    for node in list(graph.nodes):
        if node.rule.startswith("batch_norm"):
            _fuse_batch_norm(users, node)
        if node.rule not in ("linear_nd", "linear_bias_nd", "moe_combine"):
            continue
        after = _only_reader(users, node.output)
        if after is not None and after.rule in _ACTIVATIONS:
            if node.rule == "linear_bias_nd":
                _split_bias(graph, node, "bias_gelu")
                after.attrs["fusion"] = "bias_gelu"
            continue
        dropout = after if after is not None and after.rule == "dropout_nd" else None
        if dropout is not None:
            after = _only_reader(users, dropout.output)
        if after is None or after.rule != "add" or not _is_residual(after):
            continue
        if node.rule == "linear_bias_nd":
            _split_bias(graph, node, "bias_dropout_add")
        if dropout is not None:
            dropout.attrs["fusion"] = "bias_dropout_add"
        after.attrs["fusion"] = "bias_dropout_add"
        after.label = after.label or "residual"


def _fuse_batch_norm(users: dict[int, list[Node]], norm: Node) -> None:
    """Batch norm, a residual sum and a relu run as one kernel where libraries have it."""
    after = _only_reader(users, norm.output)
    label = "bn_relu"
    chain = [norm]
    if after is not None and after.rule == "add" and _is_residual(after):
        label = "bn_add_relu"
        chain.append(after)
        after = _only_reader(users, after.output)
    if after is None or after.rule != "relu_nd" or any("fusion" in n.attrs for n in chain):
        return
    for node in [*chain, after]:
        node.attrs["fusion"] = label


def _only_reader(users: dict[int, list[Node]], value: Value) -> Node | None:
    readers = users.get(id(value), [])
    while len(readers) == 1 and readers[0].op in VIEWS:
        readers = users.get(id(readers[0].output), [])
    return readers[0] if len(readers) == 1 else None


def _is_residual(add: Node) -> bool:
    """A sum of two computed tensors of one shape."""
    bases = [source(value) for value in add.inputs]
    same = resolve(add.inputs[0]).shape == resolve(add.inputs[1]).shape
    return same and all(base.kind == "op" for base in bases)


def _split_bias(graph: Graph, node: Node, fusion: str) -> None:
    x, w, bias = node.inputs
    shape = node.output.shape
    product = graph.add("linear_nd", [x, w], [shape], like=node, label=node.label)
    summed = graph.add(
        "bias_add", [product.output, bias], [shape], like=node, label="bias", fusion=fusion
    )
    graph.replace(node.output, summed.output)
