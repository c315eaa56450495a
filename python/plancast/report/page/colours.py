"""Colours of all charts, on light and dark ground alike, and text for plotly."""

from __future__ import annotations

from plancast.textual import shown

# Parts of an iteration.
PARTS = {
    "compute": "#3b82c4",
    "recompute": "#8ab6de",
    "optimizer": "#6fb38a",
    "exposed_tp": "#f2a541",
    "exposed_cp": "#d9c04f",
    "exposed_ep": "#d65f8f",
    "exposed_dp": "#e07a5f",
    "exposed_pp": "#a07cc5",
    "exposed_offload": "#9c8f7a",
    "other": "#7d8794",
    "launch": "#5b6470",
    "straggler": "#c75146",
    "bubble": "#a9b1bd",
    "waiting": "#a9b1bd",
}
# What memory holds.
MEMORY = {
    "parameters": "#2f6ba8",
    "gradients": "#5fa3dc",
    "optimizer": "#6fb38a",
    "activations": "#f2c14e",
    "workspace": "#b084cc",
    "overhead": "#8b93a0",
}
# Passes of a pipeline: of even and of odd micro-batches, so that neighbours can be told.
PASSES = {
    "F": ("#5aa9e6", "#86c5f4"),
    "B": ("#2f6db5", "#4f8ed3"),
    "W": ("#4d9a6a", "#77bd92"),
    "optimizer": ("#8b93a0", "#8b93a0"),
}
LINKS = {
    "tp": "#f2a541",
    "cp": "#d9c04f",
    "ep": "#d65f8f",
    "dp": "#e07a5f",
    "pp": "#a07cc5",
    "offload": "#9c8f7a",
    "optimizer": "#8b93a0",
}
# Why something runs, stream by stream.
PURPOSES = {
    "forward": PASSES["F"][0],
    "backward": PASSES["B"][0],
    "recompute": PARTS["recompute"],
    **LINKS,
    "optimizer": PARTS["optimizer"],
}
BAD = "#c75146"
# Of things that have no colours of their own, in turn.
ROW = tuple(PARTS.values())
GROUND = "#888888"


def plain(text: str) -> str:
    """Text that plotly shows as it is: it would read tags in it.

    >>> plain("<b>llama & co")
    '&lt;b>llama &amp; co'
    """
    return shown(text).replace("&", "&amp;").replace("<", "&lt;")
