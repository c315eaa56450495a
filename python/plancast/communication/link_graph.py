"""Bare links that collective algorithms run on and are searched for on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plancast import _core, files
from plancast.errors import InputError

# The nodes and links (from, to, chunks in a round) of a topology, a name such as
# `dgx1`, `ring:8`, `mesh:2x4`, or one of NCCL's topology files.
Topology = str | Path | Sequence[tuple[int, int, int]]


def graph_of(topology: Topology) -> _core.LinkGraph:
    """The links that a topology stands for."""
    if isinstance(topology, str | Path):
        text = str(topology)
        if text.endswith(".xml"):
            return _core.LinkGraph.from_nccl(files.read_text(text), text)
        return _core.LinkGraph.named(text)
    links = [(int(a), int(b), int(width)) for a, b, width in topology]
    if not links:
        raise InputError("a topology without links; give some as (from, to, width).")
    return _core.LinkGraph.create(max(max(a, b) for a, b, _ in links) + 1, links)
