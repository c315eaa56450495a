"""Bandwidth of a collective by size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plancast.charts.figure import drawn
from plancast.report.page.colours import PARTS

if TYPE_CHECKING:
    from plancast.communication.collective_table import CollectiveTable
    from plancast.communication.nccl_tests import Comparison


def bandwidth(table: CollectiveTable, comparison: Comparison | None = None) -> Any:
    """Bus bandwidth over size, NCCL's own forecast and measured points beside it."""
    rows = table.rows
    data: list[dict[str, Any]] = [
        {
            "type": "scatter", "mode": "lines+markers", "name": "forecast",
            "x": [row.size_bytes for row in rows], "y": [row.busbw_gb_per_s for row in rows],
            "line": {"color": PARTS["compute"]},
            "text": [
                f"{r.time_us:.2f} us, {r.algorithm}/{r.protocol} x{r.channels}" for r in rows
            ],
        }
    ]  # fmt: skip
    expected = [row for row in rows if row.nccl_us]
    if expected:
        theirs = [row.busbw_gb_per_s * row.time_us / (row.nccl_us or 1.0) for row in expected]
        data.append(
            {
                "type": "scatter", "mode": "lines", "name": "NCCL's own forecast",
                "x": [row.size_bytes for row in expected], "y": theirs,
                "line": {"dash": "dot", "color": PARTS["exposed_dp"]},
            }
        )  # fmt: skip
    if comparison is not None and rows:
        factor = rows[0].bus_factor
        data.append(
            {
                "type": "scatter", "mode": "markers", "name": "measured",
                "x": [row.size_bytes for row in comparison.rows],
                "y": [row.size_bytes / row.measured_us / 1e3 * factor for row in comparison.rows],
                "marker": {"color": PARTS["launch"]},
            }
        )  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "size (bytes)"}, "type": "log"},
        "yaxis": {"title": {"text": "bus bandwidth (GB/s)"}},
    }
    return drawn(
        {"data": data, "layout": layout}, f"{rows[0].op}, {rows[0].gpus} GPUs" if rows else ""
    )
