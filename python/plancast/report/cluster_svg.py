"""A picture of the jobs of a cluster over time: inline SVG that loads nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plancast.report.svg import opening
from plancast.textual import duration, html
from plancast.training.amounts import whole_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from plancast.clusters.outcome import ClusterOutcome, JobOutcome

_WIDTH, _LEFT, _RIGHT, _TOP = 900, 110, 16, 50
_ROW, _GAP, _LOAD, _AXIS = 18, 4, 90, 44
_MOST_ROWS = 40
_WAITS, _TAKEN, _BUSY = "#bbbbbb", "#c9d7e8", "#1f4e79"
# By how much an iteration is slowed down; they differ in lightness as well.
_SLOWED = (
    (1.001, "#1f4e79", "alone"),
    (1.05, "#7fa8cf", "up to 5 % slower"),
    (1.2, "#f2c14e", "up to 20 %"),
    (float("inf"), "#e07a5f", "more"),
)
_TICKS = 5


def cluster_svg(outcome: ClusterOutcome, title: str) -> str:
    """Jobs below one another, coloured by what others cost them; below them all GPUs."""
    shown = sorted(
        (number for number, job in enumerate(outcome.jobs) if job.start is not None),
        key=lambda number: (outcome.jobs[number].start or 0.0, number),
    )
    left = len(shown) - _MOST_ROWS
    shown = shown[:_MOST_ROWS]
    rows_end = _TOP + len(shown) * (_ROW + _GAP) + (16 if left > 0 else 0)
    height = rows_end + 12 + _LOAD + _AXIS
    end = max([outcome.end, *(stretch.end for stretch in outcome.stretches)]) or 1.0

    def x_of(seconds: float) -> float:
        return _LEFT + seconds / end * (_WIDTH - _LEFT - _RIGHT)

    parts = opening(_WIDTH, height, standalone=True)
    parts.append(f'<text x="{_LEFT}" y="18" font-weight="bold">{html(title)}</text>')
    parts += _legend()
    for row, number in enumerate(shown):
        parts += _job(outcome, number, _TOP + row * (_ROW + _GAP), x_of)
    if left > 0:
        parts.append(f'<text x="{_LEFT}" y="{rows_end - 2}">and {left:,} more jobs</text>')
    parts += _load(outcome, rows_end + 12, x_of)
    bottom = height - _AXIS
    for tick in range(_TICKS + 1):
        x = x_of(end * tick / _TICKS)
        anchor = "end" if tick == _TICKS else "middle"
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}" stroke="#222"/>'
            f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="{anchor}">'
            f"{html(whole_run(end * tick / _TICKS) if tick else '0')}</text>"
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _job(outcome: ClusterOutcome, number: int, y: int, x_of: Callable[[float], float]) -> list[str]:
    job = outcome.jobs[number]
    assert job.start is not None
    label = job.name if len(job.name) <= 14 else job.name[:13] + "…"
    parts = [f'<text x="{_LEFT - 8}" y="{y + 13}" text-anchor="end">{html(label)}</text>']
    if job.start > job.arrival:
        parts.append(
            _bar(x_of(job.arrival), x_of(job.start), y + 6, 6, _WAITS,
                 f"{job.name} waits {duration(job.start - job.arrival)}")
        )  # fmt: skip
    for stretch in outcome.stretches:
        if stretch.job != number:
            continue
        slower = _slower(job, stretch.iteration)
        said = f"{job.name}: an iteration takes {duration(stretch.iteration)}, {slower:.3f} alone's"
        parts.append(_bar(x_of(stretch.start), x_of(stretch.end), y, _ROW, _fill(slower), said))
    return parts


def _slower(job: JobOutcome, iteration: float) -> float:
    return iteration / job.alone if job.alone > 0 and iteration > 0 else 1.0


def _fill(slower: float) -> str:
    return next(fill for most, fill, _ in _SLOWED if slower <= most)


def _bar(x: float, end: float, y: float, height: float, fill: str, said: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(end - x, 0.4):.1f}" height="{height:.1f}" '
        f'fill="{fill}"><title>{html(said)}</title></rect>'
    )


def _load(outcome: ClusterOutcome, top: int, x_of: Callable[[float], float]) -> list[str]:
    """GPUs that jobs have, and those that compute on average, of all."""
    changes: dict[float, list[float]] = {}
    for stretch in outcome.stretches:
        job = outcome.jobs[stretch.job]
        busy = job.gpus * min(job.compute / stretch.iteration, 1.0) if stretch.iteration else 0.0
        for at, sign in ((stretch.start, 1), (stretch.end, -1)):
            entry = changes.setdefault(at, [0.0, 0.0])
            entry[0] += sign * job.gpus
            entry[1] += sign * busy
    parts = [
        f'<rect x="{_LEFT}" y="{top}" width="{_WIDTH - _LEFT - _RIGHT}" height="{_LOAD}" '
        'fill="#f4f4f4"/>',
        f'<text x="{_LEFT - 8}" y="{top + 11}" text-anchor="end">{outcome.gpus:,} GPUs</text>',
    ]
    for which, fill, said in ((0, _TAKEN, "jobs have them"), (1, _BUSY, "they compute")):
        level, points, bottom = 0.0, [], top + _LOAD
        for at in sorted(changes):
            points.append(f"{x_of(at):.1f},{bottom - level / outcome.gpus * _LOAD:.1f}")
            level += changes[at][which]
            points.append(f"{x_of(at):.1f},{bottom - level / outcome.gpus * _LOAD:.1f}")
        if points:
            first, last = min(changes), max(changes)
            outline = f"{x_of(first):.1f},{bottom} {' '.join(points)} {x_of(last):.1f},{bottom}"
            parts.append(
                f'<polygon points="{outline}" fill="{fill}"><title>{said}</title></polygon>'
            )
    return parts


def _legend() -> list[str]:
    x, parts = float(_LEFT), []
    marks = [("waits for GPUs", _WAITS), *((label, fill) for _, fill, label in _SLOWED)]
    for label, fill in [*marks, ("GPUs that jobs have", _TAKEN), ("GPUs that compute", _BUSY)]:
        parts.append(
            f'<rect x="{x:.0f}" y="28" width="10" height="10" fill="{fill}"/>'
            f'<text x="{x + 14:.0f}" y="37">{label}</text>'
        )
        x += 34 + 6.4 * len(label)
    return parts
