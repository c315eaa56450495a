"""What is alive at the peak of memory, and memory over time, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from plancast.memory import KINDS
from plancast.textual import duration, gib, percent, ranges

if TYPE_CHECKING:
    from plancast.memory import LiveTensor, MemoryTimeline, PeakMemory, PeakReasons

# How a picture draws each kind: a sign that also tells without colour, and one.
SIGNS = {
    "parameters": ("█", "blue"),
    "gradients": ("▓", "cyan"),
    "optimizer": ("▒", "green"),
    "activations": ("░", "yellow"),
    "workspace": ("·", "magenta"),
}
_MOST_LINES = 16
_COLUMNS, _ROWS = 68, 14


def memory_story(memory: PeakMemory) -> RenderableType:
    """Picture and reasons of the fullest device class."""
    return Group(timeline_picture(memory.timeline()), "", reasons_table(memory.explain()))


def where(reasons: PeakReasons) -> str:
    """The moment of the peak."""
    if not reasons.block:
        return "always: nothing but state is allocated"
    return (
        f"at `{reasons.task}` of {reasons.block}, layer {reasons.layer}, "
        f"micro-batch {reasons.micro_batch}"
    )


def whose(tensor: LiveTensor) -> str:
    """The micro-batches of a line."""
    batches = tensor.micro_batches
    if not batches:
        return ""
    return f"micro-batch{'' if len(batches) == 1 else 'es'} {ranges(batches)}"


def _overheads(reasons: PeakReasons) -> list[tuple[str, int]]:
    memory = reasons.memory
    return [
        ("allocator: rounding", memory.rounding),
        ("allocator: fragmentation", memory.fragmentation),
        ("communicators (NCCL)", memory.nccl),
        ("driver and library context", memory.context),
    ]


def reasons_text(reasons: PeakReasons) -> str:
    """Every line that is alive, then what the device holds besides."""
    memory = reasons.memory
    lines = [f"{memory.device_class} peaks {where(reasons)}"]
    width = max([24, *(len(tensor.name) for tensor in reasons.tensors)])
    for tensor in reasons.tensors:
        each = f"{tensor.copies:>5} x {tensor.bytes_each / 2**20:>9,.1f} MiB"
        line = f"  {gib(tensor.bytes, 2):>8} GiB  {tensor.name:<{width}} {each}  {whose(tensor)}"
        lines.append(line.rstrip())
    lines.append(f"  {gib(memory.allocated, 2):>8} GiB  allocated")
    lines += [f"  {gib(size, 2):>8} GiB  {name}" for name, size in _overheads(reasons)]
    lines.append(f"  {gib(memory.device, 2):>8} GiB  device")
    return "\n".join(lines)


def reasons_table(reasons: PeakReasons) -> Table:
    """The largest lines, what the rest sums to, and what the device holds besides."""
    memory = reasons.memory
    table = Table(
        box=box.SIMPLE_HEAD,
        title=f"Alive at the peak of {memory.device_class}, {where(reasons)}",
        title_justify="left",
    )
    table.add_column("GiB", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("what", no_wrap=True)
    table.add_column("copies", justify="right", no_wrap=True)
    table.add_column("MiB each", justify="right", no_wrap=True)
    table.add_column("of", style="dim")
    device = max(memory.device, 1)
    for tensor in reasons.tensors[:_MOST_LINES]:
        table.add_row(
            gib(tensor.bytes, 2),
            percent(tensor.bytes / device),
            Text(tensor.name, style=SIGNS[tensor.kind][1]),
            f"{tensor.copies:,}",
            f"{tensor.bytes_each / 2**20:,.1f}",
            whose(tensor),
        )
    rest = reasons.tensors[_MOST_LINES:]
    if rest:
        size = sum(tensor.bytes for tensor in rest)
        table.add_row(gib(size, 2), percent(size / device), f"{len(rest)} smaller ones")
    table.add_section()
    table.add_row(
        gib(memory.allocated, 2), percent(memory.allocated / device), "allocated", style="bold"
    )
    for name, size in _overheads(reasons):
        table.add_row(gib(size, 2), percent(size / device), name)
    table.add_section()
    table.add_row(gib(memory.device, 2), percent(1.0), "device", style="bold")
    return table


def positions(timeline: MemoryTimeline) -> Sequence[float]:
    """Where the points lie along the picture: seconds, or tasks issued."""
    return timeline.time_s or timeline.issued


def timeline_picture(timeline: MemoryTimeline) -> RenderableType:
    """A stacked picture of what is alive; each column shows its highest moment."""
    columns = _columns(timeline)
    highest = max(sum(column) for column in columns) or 1
    lines = []
    for row in range(_ROWS, 0, -1):
        label = gib(highest * row / _ROWS) if row in (_ROWS, _ROWS // 2) else ""
        line = Text(f"{label:>8} │", style="dim")
        for column in columns:
            sign, colour = _sign(column, highest * (row - 0.5) / _ROWS)
            line.append(sign, style=colour)
        lines.append(line)
    at = positions(timeline)
    end = duration(float(at[-1])) if timeline.time_s else f"{at[-1]:,} tasks issued"
    lines.append(Text(f"{'0':>8} └{'─' * len(columns)}", style="dim"))
    lines.append(Text(f"{'':>10}0{end:>{len(columns) - 1}}", style="dim"))
    legend = Text(f"{'':>10}")
    for kind in KINDS:
        if any(timeline.kinds[kind]):
            legend.append(f"{SIGNS[kind][0]} {kind}   ", style=SIGNS[kind][1])
    memory = timeline.memory
    peak = float(at[timeline.peak])
    when = duration(peak) if timeline.time_s else f"task {int(peak):,}"
    title = Text(f"Live memory of {memory.device_class}, GiB", style="italic")
    title.append(f"   peak {gib(memory.allocated)} at {when}", style="bold")
    return Group(title, *lines, legend)


def _columns(timeline: MemoryTimeline) -> list[list[int]]:
    """Bytes by kind at the highest moment of each column."""
    at = positions(timeline)
    end = float(at[-1]) or 1.0
    rows = list(zip(*timeline.kinds.values(), strict=True))
    columns: list[list[int]] = [[] for _ in range(_COLUMNS)]
    for x, row in zip(at, rows, strict=True):
        column = min(_COLUMNS - 1, int(float(x) / end * _COLUMNS))
        if sum(row) >= sum(columns[column]):
            columns[column] = list(row)
    for index in range(_COLUMNS):
        if not columns[index]:
            columns[index] = columns[index - 1] if index else list(rows[0])
    return columns


def _sign(column: Sequence[int], height: float) -> tuple[str, str]:
    top = 0
    for kind, size in zip(KINDS, column, strict=True):
        top += size
        if height < top:
            return SIGNS[kind]
    return (" ", "")
