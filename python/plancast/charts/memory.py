"""What devices hold: bars at the peak, and areas over an iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plancast.charts.figure import KINDS, LIMIT, finish, graph_objects
from plancast.textual import GIB, gib

if TYPE_CHECKING:
    from plancast.memory import MemoryTimeline, PeakMemory


def peak(memory: PeakMemory) -> Any:
    """A stacked bar for each device class, beside what its devices have."""
    go = graph_objects()
    figure = go.Figure()
    names = [entry.device_class for entry in memory]
    held = {kind: [getattr(entry, kind) for entry in memory] for kind in list(KINDS)[:5]}
    held["allocator"] = [entry.rounding + entry.fragmentation for entry in memory]
    held["communicators"] = [entry.nccl for entry in memory]
    held["context"] = [entry.context for entry in memory]
    for kind, sizes in held.items():
        if any(sizes):
            figure.add_bar(
                y=names,
                x=[size / GIB for size in sizes],
                orientation="h",
                name=kind,
                marker_color=KINDS[kind],
                hovertemplate="%{y}<br>%{fullData.name}: %{x:.2f} GiB<extra></extra>",
            )
    for capacity in sorted({*memory.capacities}):
        figure.add_vline(
            x=capacity / GIB,
            line={"color": LIMIT, "dash": "dash"},
            annotation={"text": f"{gib(capacity)} GiB", "font": {"color": LIMIT}},
        )
    return finish(figure, "Memory at the peak", x="GiB of a device", rows=len(names))


def course(timeline: MemoryTimeline) -> Any:
    """Live tensors over the iteration, kinds one on the other, and the room for them."""
    go = graph_objects()
    figure = go.Figure()
    timed = bool(timeline.time_s)
    at = timeline.time_s if timed else timeline.issued
    for kind, sizes in timeline.kinds.items():
        if any(sizes):
            figure.add_scatter(
                x=at,
                y=[size / GIB for size in sizes],
                mode="lines",
                stackgroup="kinds",
                name=kind,
                line={"width": 0.5, "color": KINDS[kind]},
                fillcolor=KINDS[kind],
                hovertemplate="%{fullData.name}: %{y:.2f} GiB<extra></extra>",
            )
    most = timeline.allocated[timeline.peak]
    figure.add_annotation(
        x=at[timeline.peak], y=most / GIB, text=f"peak {gib(most)} GiB", font={"color": LIMIT}
    )
    if most / 2 <= timeline.room:
        figure.add_hline(
            y=timeline.room / GIB,
            line={"color": LIMIT, "dash": "dash"},
            annotation={"text": f"room {gib(timeline.room)} GiB", "font": {"color": LIMIT}},
        )
    figure.update_layout(hovermode="x unified")
    title = f"Live memory of {timeline.memory.device_class}"
    return finish(figure, title, x="seconds" if timed else "tasks issued", y="GiB")
