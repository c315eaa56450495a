"""Which result of a program is trained."""

from __future__ import annotations

from plancast.errors import InputError
from plancast.importers.ir import Graph, Value


def choose_result(graph: Graph, results: list[tuple[object, tuple[int, ...]]]) -> None:
    """The first scalar is the loss; without one, the first tensor is what a loss is of."""
    computed = [
        (value, shape)
        for value, shape in results
        if isinstance(value, Value) and value.kind == "op" and value.dtype == ""
    ]
    if not computed:
        raise InputError(
            f"`{graph.name}` computes nothing from its parameters; there is nothing to train."
        )
    scalars = [value for value, shape in computed if shape == ()]
    graph.outputs = scalars[:1] or [computed[0][0]]
    graph.has_loss = bool(scalars)
