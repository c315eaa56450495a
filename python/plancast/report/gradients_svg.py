"""Pictures of when gradients are sent: inline SVG that loads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plancast.report.svg import opening
from plancast.textual import duration, html

if TYPE_CHECKING:
    from plancast.gradient_traffic.forecast import GradientForecast, GradientSpan

_WIDTH, _LEFT, _RIGHT = 900, 84, 16
_TITLE, _LANE, _GAP, _AXIS, _LEGEND = 24, 26, 5, 26, 30
_LANES = {
    "computes": ("forward", "backward", "unpack", "update", "host"),
    "reduces": ("reduce",),
    "pushes": ("push",),
    "pulls": ("pull",),
    "gathers": ("gather",),
}
# Of the first layers and of the last, in between by position: they differ in lightness as well.
_FIRST, _LAST = (0x0B, 0x2F, 0x5B), (0xF2, 0xC1, 0x4E)
_UPDATE, _HOST = "#888888", "#dddddd"
# Narrower ones are joined with their neighbours, so that a picture stays small.
_THINNEST = 0.5


def gradients_svg(runs: Sequence[GradientForecast], *, standalone: bool = True) -> str:
    """Iterations below one another on one axis of time, coloured by layer."""
    longest = max(run.iteration_time for run in runs)
    lanes = [_lanes_of(run.spans()) for run in runs]
    heights = [_TITLE + len(lane) * (_LANE + _GAP) + _AXIS for lane in lanes]
    total = sum(heights) + _LEGEND
    parts = opening(_WIDTH, total, standalone=standalone)
    top = 0
    for run, lane, height in zip(runs, lanes, heights, strict=True):
        parts += _panel(run, lane, top, longest)
        top += height
    parts += _legend(top)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _lanes_of(spans: Sequence[GradientSpan]) -> dict[str, list[GradientSpan]]:
    lanes = {
        name: sorted((span for span in spans if span.what in kinds), key=lambda span: span.start_s)
        for name, kinds in _LANES.items()
    }
    return {name: lane for name, lane in lanes.items() if lane}


def _panel(
    run: GradientForecast, lanes: dict[str, list[GradientSpan]], top: int, longest: float
) -> list[str]:
    width = _WIDTH - _LEFT - _RIGHT

    def x_of(seconds: float) -> float:
        return _LEFT + seconds / longest * width

    most = max(len(run.units) - 1, 1)
    parts = [
        f'<text x="{_LEFT}" y="{top + 16}"><tspan font-weight="bold">'
        f"{html(duration(run.iteration_time))}</tspan>  {html(str(run.traffic))}</text>"
    ]
    y = top + _TITLE
    for name, spans in lanes.items():
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 17}" text-anchor="end">{name}</text>')
        for span, end in _joined(spans, longest / width * _THINNEST):
            x = x_of(span.start_s)
            label = f"{span.what} {span.unit}"
            if span.bytes:
                label += f", {span.bytes / 1e6:,.3g} MB"
            # Backward passes are lower, so that both can be told apart.
            lower = 6 if span.what == "backward" else 0
            parts.append(
                f'<rect x="{x:.1f}" y="{y + lower}" width="{max(x_of(end) - x, 0.3):.1f}" '
                f'height="{_LANE - lower}" fill="{_fill(span, most)}">'
                f"<title>{html(label)}</title></rect>"
            )
        y += _LANE + _GAP
    end = x_of(run.iteration_time)
    parts.append(
        f'<path d="M{_LEFT},{y}H{end:.1f}M{end:.1f},{top + _TITLE}V{y + 4}" stroke="#555" '
        'fill="none"/>'
        f'<text x="{_LEFT}" y="{y + 15}" fill="#555">last backward pass begins</text>'
        f'<text x="{end:.1f}" y="{y + 15}" text-anchor="end" fill="#555">'
        "next forward pass ends</text>"
    )
    return parts


def _joined(spans: Sequence[GradientSpan], least: float) -> list[tuple[GradientSpan, float]]:
    """Spans with their ends; very short ones with what follows at once."""
    rows: list[tuple[GradientSpan, float]] = []
    for span in spans:
        if rows:
            before, end = rows[-1]
            same = before.what == span.what and span.start_s <= end + least / 10
            if same and (end - before.start_s < least or before.index == span.index):
                rows[-1] = (before, max(end, span.end_s))
                continue
        rows.append((span, span.end_s))
    return rows


def _fill(span: GradientSpan, most: int) -> str:
    if span.what in ("update", "unpack"):
        return _UPDATE
    return _HOST if span.what == "host" else _colour(span.index / most)


def _colour(share: float) -> str:
    mixed = (
        round(first + (last - first) * share) for first, last in zip(_FIRST, _LAST, strict=True)
    )
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _legend(top: int) -> list[str]:
    parts = []
    for i in range(24):
        parts.append(
            f'<rect x="{_LEFT + 76 + 4 * i}" y="{top + 6}" width="4" height="12" '
            f'fill="{_colour(i / 23)}"/>'
        )
    x = _LEFT + 76 + 24 * 4 + 8
    parts.append(
        f'<text x="{_LEFT}" y="{top + 16}">first layer</text><text x="{x}" y="{top + 16}">last '
        "layer</text>"
    )
    for name, fill, at in (("update, copies", _UPDATE, x + 90), ("host", _HOST, x + 210)):
        parts.append(
            f'<rect x="{at}" y="{top + 6}" width="12" height="12" fill="{fill}"/>'
            f'<text x="{at + 18}" y="{top + 16}">{name}</text>'
        )
    parts.append(f'<text x="{x + 280}" y="{top + 16}" fill="#555">low: backward passes</text>')
    return parts
