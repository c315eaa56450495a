"""Figures that several pages draw, as plotly's JSON: `data` and `layout`.

What depends on light and dark (ground, lines, text) is left out; page.js and the app set it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from plancast.report.memory import positions
from plancast.report.page import colours
from plancast.report.page.colours import plain
from plancast.report.tables import PART_LABELS
from plancast.textual import GIB, duration, gib, percent

if TYPE_CHECKING:
    from plancast.forecast import Forecast
    from plancast.memory import ClassMemory, MemoryTimeline
    from plancast.training.sizing_result import Sizing

Figure = dict[str, Any]
# Bars that are drawn; of more the middle is left out.
MOST_BARS = 48
_BAR = 26
LABELS = {name: label for name, (label, _) in PART_LABELS.items()} | {"waiting": "waiting"}
OVERHEADS = ("rounding", "fragmentation", "nccl", "context")


def height_of(bars: int) -> int:
    """Of a chart with so many bars, in pixels."""
    return 130 + _BAR * max(1, bars)


def shown_rows(count: int) -> list[int]:
    """Which of so many rows are drawn: the first and the last where there are too many."""
    if count <= MOST_BARS:
        return list(range(count))
    half = MOST_BARS // 2
    return [*range(half), *range(count - half, count)]


def seconds_scale(most: float) -> tuple[float, str]:
    """What seconds are multiplied with, and the unit they are then in.

    >>> seconds_scale(0.02)
    (1000.0, 'ms')
    """
    if most >= 1:
        return 1.0, "s"
    return (1e3, "ms") if most >= 1e-3 else (1e6, "µs")


def stacked_bars(
    names: Sequence[str],
    parts: Mapping[str, Sequence[float]],
    fills: Mapping[str, str],
    labels: Mapping[str, str],
    axis: str,
    texts: Mapping[str, Sequence[str]],
) -> Figure:
    """A horizontal bar a name, stacked of parts, the first name on top."""
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": plain(labels.get(part, part)),
            "y": [plain(name) for name in names],
            "x": [float(f"{value:.6g}") for value in values],
            "marker": {"color": fills.get(part, colours.GROUND)},
            "customdata": list(texts[part]),
            "hovertemplate": "%{y}: %{fullData.name} %{customdata}<extra></extra>",
        }
        for part, values in parts.items()
        if any(value > 0 for value in values)
    ]
    layout = {
        "barmode": "stack",
        "height": height_of(len(names)),
        "margin": {"l": 8, "r": 16, "t": 8, "b": 8},
        "legend": {
            "orientation": "h",
            "y": 1.02,
            "yanchor": "bottom",
            "x": 0,
            "traceorder": "normal",
        },
        "xaxis": {"title": {"text": axis}, "automargin": True},
        "yaxis": {"autorange": "reversed", "automargin": True, "type": "category"},
    }
    return {"data": data, "layout": layout}


def part_bars(
    names: Sequence[str], stages: Sequence[Mapping[str, float]], order: Sequence[str] = ()
) -> Figure:
    """Time by part, a bar a name."""
    keys = [part for part in order or colours.PARTS if any(s.get(part, 0) > 0 for s in stages)]
    total = max((sum(s.values()) for s in stages), default=1.0) or 1.0
    scale, unit = seconds_scale(total)
    texts = {
        part: [
            f"{duration(s.get(part, 0.0))}, {percent(s.get(part, 0.0) / (sum(s.values()) or 1))}"
            for s in stages
        ]
        for part in keys
    }
    values = {part: [s.get(part, 0.0) * scale for s in stages] for part in keys}
    return stacked_bars(names, values, colours.PARTS, LABELS, f"time, {unit}", texts)


def memory_bars(forecast: Forecast) -> Figure:
    """Peak memory by kind, a bar a device class, and what a device has."""
    entries = list(forecast.memory)
    return peak_bars([entries[at] for at in shown_rows(len(entries))], [forecast.memory_capacity])


def peak_bars(memory: Iterable[ClassMemory], capacities: Sequence[float]) -> Figure:
    """The same of any device classes, beside what devices have."""
    rows = list(memory)
    sizes: dict[str, list[int]] = {
        kind: [getattr(entry, kind) for entry in rows]
        for kind in ("parameters", "gradients", "optimizer", "activations", "workspace")
    }
    sizes["overhead"] = [sum(getattr(entry, name) for name in OVERHEADS) for entry in rows]
    texts = {kind: [f"{gib(size, 2)} GiB" for size in each] for kind, each in sizes.items()}
    figure = stacked_bars(
        [entry.device_class for entry in rows],
        {kind: [size / GIB for size in each] for kind, each in sizes.items()},
        colours.MEMORY,
        {"overhead": "allocator, NCCL, context"},
        "peak memory, GiB per GPU",
        texts,
    )
    rooms = [capacity / GIB for capacity in capacities]
    figure["layout"]["shapes"] = [vertical(room) for room in rooms]
    figure["layout"]["annotations"] = [
        {
            "x": room, "y": 1, "xref": "x", "yref": "paper", "text": f"the GPU's {room:.1f}",
            "showarrow": False, "xanchor": "right", "yanchor": "bottom",
            "font": {"color": colours.BAD, "size": 11},
        }
        for room in rooms
    ]  # fmt: skip
    most = max((entry.device for entry in rows), default=0) / GIB
    figure["layout"]["xaxis"]["range"] = [0, max([most, *rooms]) * 1.03]
    figure["layout"]["legend"]["y"] = 1.1
    return figure


def vertical(x: float) -> dict[str, Any]:
    """A dashed line from top to bottom."""
    return {
        "type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper",
        "line": {"color": colours.BAD, "width": 1.5, "dash": "dash"},
    }  # fmt: skip


def memory_course(timeline: MemoryTimeline) -> Figure:
    """Live memory over the iteration, stacked by kind, and the peak."""
    at = [float(x) for x in positions(timeline)]
    end = at[-1] if at else 0.0
    scale, unit = seconds_scale(end) if timeline.time_s else (1.0, "tasks issued")
    x = [float(f"{value * scale:.6g}") for value in at]
    data: list[dict[str, Any]] = [
        {
            "type": "scatter", "mode": "lines", "stackgroup": "memory", "name": kind, "x": x,
            "y": [float(f"{size / GIB:.5g}") for size in sizes],
            "line": {"width": 0.5, "color": colours.MEMORY[kind]},
            "fillcolor": colours.MEMORY[kind],
            "hovertemplate": "%{fullData.name} %{y:.2f} GiB<extra></extra>",
        }
        for kind, sizes in timeline.kinds.items()
        if any(sizes)
    ]  # fmt: skip
    highest = max(timeline.allocated, default=0)
    data.append(
        {
            "type": "scatter", "mode": "markers+text", "name": "peak", "showlegend": False,
            "x": [x[timeline.peak]], "y": [highest / GIB], "text": [f"peak {gib(highest, 2)}"],
            "textposition": "top right" if at[timeline.peak] < end / 2 else "top left",
            "textfont": {"color": colours.BAD},
            "marker": {"color": colours.BAD, "size": 8}, "hoverinfo": "skip", "cliponaxis": False,
        }
    )  # fmt: skip
    layout: dict[str, Any] = {
        "height": 340,
        "margin": {"l": 8, "r": 16, "t": 8, "b": 8},
        "hovermode": "x unified",
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "xaxis": {
            "title": {"text": f"time, {unit}" if timeline.time_s else unit}, "automargin": True,
        },
        "yaxis": {
            "title": {"text": "live memory, GiB"}, "automargin": True, "rangemode": "tozero",
        },
    }  # fmt: skip
    if highest / 2 <= timeline.room <= highest * 1.5:
        room = timeline.room / GIB
        layout["shapes"] = [
            {
                "type": "line", "x0": 0, "x1": 1, "xref": "paper", "y0": room, "y1": room,
                "line": {"color": colours.BAD, "width": 1.5, "dash": "dash"},
            }
        ]  # fmt: skip
        layout["annotations"] = [
            {
                "x": 1, "xref": "paper", "y": room, "text": f"room {room:.2f}", "showarrow": False,
                "xanchor": "right", "yanchor": "bottom", "font": {"color": colours.BAD},
            }
        ]  # fmt: skip
    return {"data": data, "layout": layout}


def sizing_figure(sizing: Sizing) -> Figure:
    """Machines that could train a model, days against dollars, and what was asked for."""
    data: list[dict[str, Any]] = []
    for keeps in (True, False):
        own = [
            (f"{option.hosts:,} x {option.machine}", option.run)
            for option in sizing.options
            if option.run is not None and sizing.keeps(option) is keeps
        ]
        priced = [(name, run) for name, run in own if run.usd is not None and run.usd_interval]
        days = [(run.days, *(end / 86400 for end in run.interval)) for _, run in priced]
        usd = [(run.usd or 0.0, *(run.usd_interval or (0.0, 0.0))) for _, run in priced]
        data.append(
            {
                "type": "scatter", "mode": "markers+text",
                "name": "keeps date and budget" if keeps else "does not",
                "text": [plain(name) for name, _ in priced], "textposition": "top center",
                "x": [at for at, *_ in days], "y": [at for at, *_ in usd],
                "error_x": spread(days), "error_y": spread(usd),
                "marker": {
                    "color": colours.PARTS["optimizer" if keeps else "bubble"], "size": 11
                },
                "hovertemplate": "%{text}: %{x:.1f} days, $%{y:,.0f}<extra></extra>",
            }
        )  # fmt: skip
    shapes = [vertical(sizing.days)] if sizing.days is not None else []
    if sizing.budget is not None:
        line = {"x0": 0, "x1": 1, "xref": "paper", "y0": sizing.budget, "y1": sizing.budget}
        shapes.append({**vertical(0.0), **line, "yref": "y"})
    layout = {
        "height": 420,
        "margin": {"l": 8, "r": 16, "t": 8, "b": 8},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "xaxis": {"title": {"text": "days"}, "automargin": True},
        "yaxis": {"title": {"text": "dollars"}, "automargin": True, "tickformat": "$,.3~s"},
        "shapes": shapes,
    }
    return {"data": data, "layout": layout}


def spread(values: Sequence[tuple[float, ...]]) -> dict[str, Any]:
    """Error bars of value, low and high."""
    return {
        "type": "data", "symmetric": False, "thickness": 1.2, "color": colours.GROUND,
        "array": [high - at for at, _, high in values],
        "arrayminus": [at - low for at, low, _ in values],
    }  # fmt: skip
