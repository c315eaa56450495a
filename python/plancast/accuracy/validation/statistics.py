"""Scores of forecasts: errors, and how well plans are ordered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def error_scores(errors: Sequence[float]) -> dict[str, float]:
    """Of relative errors: mean absolute, mean signed, and quantiles of the absolute.

    >>> error_scores([0.1, -0.3])["mape"], round(error_scores([0.1, -0.3])["bias"], 3)
    (0.2, -0.1)
    """
    sizes = sorted(abs(error) for error in errors)
    return {
        "mape": sum(sizes) / len(sizes),
        "bias": sum(errors) / len(errors),
        "median": quantile(sizes, 0.5),
        "p90": quantile(sizes, 0.9),
        "max": sizes[-1],
    }


def quantile(ordered: Sequence[float], share: float) -> float:
    """Linear interpolation between the neighbours in an ascending list.

    >>> quantile([1.0, 2.0, 3.0, 4.0], 0.5)
    2.5
    """
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def best_constant_mape(ideal: Sequence[float], measured: Sequence[float]) -> float:
    """MAPE of `ideal / mfu` with the one MFU that makes it least.

    The mean of |c x_i / t_i - 1| is piecewise linear in c, so the best c is one
    of the t_i / x_i.

    >>> best_constant_mape([1.0, 2.0], [2.0, 4.0])
    0.0
    """
    ratios = [x / t for x, t in zip(ideal, measured, strict=True)]
    return min(sum(abs(r / pivot - 1) for r in ratios) for pivot in ratios) / len(ratios)


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1, ties sharing their mean.

    >>> ranks([10.0, 30.0, 10.0])
    [1.5, 3.0, 1.5]
    """
    order = sorted(range(len(values)), key=lambda i: values[i])
    out = [0.0] * len(values)
    begin = 0
    while begin < len(order):
        end = begin
        while end + 1 < len(order) and values[order[end + 1]] == values[order[begin]]:
            end += 1
        for place in range(begin, end + 1):
            out[order[place]] = (begin + end) / 2 + 1
        begin = end + 1
    return out


def spearman(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Spearman's rank correlation; None where one side is all ties.

    >>> spearman([1.0, 2.0, 3.0], [10.0, 20.0, 30.0])
    1.0
    """
    x, y = ranks(a), ranks(b)
    mean = (len(x) + 1) / 2
    spread = math.sqrt(sum((v - mean) ** 2 for v in x) * sum((v - mean) ** 2 for v in y))
    if spread == 0:
        return None
    return sum((v - mean) * (w - mean) for v, w in zip(x, y, strict=True)) / spread


def kendall(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Kendall's tau-b; None where one side is all ties.

    >>> kendall([1.0, 2.0, 3.0], [3.0, 2.0, 1.0])
    -1.0
    """
    score, ties_a, ties_b, pairs = 0, 0, 0, 0
    for i in range(len(a)):
        for j in range(i):
            pairs += 1
            da, db = _sign(a[i] - a[j]), _sign(b[i] - b[j])
            score += da * db
            ties_a += da == 0
            ties_b += db == 0
    spread = math.sqrt((pairs - ties_a) * (pairs - ties_b))
    return score / spread if spread else None


def regret(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """How much slower the plan that is called best is than the one that is best.

    Of plans that are called equally fast the mean: one of them is picked blindly.

    >>> regret([1.0, 1.0, 2.0], [3.0, 2.0, 4.0])
    0.25
    """
    least = min(predicted) * (1 + 1e-9)
    picked = [m for p, m in zip(predicted, measured, strict=True) if p <= least]
    return sum(picked) / len(picked) / min(measured) - 1


def group_scores(predicted: Sequence[float], measured: Sequence[float]) -> dict[str, Any]:
    """How well the plans of one job are ordered, and the regret of the one called best."""
    return {
        "rows": len(predicted),
        "spearman": spearman(predicted, measured),
        "kendall": kendall(predicted, measured),
        "regret": regret(predicted, measured),
    }


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
