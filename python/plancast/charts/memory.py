"""What devices hold: bars at the peak, and areas over an iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plancast.charts.figure import drawn
from plancast.report.page.figures import memory_course, peak_bars

if TYPE_CHECKING:
    from plancast.memory import MemoryTimeline, PeakMemory


def peak(memory: PeakMemory) -> Any:
    """A stacked bar for each device class, beside what its devices have."""
    return drawn(peak_bars(memory, sorted({*memory.capacities})), "Memory at the peak")


def course(timeline: MemoryTimeline) -> Any:
    """Live tensors over the iteration, kinds one on the other, and the room for them."""
    return drawn(memory_course(timeline), f"Live memory of {timeline.memory.device_class}")
