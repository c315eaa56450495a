"""Pictures in notebooks: the figures of pages as plotly's own objects, with a title."""

from __future__ import annotations

from typing import Any

from plancast.errors import InputError
from plancast.report.page.colours import plain

_LOWEST = 380  # with room for the legend
_TITLE = 60


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


def drawn(figure: dict[str, Any], title: str) -> Any:
    """A figure of a page as plotly's."""
    layout = {
        "template": "plotly_white",
        "font": {"family": "sans-serif", "size": 13},
        **figure["layout"],
    }
    layout["height"] = max(_LOWEST, layout.get("height", 0) + _TITLE)
    layout["legend"] = {"traceorder": "normal"}  # at the side, where the title is above
    layout["margin"] = {"l": 20, "r": 20, "t": _TITLE, "b": 50}
    layout["title"] = {
        "text": plain(title),
        "x": 0,
        "xref": "paper",
        "yref": "container",
        "y": 0.97,
    }
    found = graph_objects().Figure(figure["data"])
    found.update_layout(layout)
    return found
