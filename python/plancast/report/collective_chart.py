"""A chart of a collective's bandwidth by size, with plotly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

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
    from plancast.charts.bandwidth import bandwidth

    figure = bandwidth(table, comparison)
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
