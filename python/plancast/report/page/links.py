"""How full links are over the step: when messages run is simulated, what they carry is counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from plancast.report.page import colours
from plancast.report.page.figures import Figure, seconds_scale
from plancast.report.page.slices import Lane, end_of
from plancast.report.page.traffic import ClassTraffic, Rates

if TYPE_CHECKING:
    from numpy.typing import NDArray

POINTS = 400  # parts of a step
_NAMES = ("links of the host", "network")
_FILLS = (colours.LINKS["tp"], colours.LINKS["dp"])


def link_course(lane: Lane, sent: ClassTraffic, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bytes that a GPU sends between neighbouring edges: a row for its host, one for the network.

    Messages of a kind share what the kind carries by how long each takes.

    >>> lane = Lane("a", 1, [("dp", "dp", "g")], np.array([0, 0]), *[np.zeros(2, np.int64)] * 3,
    ...     np.array([0.0, 2.0]), np.array([1.0, 4.0]))
    >>> sent = ClassTraffic("a", {}, (), {("dp", "dp", "g"): (3.0, 6.0)})
    >>> link_course(lane, sent, np.array([0.0, 1.0, 2.0, 3.0, 4.0])).tolist()
    [[1.0, 0.0, 1.0, 1.0], [2.0, 0.0, 2.0, 2.0]]
    """
    length = lane.end - lane.start
    whole = np.bincount(lane.code, weights=length, minlength=len(lane.kinds))
    out = np.zeros((2, len(edges) - 1))
    for row in range(2):
        bytes_of = np.array([sent.kinds_sent.get(kind, (0.0, 0.0))[row] for kind in lane.kinds])
        speed = np.divide(bytes_of, whole, out=np.zeros_like(whole), where=whole > 0)[lane.code]
        busy = speed > 0
        at = np.concatenate([lane.start[busy], lane.end[busy]])
        turn = np.concatenate([speed[busy], -speed[busy]])
        order = np.argsort(at, kind="stable")
        at, slope = at[order], np.cumsum(turn[order])
        if len(at):
            done = np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(at))])
            out[row] = np.diff(np.interp(edges, at, done))
    return out


def link_figure(lane: Lane, sent: ClassTraffic, speed: Rates, end: float) -> Figure:
    """Shares of what the data sheet's rates carry, over the step."""
    edges = np.linspace(0.0, end, POINTS + 1)
    shares = link_course(lane, sent, edges)
    scale, unit = seconds_scale(end)
    width = end / POINTS
    data = [
        _line(100 * shares[row] / (width * rate), edges[:-1] + width / 2, scale, _NAMES[row], row)
        for row, rate in enumerate((speed.inside, speed.network))
        if rate > 0 and shares[row].any()
    ]
    return {"data": data, "layout": _layout(unit, several=True)}


def course_figure(shares: NDArray[np.float64], end: float, name: str, kind: int) -> Figure:
    """One link: shares of its rate over the step."""
    scale, unit = seconds_scale(end)
    middles = (np.arange(len(shares)) + 0.5) * end / len(shares)
    line = _line(100 * shares, middles, scale, name, min(kind, len(_FILLS) - 1))
    return {"data": [line], "layout": _layout(unit, several=False)}


def _line(
    y: NDArray[np.float64], x: NDArray[np.float64], scale: float, name: str, row: int
) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines", "name": name, "fill": "tozeroy",
        "x": [float(f"{value * scale:.5g}") for value in x],
        "y": [float(f"{value:.4g}") for value in y],
        "line": {"color": _FILLS[row], "width": 1, "shape": "hvh"},
        "hovertemplate": "%{fullData.name} %{y:.0f} %<extra></extra>",
    }  # fmt: skip


def _layout(unit: str, *, several: bool) -> dict[str, Any]:
    return {
        "height": 300 if several else 240,
        "margin": {"l": 8, "r": 16, "t": 8, "b": 8},
        "hovermode": "x unified",
        "showlegend": several,
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "xaxis": {"title": {"text": f"time, {unit}, as simulated"}, "automargin": True},
        "yaxis": {
            "title": {"text": "% of the rate"}, "automargin": True, "rangemode": "tozero",
        },
    }  # fmt: skip


def link_figures(
    found: Sequence[Lane], sent: Sequence[ClassTraffic], speed: Rates, most: int
) -> dict[str, Figure]:
    """A figure for each device class that sends anything, `most` of them."""
    by_name = {one.device_class: one for one in sent}
    end = end_of(found)
    figures = {
        lane.device_class: link_figure(lane, by_name[lane.device_class], speed, end)
        for lane in found[:most]
        if lane.device_class in by_name
    }
    return {name: figure for name, figure in figures.items() if figure["data"]}
