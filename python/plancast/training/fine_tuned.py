"""Runs that train some parameters only."""

from __future__ import annotations

from dataclasses import replace

from plancast.strategy import Strategy
from plancast.training.phases import Settled


def with_nodes(phase: Settled, nodes: Strategy | None) -> Settled:
    """The phase, whose plan trains what `nodes` say; a tree says itself what it trains."""
    if nodes is None or phase.strategy == "best" or isinstance(phase.strategy, Strategy):
        return phase
    return replace(phase, strategy=nodes.with_plan(phase.strategy))
