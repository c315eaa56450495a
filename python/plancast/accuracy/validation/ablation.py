"""What leaving out a part of the simulation does to the errors of forecasts."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Sequence

from plancast.accuracy.validation.predict_row import RowResult
from plancast.accuracy.validation.statistics import error_scores


def ablation_scores(sources: Collection[Sequence[RowResult]]) -> dict[str, float]:
    """Errors with and without a change over rows, which come source by source.

    `spread` is the mean distance of ln(forecast / measurement) from its median over a
    source: what remains where a factor of its own is taken out of each.
    """
    rows = [row for results in sources for row in results]
    scores = error_scores([_ratio(row.changed, row) - 1 for row in rows])
    return {
        "rows": float(len(rows)),
        "altered": float(sum(row.changed != row.predicted for row in rows)),
        "as_is": error_scores([_ratio(row.predicted, row) - 1 for row in rows])["mape"],
        "mape": scores["mape"],
        "bias": scores["bias"],
        "spread_as_is": _spread([[_ratio(r.predicted, r) for r in one] for one in sources]),
        "spread": _spread([[_ratio(r.changed, r) for r in one] for one in sources]),
    }


def _ratio(predicted: float | None, row: RowResult) -> float:
    return (predicted or 0.0) / (row.measured or 1.0)


def _spread(sources: Sequence[Sequence[float]]) -> float:
    distances = []
    for ratios in sources:
        logs = [math.log(max(ratio, 1e-9)) for ratio in ratios]
        middle = statistics.median(logs)
        distances += [abs(value - middle) for value in logs]
    return statistics.fmean(distances)
