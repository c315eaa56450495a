"""Rewrites of the importers' graph, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable

from plancast.importers.ir import Graph
from plancast.importers.passes import (
    activations,
    attention,
    biases,
    experts,
    linears,
    loss,
    norms,
    rotary,
    splits,
)

PASSES: tuple[Callable[[Graph], None], ...] = (
    norms.fuse_norms,
    activations.fuse_activations,
    linears.join_biases,
    splits.split_weights,
    attention.fuse_eager,
    rotary.fuse_rotary,
    attention.shape_attention,
    linears.join_gated,
    experts.fuse_experts,
    linears.join_query_key_value,
    biases.name_biases,
    loss.add_loss,
)


def run(graph: Graph) -> None:
    """All passes."""
    graph.tidy()
    graph.reading = False
    for rewrite in PASSES:
        rewrite(graph)
        graph.tidy()
