"""What helps most: a bar for each change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plancast.charts.figure import drawn
from plancast.report.page.colours import PARTS
from plancast.report.page.figures import stacked_bars
from plancast.textual import duration

if TYPE_CHECKING:
    from plancast.changes import Sensitivities


def gains(changes: Sensitivities, top: int) -> Any:
    """Shares of the iteration that the first `top` changes save."""
    rows = list(changes)[:top]
    whole = changes.iteration_time or 1.0
    figure = stacked_bars(
        [row.change for row in rows],
        {"saves": [100 * row.gain / whole for row in rows]},
        {"saves": PARTS["compute"]},
        {},
        "% of the iteration saved",
        {"saves": [duration(row.gain) for row in rows]},
    )
    figure["layout"]["showlegend"] = False
    return drawn(figure, "What helps most")
