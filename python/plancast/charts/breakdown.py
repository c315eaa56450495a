"""Where the time of iterations goes: a bar each, in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plancast.charts.figure import PARTS, finish, graph_objects
from plancast.parts import WORDS
from plancast.textual import duration, percent

if TYPE_CHECKING:
    from plancast.forecast import Forecast


def breakdown(forecasts: Sequence[Forecast], names: Sequence[str], title: str) -> Any:
    """A stacked bar for each forecast, with the interval of its time."""
    go = graph_objects()
    figure = go.Figure()
    parts = [forecast.breakdown() for forecast in forecasts]
    times = [forecast.iteration_time for forecast in forecasts]
    for part, colour in PARTS.items():
        seconds = [row[part] for row in parts]
        if not any(seconds):
            continue
        figure.add_bar(
            y=names,
            x=seconds,
            orientation="h",
            name=WORDS[part],
            marker_color=colour,
            customdata=[
                (duration(own), percent(own / whole if whole else 0.0))
                for own, whole in zip(seconds, times, strict=True)
            ],
            hovertemplate="%{y}<br>%{fullData.name}: %{customdata[0]}, %{customdata[1]}"
            "<extra></extra>",
        )
    figure.add_scatter(
        x=times,
        y=names,
        mode="markers",
        name="90 % interval",
        marker={"color": "#222", "symbol": "line-ns-open", "size": 12},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [f.interval[1] - f.iteration_time for f in forecasts],
            "arrayminus": [f.iteration_time - f.interval[0] for f in forecasts],
            "color": "#222",
            "thickness": 1.2,
        },
        hovertemplate="%{y}: %{x:.4g} s<extra></extra>",
    )
    return finish(figure, title, x="seconds of an iteration", rows=len(names))
