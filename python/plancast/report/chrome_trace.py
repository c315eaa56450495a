"""Rich tables of traces in the Chrome format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from plancast.accuracy.report.fitted_table import FittedTable
from plancast.report.trace_file import reading_lines
from plancast.textual import duration

if TYPE_CHECKING:
    from plancast.communication.chrome import ChromeTrace

_MOST_ROWS = 24


def trace_tables(trace: ChromeTrace) -> RenderableType:
    """Where the time goes by name, and what was not understood."""
    head = (
        f"{len(trace):,} spans on {len(trace.tracks):,} tracks, {len(trace.flows):,} flows, "
        f"{len(trace.counters):,} counter values, over {duration(trace.duration_s)}"
    )
    parts: list[RenderableType] = [Text(head, style="bold")]
    if trace.totals:
        parts += ["", _totals(trace)]
    parts += reading_lines(trace)
    return Group(*parts)


def _totals(trace: ChromeTrace) -> FittedTable:
    table = FittedTable()
    table.words("name")
    table.words("category", least=6, leaves=2)
    table.numbers("spans", "in all")
    table.numbers("mean", leaves=1)
    table.numbers("longest")
    for row in trace.totals[:_MOST_ROWS]:
        mean = duration(row.total_s / row.spans)
        times = (duration(row.total_s), mean, duration(row.longest_s))
        table.row(row.name, row.category, f"{row.spans:,}", *times)
    if len(trace.totals) > _MOST_ROWS:
        table.row(f"and {len(trace.totals) - _MOST_ROWS:,} more")
    return table
