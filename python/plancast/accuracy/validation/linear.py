"""Finds series that are too regular to have been measured.

A real training run repeats to about 0.05 %. Times that lie on a straight line
in the number of micro-batches far more exactly than that were computed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from plancast.accuracy.validation.rows import Row

_FEWEST_ROWS = 4
_NOISE = 2e-5


def linear_series(rows: Sequence[Row]) -> list[str]:
    """One warning a series whose times are linear in the micro-batch count beyond noise."""
    series: dict[tuple[str, ...], list[tuple[float, float, str]]] = defaultdict(list)
    for row in rows:
        keys = row.strategy_keys()
        count = _micro_batches(row, keys)
        if row.iter_time_s is None or count is None:
            continue
        fixed = ",".join(f"{k}={v}" for k, v in keys.items() if k != "accum")
        key: tuple[str, ...] = (
            row.source,
            row.model,
            row.machine,
            str(row.seq_len),
            row.software,
            fixed,
        )
        series[key].append((count, row.iter_time_s, row.row_id))
    warnings = []
    for names, points in series.items():
        if len({count for count, _, _ in points}) < _FEWEST_ROWS:
            continue
        if _residual([(x, y) for x, y, _ in points]) < _NOISE:
            ids = ", ".join(row_id for *_, row_id in points[:3])
            warnings.append(
                f"{len(points)} rows of `{names[0]}` ({ids}, ...) are linear in the number of "
                "micro-batches beyond any measurement's noise; were they computed?"
            )
    return warnings


def _micro_batches(row: Row, keys: dict[str, str]) -> float | None:
    try:
        return row.global_batch / (int(keys["dp"]) * int(keys["mb"]))
    except (KeyError, ValueError, ZeroDivisionError):
        return None


def _residual(points: Sequence[tuple[float, float]]) -> float:
    """Largest relative distance from the least-squares line."""
    n = len(points)
    mean_x = sum(x for x, _ in points) / n
    mean_y = sum(y for _, y in points) / n
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    return max(abs(mean_y + slope * (x - mean_x) - y) / y for x, y in points)
