"""The pipeline drawn: device classes over time, passes and communication."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plancast.report.page import colours
from plancast.report.page.colours import plain
from plancast.report.page.figures import Figure, seconds_scale, shown_rows
from plancast.report.page.slices import Lane, Run, communications, end_of, passes
from plancast.textual import duration

_ROW = 34  # pixels of a device class
_WORDS = {"F": "forward", "B": "backward", "W": "gradients of weights", "optimizer": "optimizer"}


def pipeline_figure(found: Sequence[Lane]) -> Figure:
    """Passes of every device class on its line, what it sends and receives thin below it."""
    lanes = [found[at] for at in shown_rows(len(found))]
    end = end_of(lanes)
    scale, unit = seconds_scale(end)
    runs, messages = passes(lanes), communications(lanes)
    data: list[dict[str, Any]] = []
    for kind, fills in colours.PASSES.items():
        for odd, fill in enumerate(fills):
            mine = [r for r in runs if r.kind == kind and r.micro_batch % 2 == odd]
            if mine:
                data.append(_strokes(mine, scale, fill, 0.56 * _ROW, 0.08))
                data[-1] |= {"name": _WORDS[kind], "legendgroup": kind, "showlegend": odd == 0}
    for purpose in dict.fromkeys(run.kind for run in messages):
        mine = [r for r in messages if r.kind == purpose]
        fill = colours.LINKS.get(purpose, colours.GROUND)
        data.append(_strokes(mine, scale, fill, 0.16 * _ROW, -0.34))
        data[-1] |= {"name": f"{plain(purpose)} communication"}
    data += [_hover(runs, lanes, scale, 0.08), _hover(messages, lanes, scale, -0.34)]
    layout: dict[str, Any] = {
        "height": 130 + _ROW * len(lanes),
        "margin": {"l": 8, "r": 16, "t": 24, "b": 8},
        "hovermode": "closest",
        "hoverdistance": -1,
        "dragmode": "zoom",
        "legend": {"orientation": "h", "y": 1.08, "yanchor": "bottom", "x": 0},
        "xaxis": {
            "title": {"text": f"time, {unit}, as simulated"}, "automargin": True,
            "range": [0, end * scale], "zeroline": False,
        },
        "yaxis": {
            "automargin": True, "fixedrange": True, "showgrid": False, "zeroline": False,
            "range": [len(lanes) - 0.4, -0.6], "tickmode": "array",
            "tickvals": list(range(len(lanes))),
            "ticktext": [plain(lane.device_class) for lane in lanes],
        },
    }  # fmt: skip
    layout["shapes"], layout["annotations"] = _phases(runs, len(lanes), end, scale)
    return {"data": data, "layout": layout}


def phases(runs: Sequence[Run]) -> tuple[float, float] | None:
    """When the steady state begins, with the first backward pass, and when it ends, with the
    last forward pass; None without a pipeline."""
    first = min((r.start for r in runs if r.kind in "BW"), default=None)
    last = max((r.end for r in runs if r.kind == "F"), default=None)
    return None if first is None or last is None or last < first else (first, last)


def _phases(
    runs: Sequence[Run], lanes: int, end: float, scale: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    found = phases(runs)
    if lanes < 2 or found is None:
        return [], []
    shapes, words = [], []
    edges = (0.0, *found, end)
    for at, word in enumerate(("warm-up", "steady state", "cool-down")):
        a, b = edges[at], edges[at + 1]
        if at != 1:
            shapes.append(
                {
                    "type": "rect", "x0": a * scale, "x1": b * scale, "y0": 0, "y1": 1,
                    "yref": "paper", "fillcolor": "rgba(136,136,136,0.13)", "layer": "below",
                    "line": {"width": 0},
                }
            )  # fmt: skip
        words.append(
            {
                "x": (a + b) / 2 * scale, "y": 1, "yref": "paper", "yanchor": "bottom",
                "text": f"{word} {duration(b - a)}" if b - a > 0.09 * end else "",
                "showarrow": False, "font": {"size": 11},
            }
        )  # fmt: skip
    return shapes, [word for word in words if word["text"]]


def _strokes(
    runs: Sequence[Run], scale: float, fill: str, width: float, above: float
) -> dict[str, Any]:
    x: list[float | None] = []
    y: list[float | None] = []
    for run in runs:
        height = round(run.lane - above, 3)
        x += [_short(run.start * scale), _short(run.end * scale), None]
        y += [height, height, None]
    return {
        "type": "scatter", "mode": "lines", "x": x, "y": y, "hoverinfo": "skip",
        "line": {"width": round(width, 1), "color": fill, "simplify": False},
    }  # fmt: skip


def _hover(
    runs: Sequence[Run], lanes: Sequence[Lane], scale: float, above: float
) -> dict[str, Any]:
    """Points that nobody sees, in the middle of each run, with its words."""
    return {
        "type": "scatter", "mode": "lines", "line": {"width": 0}, "showlegend": False,
        "opacity": 0,
        "x": [_short((run.start + run.end) / 2 * scale) for run in runs],
        "y": [round(run.lane - above, 3) for run in runs],
        "text": [_said(run, lanes[run.lane].device_class) for run in runs],
        "hovertemplate": "%{text}<extra></extra>",
    }  # fmt: skip


def _said(run: Run, device_class: str) -> str:
    what = run.kind
    if run.micro_batch >= 0 and run.kind != "optimizer":
        what += f" of micro-batch {run.micro_batch}" + (f", chunk {run.chunk}" if run.chunk else "")
    elif run.micro_batch < 0:
        what += " communication"
    return f"{plain(device_class)}: {plain(what)}, {duration(run.end - run.start)}"


def _short(value: float) -> float:
    return float(f"{value:.7g}")
