"""Where the time of iterations goes: a bar each, in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plancast.charts.figure import drawn
from plancast.report.page.colours import GROUND
from plancast.report.page.figures import part_bars, seconds_scale, spread

if TYPE_CHECKING:
    from plancast.forecast import Forecast


def breakdown(forecasts: Sequence[Forecast], names: Sequence[str], title: str) -> Any:
    """A stacked bar for each forecast, with the interval of its time."""
    figure = part_bars(names, [forecast.breakdown() for forecast in forecasts])
    times = [forecast.iteration_time for forecast in forecasts]
    scale, unit = seconds_scale(max(times, default=1.0))
    ends = [
        tuple(value * scale for value in (time, *forecast.interval))
        for time, forecast in zip(times, forecasts, strict=True)
    ]
    figure["data"].append(
        {
            "type": "scatter", "mode": "markers", "name": "90 % interval",
            "x": [time * scale for time in times],
            "y": figure["data"][0]["y"] if figure["data"] else list(names),
            "marker": {"color": GROUND, "symbol": "line-ns-open", "size": 12},
            "error_x": spread(ends),
            "hovertemplate": "%{y}: %{x:.4g} " + unit + "<extra></extra>",
        }
    )  # fmt: skip
    return drawn(figure, title)
