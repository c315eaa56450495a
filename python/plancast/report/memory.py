"""What is alive at the peak of memory, and memory over time, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from plancast.accuracy.report.fitted_table import FittedTable
from plancast.textual import duration, gib, percent, ranges

if TYPE_CHECKING:
    from plancast.memory import LiveTensor, MemoryTimeline, PeakMemory, PeakReasons

# How a picture draws each kind, from below: a sign that also tells without colour, and one.
SIGNS = {
    "parameters": ("█", "blue"),
    "gradients": ("▓", "cyan"),
    "optimizer": ("▒", "green"),
    "activations": ("░", "yellow"),
    "workspace": ("·", "magenta"),
}
_MOST_LINES = 16
_COLUMNS, _ROWS = 68, 14
_LABELS = 10  # cells on the left of a picture


def memory_story(memory: PeakMemory) -> RenderableType:
    """Picture and reasons of the fullest device class."""
    return Group(TimelinePicture(memory.timeline()), "", reasons_table(memory.explain()))


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


def reasons_table(reasons: PeakReasons) -> FittedTable:
    """The largest lines, what the rest sums to, and what the device holds besides."""
    memory = reasons.memory
    table = FittedTable(title=f"Alive at the peak of {memory.device_class}, {where(reasons)}")
    table.numbers("GiB")
    table.numbers("share", leaves=3)
    table.words("what")
    table.numbers("copies", "MiB each", leaves=2)
    table.words("of", style="dim", leaves=1)
    device = max(memory.device, 1)
    for tensor in reasons.tensors[:_MOST_LINES]:
        table.row(
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
        table.row(gib(size, 2), percent(size / device), f"{len(rest)} smaller ones")
    table.section()
    table.row(
        gib(memory.allocated, 2), percent(memory.allocated / device), "allocated", style="bold"
    )
    for name, size in _overheads(reasons):
        table.row(gib(size, 2), percent(size / device), name)
    table.section()
    table.row(gib(memory.device, 2), percent(1.0), "device", style="bold")
    return table


def positions(timeline: MemoryTimeline) -> Sequence[float]:
    """Where the points lie along the picture: seconds, or tasks issued."""
    return timeline.time_s or timeline.issued


@dataclass(frozen=True)
class TimelinePicture:
    """A stacked picture of what is alive; each column shows its highest moment."""

    timeline: MemoryTimeline

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield _picture(self.timeline, max(8, min(_COLUMNS, options.max_width - _LABELS)))


def _picture(timeline: MemoryTimeline, width: int) -> RenderableType:
    columns = _columns(timeline, width)
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
    for kind in timeline.kinds:
        if any(timeline.kinds[kind]):
            legend.append(f"{SIGNS[kind][0]} {kind}   ", style=SIGNS[kind][1])
    memory = timeline.memory
    peak = float(at[timeline.peak])
    when = duration(peak) if timeline.time_s else f"task {int(peak):,}"
    title = Text(f"Live memory of {memory.device_class}, GiB", style="italic")
    title.append(f"   peak {gib(memory.allocated)} at {when}", style="bold")
    return Group(title, *lines, legend)


def _columns(timeline: MemoryTimeline, width: int) -> list[list[int]]:
    """Bytes by kind at the highest moment of each column."""
    at = positions(timeline)
    end = float(at[-1]) or 1.0
    rows = list(zip(*timeline.kinds.values(), strict=True))
    columns: list[list[int]] = [[] for _ in range(width)]
    for x, row in zip(at, rows, strict=True):
        column = min(width - 1, int(float(x) / end * width))
        if sum(row) >= sum(columns[column]):
            columns[column] = list(row)
    for index in range(width):
        if not columns[index]:
            columns[index] = columns[index - 1] if index else list(rows[0])
    return columns


def _sign(column: Sequence[int], height: float) -> tuple[str, str]:
    top = 0
    for kind, size in zip(SIGNS, column, strict=True):
        top += size
        if height < top:
            return SIGNS[kind]
    return (" ", "")
