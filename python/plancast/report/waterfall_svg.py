"""From one plan's time to another's, cause by cause: inline SVG that loads nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plancast.explaining.causes import leading
from plancast.report.explanation import signed
from plancast.report.svg import opening
from plancast.textual import duration, html

if TYPE_CHECKING:
    from plancast.explaining.difference import ExplainedDifference

_WIDTH, _ROW, _TOP = 960, 40, 40
_LEFT, _RIGHT = 24, 24
# So that lines do not cross words.
_HALO = ' stroke="#fff" stroke-width="3" paint-order="stroke"'
# Fills that differ in lightness as well, so that they tell in grey.
_PLAN, _MORE, _LESS, _REST = "#1f4e79", "#e07a5f", "#8cc5a2", "#bbbbbb"


def waterfall_svg(difference: ExplainedDifference, *, standalone: bool = False) -> str:
    """Bars from the other plan's time down to the plan's, a sentence above each."""
    causes = leading(difference.causes, difference.picoseconds, most=10)
    steps = [(cause.sentence, cause.seconds) for cause in causes]
    rest = difference.seconds - sum(seconds for _, seconds in steps)
    if len(causes) < len(difference.causes):
        steps.append((f"{len(difference.causes) - len(causes)} smaller causes", rest))
    start, end = difference.versus.iteration_time, difference.forecast.iteration_time
    levels = [start]
    for _, seconds in steps:
        levels.append(levels[-1] + seconds)
    low, high = min(*levels, end), max(*levels, end)
    # The axis begins at zero unless that would leave the steps too small to see.
    base = 0.0 if high - low > 0.25 * high else max(0.0, low - (high - low))
    width = _WIDTH - _LEFT - _RIGHT

    def x_of(seconds: float) -> float:
        return _LEFT + width * (seconds - base) / (high - base) if high > base else _LEFT

    height = _TOP + _ROW * (len(steps) + 2) + 24
    forecast = difference.forecast
    title = f"{forecast.model} on {forecast.machine}: {difference.verdict}"
    parts = [
        *opening(_WIDTH, height, standalone=standalone),
        f'<text x="{_LEFT}" y="22" font-size="14" font-weight="bold">{html(title)}</text>',
    ]
    rows = [(f"versus {difference.versus.strategy}: {duration(start)}", base, start, _PLAN)]
    for (sentence, seconds), at in zip(steps, levels, strict=False):
        fill = _MORE if seconds > 0 else _LESS
        if sentence.endswith("smaller causes"):
            fill = _REST
        rows.append((f"{signed(seconds)}  {sentence}", at, at + seconds, fill))
    rows.append((f"{forecast.strategy}: {duration(end)}", base, end, _PLAN))
    for index, (text, begin, stop, fill) in enumerate(rows):
        y = _TOP + _ROW * index
        left, right = sorted((x_of(begin), x_of(stop)))
        plan = ' font-weight="bold"' if fill == _PLAN else ""
        parts.append(f'<text x="{_LEFT}" y="{y + 14}"{plan}{_HALO}>{html(_cut(text))}</text>')
        parts.append(
            f'<rect x="{left:.1f}" y="{y + 19}" width="{max(right - left, 1):.1f}" height="13" '
            f'fill="{fill}"><title>{html(text)}</title></rect>'
        )
        if index + 1 < len(rows):
            x = x_of(stop)
            parts.append(
                f'<path d="M{x:.1f},{y + 32}V{y + _ROW + 19}" stroke="#888" '
                'stroke-dasharray="2 2"/>'
            )
    note = "" if base == 0 else f"the bars begin at {duration(base)}"
    parts.append(f'<text x="{_LEFT}" y="{height - 8}" fill="#666">{note}</text></svg>')
    return "\n".join(parts) + "\n"


def _cut(text: str, most: int = 150) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
