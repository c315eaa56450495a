"""Whether plans fit, as forecasts say and as runs showed."""

from __future__ import annotations

from collections.abc import Iterable

from plancast.accuracy.validation.predict_row import RowResult


def oom_table(results: Iterable[RowResult]) -> dict[str, int]:
    """How often plans that ran, and that did not fit, were said to fit or not."""
    table = {"true_fit": 0, "false_fit": 0, "true_oom": 0, "false_oom": 0}
    for result in results:
        if result.fits is None:
            continue
        if result.row.oom:
            table["false_fit" if result.fits else "true_oom"] += 1
        elif result.measured is not None:
            table["true_fit" if result.fits else "false_oom"] += 1
    return table
