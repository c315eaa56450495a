"""What the page draws of a forecast and of those that were pinned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plancast.comparison import difference
from plancast.report.page.colours import plain
from plancast.report.page.figures import Figure, memory_bars, part_bars
from plancast.report.page.slices import lanes, task_count, with_timeline
from plancast.report.page.timeline import pipeline_figure
from plancast.textual import duration, gib, percent

if TYPE_CHECKING:
    from plancast.forecast import Forecast

# A pipeline of more tasks is not drawn while one drags: it takes over a second.
MOST_DRAWN = 200_000
_INK = {"light": ("#1c2430", "#dde1e7", "#f6f7f9"), "dark": ("#e6eaf0", "#323b48", "#1c222b")}


def themed(figure: Figure, theme: str) -> Figure:
    """A figure in the colours of light or dark pages, higher on narrow ones for its legend."""
    ground, _, narrow = theme.partition(" ")
    ink, line, panel = _INK.get(ground, _INK["light"])
    layout: dict[str, Any] = {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": ink, "family": "system-ui, Roboto, Arial, sans-serif", "size": 12.5},
        "hoverlabel": {"bgcolor": panel, "bordercolor": line, "font": {"color": ink}},
        "uirevision": "kept",
        **figure["layout"],
    }
    for name in ("xaxis", "yaxis"):
        axis = {"gridcolor": line, "linecolor": line, "zerolinecolor": line}
        layout[name] = {**axis, **layout.get(name, {})}
    if narrow and "legend" in layout:
        names = sum(trace.get("showlegend", True) and "name" in trace for trace in figure["data"])
        layout["height"] += 20 * names
    return {"data": figure["data"], "layout": layout}


def times(names: Sequence[str], forecasts: Sequence[Forecast]) -> Figure:
    """Where the time goes, a bar a plan."""
    return part_bars(names, [forecast.breakdown() for forecast in forecasts])


def memories(forecast: Forecast) -> Figure:
    """Peak memory by device class."""
    return memory_bars(forecast)


def pipeline(forecast: Forecast) -> Figure:
    """The pipeline over time, or a word on why there is none."""
    if task_count(forecast) > MOST_DRAWN:
        said = f"{task_count(forecast):,} tasks are too many to draw at once; the report has them."
        return words(said)
    detailed = with_timeline(forecast)
    found = lanes(detailed) if detailed is not None else []
    return pipeline_figure(found) if found else words("This plan has no timeline.")


def words(text: str) -> Figure:
    """A sentence in the place of a chart."""
    note = {
        "text": plain(text), "showarrow": False, "x": 0.5, "y": 0.5, "xref": "paper",
        "yref": "paper",
    }  # fmt: skip
    axes = {"visible": False}
    return {
        "data": [],
        "layout": {"annotations": [note], "xaxis": axes, "yaxis": axes, "height": 160},
    }


def pinned_rows(forecasts: Sequence[Forecast]) -> list[list[str]]:
    """A row a pinned plan, and what makes it differ from the first."""
    rows = []
    for at, forecast in enumerate(forecasts):
        why = "" if at == 0 else difference(forecasts[0], forecast).reason
        rows.append(
            [
                letter(at),
                f"{forecast.model}, {forecast.machine} x {forecast.devices}",
                forecast.strategy,
                duration(forecast.iteration_time),
                gib(forecast.peak_memory),
                "yes" if forecast.fits else "no",
                percent(forecast.mfu),
                why,
            ]
        )
    return rows


def letter(at: int) -> str:
    """The name of a pinned plan."""
    return chr(ord("A") + at) if at < 26 else f"#{at + 1}"
