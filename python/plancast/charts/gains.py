"""What helps most: a bar for each change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plancast.charts.figure import PARTS, finish, graph_objects

if TYPE_CHECKING:
    from plancast.changes import Sensitivities


def gains(changes: Sensitivities, top: int) -> Any:
    """Shares of the iteration that the first `top` changes save."""
    go = graph_objects()
    rows = list(changes)[:top]
    whole = changes.iteration_time or 1.0
    figure = go.Figure()
    figure.add_bar(
        y=[row.change for row in rows],
        x=[100 * row.gain / whole for row in rows],
        orientation="h",
        marker_color=PARTS["compute"],
        hovertemplate="%{y}: %{x:.2f} %<extra></extra>",
    )
    return finish(figure, "What helps most", x="% of the iteration saved", rows=len(rows))
