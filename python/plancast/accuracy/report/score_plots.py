"""Pictures of a validation: forecast against measurement, and what is left over."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from plancast.textual import change, duration, html

if TYPE_CHECKING:
    from plancast.accuracy.validation.predict_row import RowResult

_WIDTH, _HEIGHT = 760, 520
_LEFT, _RIGHT, _TOP, _BOTTOM = 96, 28, 12, 44
# Below columns whose names are long.
_SLANTED_BOTTOM = 88
# Colours of the page's style sheet, c0 to c11; further sources take other marks.
COLOURS = 12


def scatter(results: Sequence[RowResult], sources: Sequence[str]) -> str:
    """Measured time across, forecast upwards with its 90 % interval, both logarithmic."""
    pairs = [(r.measured or 1.0, r.predicted or 1.0) for r in results]
    values = [v for pair in pairs for v in pair]
    low, high = math.log10(min(values)) - 0.1, math.log10(max(values)) + 0.1

    def x(seconds: float) -> float:
        return _LEFT + (math.log10(seconds) - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    def y(seconds: float) -> float:
        share = (min(max(math.log10(seconds), low), high) - low) / (high - low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    parts = []
    for decade in range(math.ceil(low), math.floor(high) + 1):
        seconds = 10.0**decade
        parts += [
            _line(x(seconds), _TOP, x(seconds), _HEIGHT - _BOTTOM, "grid"),
            _line(_LEFT, y(seconds), _WIDTH - _RIGHT, y(seconds), "grid"),
            _text(x(seconds), _HEIGHT - _BOTTOM + 16, f"{seconds:g} s", "middle"),
            _text(_LEFT - 6, y(seconds) + 4, f"{seconds:g} s", "end"),
        ]
    parts.append(_line(x(10**low), y(10**low), x(10**high), y(10**high), "exact"))
    for result in results:
        at, (bottom, top) = x(result.measured or 1.0), result.interval or (1.0, 1.0)
        parts.append(
            f'<g class="{_class(result, sources)}">{_title(result)}'
            f"{_line(at, y(bottom), at, y(top), 'interval')}"
            f"{_mark(at, y(result.predicted or 1.0), result, sources)}</g>"
        )
    parts.append(_text(_WIDTH / 2, _HEIGHT - 6, "measured", "middle"))
    parts.append(_text(18, _HEIGHT / 2, "forecast", "middle", upright=True))
    label = f"Forecast against measured time of {len(results)} rows; the tables hold the figures"
    return _svg(label, _HEIGHT, parts)


def residuals(
    results: Sequence[RowResult],
    sources: Sequence[str],
    title: str,
    value: Callable[[RowResult], str],
    order: Sequence[str],
) -> str:
    """Errors upwards, clipped at half and twice, one column for each value."""
    slanted = max((len(name) for name in order), default=0) * len(order) > 90
    bottom = _SLANTED_BOTTOM if slanted else _BOTTOM
    height = 220 + bottom
    columns = {name: i for i, name in enumerate(order)}
    step = (_WIDTH - _LEFT - _RIGHT) / max(len(order), 1)
    limit = math.log(2)

    def y(ratio: float) -> float:
        log = min(max(math.log(ratio), -limit), limit)
        return _TOP + (limit - log) / (2 * limit) * (height - _TOP - bottom)

    parts = []
    for error in (-0.5, -0.3, -0.1, 0.0, 0.1, 0.3, 1.0):
        place = y(1 + error)
        parts.append(_line(_LEFT, place, _WIDTH - _RIGHT, place, "exact" if error == 0 else "grid"))
        parts.append(_text(_LEFT - 6, place + 4, change(error, 0) if error else "0 %", "end"))
    for name, i in columns.items():
        at = _LEFT + (i + 0.5) * step
        parts.append(_text(at, height - bottom + 18, name, "middle", slanted=slanted))
    seen: dict[str, int] = dict.fromkeys(order, 0)
    total = {name: sum(value(r) == name for r in results) for name in order}
    for result in results:
        name = value(result)
        # Beside each other in the order of the rows.
        seen[name] += 1
        at = _LEFT + (columns[name] + 0.12 + 0.76 * seen[name] / (total[name] + 1)) * step
        parts.append(
            f'<g class="{_class(result, sources)}">{_title(result)}'
            f"{_mark(at, y(1 + (result.error or 0.0)), result, sources)}</g>"
        )
    return _svg(f"Errors by {title}; the table below holds the scores", height, parts)


def _class(result: RowResult, sources: Sequence[str]) -> str:
    index = sources.index(result.row.source)
    return f"row c{index % COLOURS} s{index}"


def mark(x: float, y: float, index: int) -> str:
    """The sign of a source: a circle, and a square from where colours repeat."""
    if index >= COLOURS:
        return f'<rect x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7"/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'


def _mark(x: float, y: float, result: RowResult, sources: Sequence[str]) -> str:
    return mark(x, y, sources.index(result.row.source))


def _title(result: RowResult) -> str:
    low, high = result.interval or (0.0, 0.0)
    text = (
        f"{result.row.row_id} ({result.row.source})\n{result.row.model} on {result.row.machine}\n"
        f"{result.row.strategy}\nmeasured {duration(result.measured or 0.0)}, forecast "
        f"{duration(result.predicted or 0.0)} ({change(result.error or 0.0)})\n90 % between "
        f"{duration(low)} and {duration(high)}"
    )
    return f"<title>{html(text)}</title>"


def _svg(label: str, height: int, parts: Sequence[str]) -> str:
    return (
        f'<svg role="img" aria-label="{html(label)}" viewBox="0 0 {_WIDTH} {height}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(
    x: float, y: float, text: str, anchor: str, *, upright: bool = False, slanted: bool = False
) -> str:
    turn = ""
    if upright or slanted:
        turn = f' transform="rotate({-90 if upright else -25} {x:.1f} {y:.1f})"'
        anchor = "middle" if upright else "end"
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turn}>{html(text)}</text>'
