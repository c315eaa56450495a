"""Pictures of whole runs: inline SVG that loads nothing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from plancast.report.svg import band, opening
from plancast.textual import html, percent
from plancast.training.amounts import whole_run
from plancast.training.goodput import Goodput, goodput

if TYPE_CHECKING:
    from collections.abc import Callable

    from plancast.training.reliability import Reliability

# Fills that differ in lightness as well, so that they tell in grey.
_PARTS = {
    "useful": ("training", "#1f4e79"),
    "saving": ("saving checkpoints", "#f2c14e"),
    "repeated": ("work done twice", "#e07a5f"),
    "restarting": ("restarting", "#b084cc"),
    "waiting": ("waiting for a host", "#bbbbbb"),
}
_WIDTH, _HEIGHT = 860, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 16, 52, 44
_POINTS = 160
_SPAN = 30.0  # times the interval to either side
_TICKS = (
    (0.1, "0.1 s"), (1.0, "1 s"), (10.0, "10 s"), (60.0, "1 min"), (600.0, "10 min"),
    (3600.0, "1 h"), (36000.0, "10 h"), (86400.0, "1 day"), (864000.0, "10 days"),
)  # fmt: skip


def goodput_svg(found: Reliability, title: str, *, standalone: bool = False) -> str:
    """Shares of a run's time by the interval of its checkpoints, with a mark at its own."""
    own = found.shares.interval_s
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    at = [own * _SPAN ** (2 * point / _POINTS - 1) for point in range(_POINTS + 1)]
    curve = [goodput(found.costs, x, waiting=found.shares.waiting) for x in at]
    # What is lost is at the top, and mostly little.
    least = math.floor(min(shares.useful for shares in curve) * 10) / 10

    def x_of(interval: float) -> float:
        return _LEFT + (math.log(interval / own) / math.log(_SPAN) + 1) / 2 * width

    def y_of(share: float) -> float:
        return _TOP + height * (1 - (share - least) / (1 - least))

    parts = [
        *opening(_WIDTH, _HEIGHT, standalone=standalone),
        f'<text x="{_LEFT}" y="18" font-weight="bold">{html(title)}: time by the interval of '
        "checkpoints</text>",
    ]
    base = [least] * len(at)
    for name, (label, fill) in _PARTS.items():
        top = [low + _above(shares, name, least) for low, shares in zip(base, curve, strict=True)]
        if max(high - low for high, low in zip(top, base, strict=True)) <= 0:
            continue
        parts.append(band(at, top, base, (x_of, y_of), fill, label))
        base = top
    parts += _legend([name for name in _PARTS if getattr(found.shares, name) > 0])
    parts += _axes(at, least, x_of, y_of)
    x, y = x_of(own), y_of(found.shares.useful)
    parts.append(
        f'<path d="M{x:.1f},{_TOP}V{_TOP + height}" stroke="#fff" stroke-dasharray="4 3"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#fff"/>'
        f'<text x="{x + 8:.1f}" y="{y + 18:.1f}" fill="#fff">{percent(found.shares.useful)} '
        f"useful, every {html(whole_run(own))}</text></svg>"
    )
    return "\n".join(parts) + "\n"


def _above(shares: Goodput, name: str, least: float) -> float:
    """A share, of the useful one only what is above the axis."""
    share: float = getattr(shares, name)
    return share - least if name == "useful" else share


def _legend(names: list[str]) -> list[str]:
    x, parts = float(_LEFT), []
    for name in names:
        label, fill = _PARTS[name]
        parts.append(
            f'<rect x="{x:.0f}" y="30" width="10" height="10" fill="{fill}"/>'
            f'<text x="{x + 14:.0f}" y="39">{label}</text>'
        )
        x += 32 + 6.6 * len(label)
    return parts


def _axes(
    at: list[float], least: float, x_of: Callable[[float], float], y_of: Callable[[float], float]
) -> list[str]:
    bottom = _HEIGHT - _BOTTOM
    parts = [f'<path d="M{_LEFT},{_TOP}V{bottom}H{_WIDTH - _RIGHT}" fill="none" stroke="#222"/>']
    for tick in range(5):
        share = least + (1 - least) * tick / 4
        parts.append(
            f'<text x="{_LEFT - 8}" y="{y_of(share) + 4:.1f}" text-anchor="end">'
            f"{percent(share, 0)}</text>"
        )
    for seconds, label in _TICKS:
        if not at[0] <= seconds <= at[-1]:
            continue
        x = x_of(seconds)
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}" stroke="#222"/>'
            f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">'
            f"{label}</text>"
        )
    return parts
