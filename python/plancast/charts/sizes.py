"""Machines that could train a model: days against dollars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plancast.charts.figure import LIMIT, PARTS, finish, graph_objects

if TYPE_CHECKING:
    from plancast.training.sizing_result import Sizing


def sizes(sizing: Sizing) -> Any:
    """A point for each machine with a price, its intervals, and what was asked for."""
    go = graph_objects()
    figure = go.Figure()
    for keeps in (True, False):
        own = []
        for option in sizing.options:
            run = option.run
            if run is not None and sizing.keeps(option) is keeps:
                usd, interval = run.usd, run.usd_interval
                if usd is not None and interval is not None:
                    own.append((option, run, usd, interval))
        figure.add_scatter(
            x=[run.days for _, run, _, _ in own],
            y=[usd for _, _, usd, _ in own],
            mode="markers+text",
            name="keeps date and budget" if keeps else "does not",
            text=[f"{option.hosts} x {option.machine}" for option, *_ in own],
            textposition="top center",
            marker={"color": PARTS["compute" if keeps else "bubble"], "size": 10},
            error_x=_spread(
                [(run.days, *(s / 86400 for s in run.interval)) for _, run, _, _ in own]
            ),
            error_y=_spread([(usd, *interval) for _, _, usd, interval in own]),
            hovertemplate="%{text}: %{x:.1f} days, $%{y:,.0f}<extra></extra>",
        )
    if sizing.days is not None:
        figure.add_vline(x=sizing.days, line={"color": LIMIT, "dash": "dash"})
    if sizing.budget is not None:
        figure.add_hline(y=sizing.budget, line={"color": LIMIT, "dash": "dash"})
    return finish(figure, "Machines for the run", x="days", y="dollars")


def _spread(rows: list[tuple[float, ...]]) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [high - middle for middle, _, high in rows],
        "arrayminus": [middle - low for middle, low, _ in rows],
        "thickness": 1,
    }
