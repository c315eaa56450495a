"""What all figures share: how one is made, its colours and its look."""

from __future__ import annotations

from typing import Any

from plancast.errors import InputError

# Parts of an iteration: work in blue, waiting for communication in warm colours, idleness grey.
PARTS = {
    "compute": "#1f4e79",
    "recompute": "#4a90c2",
    "optimizer": "#7fb98f",
    "exposed_tp": "#c0392b",
    "exposed_dp": "#e07a5f",
    "exposed_pp": "#f2a65a",
    "exposed_cp": "#f2c14e",
    "exposed_ep": "#d9a5b3",
    "exposed_offload": "#b084cc",
    "bubble": "#9a9a9a",
    "straggler": "#6d6d6d",
    "launch": "#c8c8c8",
    "other": "#e2e2e2",
}
# What memory holds.
KINDS = {
    "parameters": "#1f4e79",
    "gradients": "#4a90c2",
    "optimizer": "#7fb98f",
    "activations": "#f2c14e",
    "workspace": "#b084cc",
    "allocator": "#c8c8c8",
    "communicators": "#e07a5f",
    "context": "#9a9a9a",
}
# Why something runs, in a timeline; what is not listed takes its turn of the rest.
PURPOSES = {
    "forward": "#4a90c2",
    "backward": "#1f4e79",
    "recompute": "#8fc1e3",
    "optimizer": "#7fb98f",
    "tp": "#c0392b",
    "dp": "#e07a5f",
    "pp": "#f2a65a",
    "cp": "#f2c14e",
    "ep": "#d9a5b3",
}
ROW = list(PARTS.values())
LIMIT = "#c0392b"
_BAR, _FRAME = 34, 170  # pixels of a row of bars, and of all around them
_LOWEST = 380  # with room for the legend


def graph_objects() -> Any:
    """plotly's module of figures.

    Raises:
      InputError: it is not installed.
    """
    try:
        from plotly import graph_objects as found
    except ImportError:
        raise InputError("charts need plotly. Install `plancast[report]`.") from None
    return found


def finish(figure: Any, title: str, *, x: str, y: str = "", rows: int = 0) -> Any:
    """Titles and looks; `rows`: as high as so many bars below each other need."""
    figure.update_layout(
        title={"text": title, "x": 0, "xref": "paper"},
        template="plotly_white",
        font={"family": "sans-serif", "size": 13},
        legend={"traceorder": "normal"},
        margin={"l": 20, "r": 20, "t": 60, "b": 50},
    )
    if rows:
        figure.update_layout(barmode="stack", height=max(_LOWEST, _FRAME + _BAR * rows))
        figure.update_yaxes(autorange="reversed", automargin=True)
    figure.update_xaxes(title=x)
    figure.update_yaxes(title=y)
    return figure
