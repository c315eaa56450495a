"""Plans of a ranking: time against memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plancast.charts.figure import drawn
from plancast.errors import InputError
from plancast.plan_record import knobs
from plancast.report.page.colours import BAD, ROW, plain
from plancast.textual import GIB, duration, gib

if TYPE_CHECKING:
    from plancast.forecast import Forecast


def scatter(plans: Sequence[Forecast], by: str) -> Any:
    """A point for each plan; `by` is the knob that colours them."""
    rows = [(plan, knobs(plan)) for plan in plans]
    if rows and by not in rows[0][1]:
        from plancast.arguments import offer

        raise InputError(f"no column `{by}` of a plan.{offer(by, rows[0][1])}")
    values = sorted({row[by] for _, row in rows}, key=lambda each: (str(type(each)), each or 0))
    data: list[dict[str, Any]] = []
    for number, value in enumerate(values):
        own = [(place, plan) for place, (plan, row) in enumerate(rows, 1) if row[by] == value]
        data.append(
            {
                "type": "scatter", "mode": "markers", "name": plain(f"{by}={value}"),
                "x": [plan.iteration_time for _, plan in own],
                "y": [plan.peak_memory / GIB for _, plan in own],
                "marker": {"color": ROW[number % len(ROW)], "size": 9, "line": {"width": 0.5}},
                "customdata": [
                    (place, plan.strategy, duration(plan.iteration_time)) for place, plan in own
                ],
                "hovertemplate": "%{customdata[0]}. %{customdata[1]}<br>%{customdata[2]}, "
                "%{y:.1f} GiB<extra></extra>",
            }
        )  # fmt: skip
    layout: dict[str, Any] = {
        "xaxis": {"title": {"text": "seconds of an iteration"}},
        "yaxis": {"title": {"text": "GiB of the fullest device"}},
    }
    if plans:
        capacity = plans[0].memory_capacity / GIB
        layout["shapes"] = [
            {
                "type": "line", "x0": 0, "x1": 1, "xref": "paper", "y0": capacity, "y1": capacity,
                "line": {"color": BAD, "dash": "dash"},
            }
        ]  # fmt: skip
        layout["annotations"] = [
            {
                "x": 1, "xref": "paper", "xanchor": "right", "y": capacity, "yanchor": "bottom",
                "text": f"{gib(plans[0].memory_capacity)} GiB", "showarrow": False,
                "font": {"color": BAD},
            }
        ]  # fmt: skip
    title = f"{len(plans):,} plans of {plans[0].model} on {plans[0].machine}" if plans else ""
    return drawn({"data": data, "layout": layout}, title)
