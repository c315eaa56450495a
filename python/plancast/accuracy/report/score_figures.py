"""Figures of a validation: forecast against measurement, and what is left over."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from plancast.report.page import colours
from plancast.report.page.colours import plain
from plancast.report.page.figures import Figure
from plancast.textual import change, duration

if TYPE_CHECKING:
    from plancast.accuracy.validation.predict_row import RowResult

# Of sources; where they repeat, another sign tells them apart.
_FILLS = (
    "#3b82c4", "#e07a5f", "#6fb38a", "#a07cc5", "#d9c04f", "#57a5b5", "#d65f8f", "#9c8f7a",
    "#5fa3dc", "#c75146", "#8b93a0", "#f2a541",
)  # fmt: skip
_SIGNS = ("circle", "square", "diamond", "triangle-up")
# Errors are drawn between half and twice the measured time.
_LEAST, _MOST = -0.5, 1.0


def scatter(results: Sequence[RowResult], sources: Sequence[str]) -> Figure:
    """Measured time across, forecast upwards with its 90 % interval, both logarithmic."""
    data: list[dict[str, Any]] = []
    for at, source in enumerate(sources):
        own = [r for r in results if r.row.source == source]
        forecasts = [r.predicted or 0.0 for r in own]
        ends = [r.interval or (y, y) for r, y in zip(own, forecasts, strict=True)]
        data.append(
            {
                **_trace(at, source, own),
                "x": [_short(r.measured or 0.0) for r in own],
                "y": [_short(y) for y in forecasts],
                "error_y": {
                    "type": "data", "symmetric": False, "thickness": 0.8, "width": 0,
                    "color": _FILLS[at % len(_FILLS)],
                    "array": [
                        _short(high - y) for (_, high), y in zip(ends, forecasts, strict=True)
                    ],
                    "arrayminus": [
                        _short(y - low) for (low, _), y in zip(ends, forecasts, strict=True)
                    ],
                },
            }
        )  # fmt: skip
    times = [t for r in results for t in (r.measured or 1.0, r.predicted or 1.0)]
    low, high = min(times, default=0.1) / 1.3, max(times, default=10.0) * 1.3
    axis = {
        "type": "log", "automargin": True, "range": [math.log10(low), math.log10(high)],
        "dtick": 1, "ticksuffix": " s",
    }  # fmt: skip
    exact = {
        "type": "line", "x0": low, "y0": low, "x1": high, "y1": high,
        "line": {"color": colours.GROUND, "width": 1, "dash": "dot"},
    }  # fmt: skip
    layout = {
        "height": 620,
        "margin": {"l": 8, "r": 16, "t": 8, "b": 8},
        "hovermode": "closest",
        "legend": {"orientation": "h", "y": -0.12, "yanchor": "top", "x": 0},
        "xaxis": {**axis, "title": {"text": "measured"}},
        "yaxis": {**axis, "title": {"text": "forecast"}},
        "shapes": [exact],
    }
    return {"data": data, "layout": layout}


def residuals(
    results: Sequence[RowResult],
    sources: Sequence[str],
    value: Callable[[RowResult], str],
    order: Sequence[str],
) -> Figure:
    """Errors upwards, clipped at half and twice, one column for each value."""
    total = {name: sum(value(r) == name for r in results) for name in order}
    seen = dict.fromkeys(order, 0)
    places: dict[int, float] = {}
    for result in results:
        name = value(result)
        if name in seen:
            # Beside each other in the order of the rows.
            seen[name] += 1
            share = seen[name] / (total[name] + 1)
            places[id(result)] = order.index(name) - 0.38 + 0.76 * share
    data = []
    for at, source in enumerate(sources):
        own = [r for r in results if r.row.source == source and id(r) in places]
        if own:
            data.append(
                {
                    **_trace(at, source, own),
                    "x": [_short(places[id(r)]) for r in own],
                    "y": [_short(100 * min(max(r.error or 0.0, _LEAST), _MOST)) for r in own],
                }
            )
    layout = {
        "height": 400,
        "margin": {"l": 8, "r": 16, "t": 8, "b": 8},
        "hovermode": "closest",
        "showlegend": False,
        "xaxis": {
            "automargin": True, "tickmode": "array", "tickvals": list(range(len(order))),
            "ticktext": [plain(name) for name in order], "range": [-0.6, len(order) - 0.4],
            "showgrid": False, "zeroline": False,
        },
        "yaxis": {"automargin": True, "title": {"text": "error"}, "ticksuffix": " %"},
    }  # fmt: skip
    return {"data": data, "layout": layout}


def _trace(at: int, source: str, own: Sequence[RowResult]) -> dict[str, Any]:
    fill = _FILLS[at % len(_FILLS)]
    return {
        "type": "scatter", "mode": "markers", "name": plain(source),
        "text": [_said(r) for r in own], "hovertemplate": "%{text}<extra>%{fullData.name}</extra>",
        "marker": {"color": fill, "size": 7, "symbol": _SIGNS[at // len(_FILLS) % len(_SIGNS)]},
    }  # fmt: skip


def _said(result: RowResult) -> str:
    low, high = result.interval or (0.0, 0.0)
    return "<br>".join(
        plain(line)
        for line in (
            result.row.row_id,
            f"{result.row.model} on {result.row.machine}",
            result.row.strategy,
            f"measured {duration(result.measured or 0.0)}, forecast "
            f"{duration(result.predicted or 0.0)} ({change(result.error or 0.0)})",
            f"90 % between {duration(low)} and {duration(high)}",
        )
    )


def _short(value: float) -> float:
    return float(f"{value:.5g}")
