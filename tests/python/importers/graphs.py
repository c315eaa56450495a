"""Small graphs for the tests of passes."""

from __future__ import annotations

import plancast as pc
from plancast.importers.ir import Graph, Value
from plancast.importers.model import build


class Sketch:
    """A graph of one residual stream [3, 16, hidden] that starts at an embedding."""

    def __init__(self, hidden: int = 64) -> None:
        self.graph = Graph("sketch")
        ids = Value((3, 16), "int64", "data", "ids", batched=True)
        table = self.parameter("table", 1000, hidden)
        self.x = self.op("embedding_nd", ids, table, shape=(3, 16, hidden), path="embed")

    def parameter(self, name: str, *shape: int) -> Value:
        return Value(shape, "", "parameter", name)

    def data(self, name: str, *shape: int) -> Value:
        return Value(shape, "", "data", name)

    def op(self, rule: str, *inputs: Value, shape=None, path: str = "", **attrs) -> Value:
        shape = inputs[0].shape if shape is None else shape
        return self.graph.add(rule, inputs, [shape], path=path, **attrs).output

    def linear(self, x: Value, name: str, features: int, bias: bool = False) -> Value:
        weights = [self.parameter(f"{name}.weight", features, x.shape[-1])]
        if bias:
            weights.append(self.parameter(f"{name}.bias", features))
        rule = "linear_bias_nd" if bias else "linear_nd"
        return self.op(rule, x, *weights, shape=(*x.shape[:-1], features), path=name)

    def heads(self, x: Value, heads: int) -> Value:
        """[batch, heads, seq, dim] of [batch, seq, heads * dim]."""
        batch, seq, width = x.shape
        thin = self.graph.reshape(x, batch, seq, heads, width // heads)
        return self.graph.permute(thin, 0, 2, 1, 3)

    def model(self, output: Value):
        """The model that ends in `output`."""
        self.graph.outputs = [output]
        made = build(self.graph)
        return pc.Model.from_graph(made.graph, made.report)


def ops(model) -> list[str]:
    """Names of the rules of a model, in order."""
    found = []
    for line in str(model).splitlines():
        call = line.strip().partition(": ")[2]
        if "->" in call:
            found.append(call.partition("(")[0])
    return found
