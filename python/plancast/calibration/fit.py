"""Robust, deterministic curve fitting with numpy alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# Coefficients of a model, and how well they fit, by name.
Coefficients = dict[str, float]
Statistics = dict[str, Any]

# Residuals (natural logs) beyond this count linearly, not quadratically.
HUBER = 0.05


@dataclass(frozen=True)
class Parameter:
    """One coefficient: its start and the open interval it stays in."""

    name: str
    start: float
    low: float
    high: float

    def to_free(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        share = min(max(share, 1e-6), 1 - 1e-6)
        return float(np.log(share / (1 - share)))

    def from_free(self, free: float) -> float:
        return float(self.low + (self.high - self.low) / (1 + np.exp(-np.clip(free, -40, 40))))


def robust_loss(log_ratio: np.ndarray, weight: np.ndarray) -> float:
    size = np.abs(log_ratio)
    huber = np.where(size < HUBER, size * size / (2 * HUBER), size - HUBER / 2)
    return float(np.sum(weight * huber) / np.sum(weight))


def nelder_mead(
    loss: Callable[[np.ndarray], float], start: np.ndarray, step: float, evaluations: int
) -> tuple[np.ndarray, float]:
    """The simplex method with dimension-adapted coefficients (Gao and Han 2012)."""
    n = len(start)
    expand, contract, shrink = 1 + 2 / n, 0.75 - 1 / (2 * n), 1 - 1 / n
    points = np.vstack([start, start + step * np.eye(n)])
    values = np.array([loss(p) for p in points])
    used = n + 1
    while used < evaluations:
        order = np.argsort(values, kind="stable")
        points, values = points[order], values[order]
        if values[-1] - values[0] < 1e-6 * values[0]:
            break
        centre = points[:-1].mean(axis=0)
        away = centre - points[-1]
        reflected = centre + away
        value = loss(reflected)
        used += 1
        if value < values[0]:
            further = centre + expand * away
            further_value = loss(further)
            used += 1
            if further_value < value:
                reflected, value = further, further_value
        elif value >= values[-2]:
            side = contract if value < values[-1] else -contract
            nearer = centre + side * away
            nearer_value = loss(nearer)
            used += 1
            if nearer_value < min(value, values[-1]):
                reflected, value = nearer, nearer_value
            elif value >= values[-1]:
                points[1:] = points[0] + shrink * (points[1:] - points[0])
                values[1:] = [loss(p) for p in points[1:]]
                used += n
                continue
        points[-1], values[-1] = reflected, value
    best = int(np.argmin(values))
    return points[best], float(values[best])


def fit(
    parameters: list[Parameter],
    predict: Callable[[Coefficients], np.ndarray],
    seconds: np.ndarray,
    weight: np.ndarray,
    starts: list[Coefficients],
    evaluations: int = 700,
    restarts: int = 3,
) -> Coefficients:
    """Coefficients with the least robust loss; each start is refined alone,
    each restart builds a fresh simplex around the best point so far."""

    def values_of(free: np.ndarray) -> Coefficients:
        return {p.name: p.from_free(f) for p, f in zip(parameters, free, strict=True)}

    def loss(free: np.ndarray) -> float:
        return robust_loss(np.log(predict(values_of(free)) / seconds), weight)

    best, best_value = None, np.inf
    for start in starts:
        point = np.array([p.to_free(start.get(p.name, p.start)) for p in parameters])
        value = np.inf
        for restart in range(restarts):
            step = 0.6 / (restart + 1)
            point, value = nelder_mead(loss, point, step, evaluations)
        if value < best_value:
            best, best_value = point, value
    assert best is not None
    return values_of(best)


def median_error(log_ratio: np.ndarray) -> float:
    return float(np.median(np.abs(np.expm1(log_ratio)))) if len(log_ratio) else float("nan")


def robust_sigma(log_ratio: np.ndarray) -> float:
    """Standard deviation of the core of the distribution."""
    return float(1.4826 * np.median(np.abs(log_ratio - np.median(log_ratio))))
