"""Lines on how a trace file was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from plancast.communication.trace_file import TraceFile

_MOST_PROBLEMS = 5


def reading_lines(trace: TraceFile) -> list[Text]:
    """What was mended and what was not understood."""
    lines = [
        Text(f"note: {kind}, {count:,} times from line {line} on", style="dim")
        for kind, (count, line) in trace.mended.items()
    ]
    for line, reason in trace.problems[:_MOST_PROBLEMS]:
        lines.append(Text(f"warning: line {line}: {reason}", style="yellow"))
    if trace.problem_count > _MOST_PROBLEMS:
        more = f"warning: {trace.problem_count - _MOST_PROBLEMS:,} more; --json lists them"
        lines.append(Text(more, style="yellow"))
    return lines
