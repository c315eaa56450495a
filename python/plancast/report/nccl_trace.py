"""Rich tables of NCCL's traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from plancast.accuracy.report.fitted_table import FittedTable
from plancast.report.trace_file import reading_lines
from plancast.textual import bar, duration, gib, percent

if TYPE_CHECKING:
    from plancast.communication.traces import NcclTrace

_MOST_ROWS = 24


def trace_tables(trace: NcclTrace) -> RenderableType:
    """Operations, channels, waits, and what was not understood."""
    head = f"NCCL {trace.dialect}: {len(trace):,} events over {duration(trace.duration_s)}"
    parts: list[RenderableType] = [Text(head, style="bold")]
    if trace.operations:
        parts += ["", operation_table(trace)]
    if trace.channels:
        parts += ["", channel_table(trace)]
    if trace.waits:
        parts += ["", wait_table(trace)]
    parts += reading_lines(trace)
    return Group(*parts)


def operation_table(trace: NcclTrace) -> FittedTable:
    """A row for each kind of collective."""
    table = _table("operation", "algorithm", "protocol")
    for column, leaves in (("channels", 1), ("size", None), ("calls", None), ("median", None)):
        table.numbers(column, leaves=leaves)
    for column, leaves in (("least", 3), ("most", 4), ("kernel", 2)):
        table.numbers(column, leaves=leaves)
    for row in trace.operations[:_MOST_ROWS]:
        table.row(
            row.name,
            row.algorithm,
            row.protocol,
            _count(row.channels),
            _size(row.size_bytes),
            f"{row.calls:,}",
            duration(row.median_s),
            duration(row.least_s),
            duration(row.most_s),
            "" if row.kernel_s is None else duration(row.kernel_s),
        )
    return _cut(table, len(trace.operations))


def channel_table(trace: NcclTrace) -> FittedTable:
    """A row for each channel and peer."""
    table = _table("channel", "peer")
    table.numbers("operations", leaves=1)
    table.numbers("steps", "moved", "mean step", "busy")
    for row in trace.channels[:_MOST_ROWS]:
        word = {"send": "to ", "receive": "from "}.get(row.direction, "")
        table.row(
            _count(row.channel),
            f"{word}{_count(row.peer)}",
            f"{row.operations:,}",
            f"{row.steps:,}",
            _size(row.size_bytes),
            duration(row.step_s / row.steps) if row.steps else "",
            duration(row.busy_s),
        )
    return _cut(table, len(trace.channels))


def wait_table(trace: NcclTrace) -> FittedTable:
    """What steps wait for, with shares."""
    table = _table("direction", "waits for")
    for column in ("times", "in all", "share"):
        table.numbers(column)
    table.picture(leaves=1)
    for row in trace.waits:
        table.row(
            row.direction,
            row.wait,
            f"{row.times:,}",
            duration(row.total_s),
            percent(row.share),
            bar(row.share),
        )
    return table


def _table(*columns: str) -> FittedTable:
    table = FittedTable()
    table.words(*columns, least=6)
    return table


def _cut(table: FittedTable, rows: int) -> FittedTable:
    if rows > _MOST_ROWS:
        table.row(f"and {rows - _MOST_ROWS:,} more")
    return table


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _size(size: int | None) -> str:
    if size is None:
        return ""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if unit <= size < 1 << 30:
            return f"{size / unit:.4g} {name}"
    return f"{gib(size)} GiB" if size >= 1 << 30 else f"{size} B"
