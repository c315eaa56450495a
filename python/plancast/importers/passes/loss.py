"""A loss for modules that compute none."""

from __future__ import annotations

from plancast.importers.ir import Graph, Value, producer, resolve


def add_loss(graph: Graph) -> None:
    """Cross-entropy of logits, squared error of anything else, against data."""
    if graph.has_loss:
        return
    y = resolve(graph.outputs[0])
    logits = producer(y, "linear_nd", "linear_bias_nd", "bias_add") is not None
    if logits and len(y.shape) in (2, 3) and y.shape[-1] > 1:
        labels = Value(y.shape[:-1], "int64", "data", "labels")
        rule = "classification_loss" if len(y.shape) == 2 else "cross_entropy"
        loss = graph.add(rule, [y, labels], [y.shape[:-1]], label="loss").output
    else:
        target = Value(y.shape, "", "input", "target")
        loss = graph.add("squared_error", [y, target], [y.shape], label="loss").output
    graph.outputs = [loss]
    graph.has_loss = True
