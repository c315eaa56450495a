"""Bandwidth of a collective by size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plancast.charts.figure import PARTS, finish, graph_objects

if TYPE_CHECKING:
    from plancast.communication.collective_table import CollectiveTable
    from plancast.communication.nccl_tests import Comparison


def bandwidth(table: CollectiveTable, comparison: Comparison | None = None) -> Any:
    """Bus bandwidth over size, NCCL's own forecast and measured points beside it."""
    rows = table.rows
    figure = graph_objects().Figure()
    figure.add_scatter(
        x=[row.size_bytes for row in rows],
        y=[row.busbw_gb_per_s for row in rows],
        mode="lines+markers",
        name="forecast",
        line={"color": PARTS["compute"]},
        text=[f"{r.time_us:.2f} us, {r.algorithm}/{r.protocol} x{r.channels}" for r in rows],
    )
    expected = [row for row in rows if row.nccl_us]
    if expected:
        figure.add_scatter(
            x=[row.size_bytes for row in expected],
            y=[row.busbw_gb_per_s * row.time_us / row.nccl_us for row in expected if row.nccl_us],
            mode="lines",
            line={"dash": "dot", "color": PARTS["exposed_dp"]},
            name="NCCL's own forecast",
        )
    if comparison is not None and rows:
        factor = rows[0].bus_factor
        figure.add_scatter(
            x=[row.size_bytes for row in comparison.rows],
            y=[row.size_bytes / row.measured_us / 1e3 * factor for row in comparison.rows],
            mode="markers",
            marker={"color": "#222"},
            name="measured",
        )
    title = f"{rows[0].op}, {rows[0].gpus} GPUs" if rows else ""
    finish(figure, title, x="size (bytes)", y="bus bandwidth (GB/s)")
    figure.update_xaxes(type="log")
    return figure
