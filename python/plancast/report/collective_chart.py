"""A chart of a collective's bandwidth by size, with plotly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from plancast import files
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.communication.collective_table import CollectiveTable
    from plancast.communication.nccl_tests import Comparison


def write_chart(
    path: str | Path, table: CollectiveTable, comparison: Comparison | None = None
) -> None:
    """Writes bus bandwidth over size, measured points beside it.

    `.html` is one file that needs no network; `.png` needs plotly's image export (kaleido).
    """
    from plancast.communication.collective_table import bus_factor

    try:
        from plotly import graph_objects
    except ImportError:
        raise InputError("charts need plotly. Install `plancast[report]`.") from None
    rows = table.rows
    figure: Any = graph_objects.Figure()
    figure.add_scatter(
        x=[row.size_bytes for row in rows],
        y=[row.busbw_gb_per_s for row in rows],
        mode="lines+markers",
        name="forecast",
        text=[f"{r.time_us:.2f} us, {r.algorithm}/{r.protocol} x{r.channels}" for r in rows],
    )
    expected = [row for row in rows if row.nccl_us]
    if expected:
        figure.add_scatter(
            x=[row.size_bytes for row in expected],
            y=[row.busbw_gb_per_s * row.time_us / row.nccl_us for row in expected if row.nccl_us],
            mode="lines",
            line={"dash": "dot"},
            name="NCCL's own forecast",
        )
    if comparison is not None and rows:
        factor = bus_factor(rows[0].op, rows[0].gpus)
        figure.add_scatter(
            x=[row.size_bytes for row in comparison.rows],
            y=[row.size_bytes / row.measured_us / 1e3 * factor for row in comparison.rows],
            mode="markers",
            name="measured",
        )
    title = f"{rows[0].op}, {rows[0].gpus} GPUs" if rows else ""
    figure.update_layout(title=title, template="plotly_white")
    figure.update_xaxes(type="log", title="size (bytes)")
    figure.update_yaxes(title="bus bandwidth (GB/s)")
    if str(path).endswith(".html"):
        files.write_text(path, figure.to_html(include_plotlyjs=True))
        return
    try:
        picture = figure.to_image(format="png")
    except (ImportError, ValueError, RuntimeError):
        raise InputError(
            f"`{path}` needs plotly's image export. Install `kaleido`, or write .html instead."
        ) from None
    files.write_bytes(path, picture)
