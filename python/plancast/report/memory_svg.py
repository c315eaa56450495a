"""Memory over time as a picture for pages: inline SVG that loads nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plancast.report.memory import positions
from plancast.report.svg import band, opening
from plancast.textual import GIB, duration, gib, html

if TYPE_CHECKING:
    from plancast.memory import MemoryTimeline

# Fills that differ in lightness as well, so that they tell in grey.
_FILLS = {
    "parameters": "#1f4e79",
    "gradients": "#4a90c2",
    "optimizer": "#7fb98f",
    "activations": "#f2c14e",
    "workspace": "#b084cc",
}
_WIDTH, _HEIGHT = 860, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 16, 34, 52
_TICKS = 4


def timeline_svg(timeline: MemoryTimeline, *, standalone: bool = False) -> str:
    """Stacked areas by kind, a mark at the peak, and axes; `standalone`: for a file of its own."""
    at = [float(x) for x in positions(timeline)]
    end = at[-1] or 1.0
    highest = max(timeline.allocated) or 1
    shows_room = highest / 2 <= timeline.room <= highest * 1.5
    top_of_axis = max(highest, timeline.room) if shows_room else highest
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x_of(value: float) -> float:
        return _LEFT + value / end * width

    def y_of(size: float) -> float:
        return _TOP + height - size / top_of_axis * height

    memory = timeline.memory
    parts = [
        *opening(_WIDTH, _HEIGHT, standalone=standalone),
        f'<text x="{_LEFT}" y="18" font-weight="bold">Live memory of '
        f"{html(memory.device_class)}, GiB</text>",
    ]
    base = [0] * len(at)
    for kind in timeline.kinds:
        sizes = timeline.kinds[kind]
        if not any(sizes):
            continue
        top = [low + size for low, size in zip(base, sizes, strict=True)]
        title = f"{kind}: at most {gib(max(sizes), 2)} GiB"
        parts.append(band(at, top, base, (x_of, y_of), _FILLS[kind], title))
        base = top
    for tick in range(_TICKS + 1):
        y = y_of(top_of_axis * tick / _TICKS)
        parts.append(
            f'<line x1="{_LEFT - 4}" x2="{_LEFT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#222"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
            f"{top_of_axis * tick / _TICKS / GIB:.1f}</text>"
        )
    axis = _TOP + height
    last = duration(end) if timeline.time_s else f"{int(end):,} tasks issued"
    parts.append(
        f'<path d="M{_LEFT},{_TOP}V{axis}H{_WIDTH - _RIGHT}" fill="none" stroke="#222"/>'
        f'<text x="{_LEFT}" y="{axis + 16}">0</text>'
        f'<text x="{_WIDTH - _RIGHT}" y="{axis + 16}" text-anchor="end">{last}</text>'
    )
    if shows_room:
        y = y_of(timeline.room)
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
            f'stroke="#c0392b" stroke-dasharray="6 4"/>'
            f'<text x="{_WIDTH - _RIGHT}" y="{y + 14:.1f}" text-anchor="end" fill="#c0392b">'
            f"room {gib(timeline.room, 2)}</text>"
        )
    x, y = x_of(at[timeline.peak]), y_of(highest)
    beside, anchor = (-8, "end") if x > _WIDTH / 2 else (8, "start")
    parts.append(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#c0392b"/>'
        f'<text x="{x + beside:.1f}" y="{y - 6:.1f}" text-anchor="{anchor}" fill="#c0392b">'
        f"peak {gib(highest, 2)}</text>"
    )
    place = _LEFT
    for kind in timeline.kinds:
        if any(timeline.kinds[kind]):
            y = _HEIGHT - 14
            parts.append(
                f'<rect x="{place}" y="{y - 10}" width="12" height="12" fill="{_FILLS[kind]}"/>'
                f'<text x="{place + 17}" y="{y}">{kind}</text>'
            )
            place += 110
    parts.append("</svg>")
    return "\n".join(parts) + "\n"
