"""Fits how far measured runs lie from forecasts.

The model is that of planner/uncertainty/uncertainty.h: ln(measured / simulated), less the level of
the software as all other sources tell it (levels.py), is as likely above 0 as below; its size is
|t|, Student's with four degrees of freedom, times

    core = sqrt(factors + own + software^2 + plan^2)

on the fast side and hypot(core, slow tail) on the slow one. The errors of kernels and links,
measured or taken from others, are figures of isolated measurements; fitted here are those of
software (two classes), of a plan, and the slow tail. Every source has one vote, however many
rows it has.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial

import numpy as np

from plancast.accuracy.validation.levels import centred
from plancast.accuracy.validation.residuals import Residual
from plancast.errors import InputError
from plancast.uncertainty import NINETY_FIVE_PERCENT

_FREEDOM = 4
# Median of the size of Student's t with four degrees of freedom.
_MEDIAN = 0.740697
# Sources needed, and rows of one software in a source that tell the error of a plan.
_FEWEST_SOURCES, _FEWEST_ROWS = 3, 3
_SMALLEST, _LARGEST = 1e-3, 10.0
_SWEEPS, _TOLERANCE = 60, 1e-7


@dataclass(frozen=True)
class Scales:
    """The fitted figures of uncertainty.textproto (planner/uncertainty/data), logarithms."""

    software_from_source: float
    software_from_documentation: float
    plan: float
    slow_tail: float

    def core(self, residual: Residual, *, compared: bool = True) -> float:
        """The scale of one row's logarithm without the slow tail.

        A software that was `compared` with no other run is as one known from documentation.
        """
        terms = residual.terms
        well_known = compared and not terms.from_documentation
        software = self.software_from_source if well_known else self.software_from_documentation
        return math.sqrt(terms.isolated + software**2 + self.plan**2)

    def bounds(self, residual: Residual, *, compared: bool = True) -> tuple[float, float]:
        """The logarithms that nine of ten such rows lie between."""
        core, t = self.core(residual, compared=compared), NINETY_FIVE_PERCENT
        return -t * core, t * math.hypot(core, self.slow_tail)


# What is believed without measured runs, one vote's worth: a factor of e either way is
# one standard deviation.
_PRIOR = Scales(
    software_from_source=0.05,
    software_from_documentation=0.1,
    plan=0.03,
    slow_tail=0.1,
)


def fit(residuals: Sequence[Residual]) -> Scales:
    """The most likely scales; deterministic, the order of the rows does not matter."""
    sources = {r.source for r in residuals}
    if len(sources) < _FEWEST_SOURCES:
        raise InputError(
            f"uncertainty is fitted to {len(sources)} sources of measured runs; it needs "
            f"{_FEWEST_SOURCES} or more, for what one source tells of another is not in it."
        )
    ordered = sorted(centred(residuals), key=lambda r: r.row_id)
    plan = _plan_scale(ordered)
    loss = _loss(ordered, plan)
    prior = np.log([getattr(_PRIOR, name) for name in _FREE])
    found = np.exp(_minimum(loss, prior))
    return Scales(plan=plan, **{n: float(v) for n, v in zip(_FREE, found, strict=True)})


_FREE = tuple(field.name for field in fields(Scales) if field.name != "plan")


def _plan_scale(residuals: Sequence[Residual]) -> float:
    """How far plans of one source and software lie from their median, less the kernels' own.

    Geometric means: over the softwares of a source, then over sources.
    """
    cells: dict[str, dict[str, list[Residual]]] = defaultdict(lambda: defaultdict(list))
    for residual in residuals:
        cells[residual.source][residual.terms.profile].append(residual)
    logs, own = [], []
    for source in cells.values():
        large = [cell for cell in source.values() if len(cell) >= _FEWEST_ROWS]
        if large:
            logs.append(statistics.fmean(math.log(max(_spread(c), _SMALLEST)) for c in large))
            own.append(statistics.fmean(r.terms.own for cell in large for r in cell))
    if not logs:
        return _PRIOR.plan
    variance = math.exp(2 * statistics.fmean(logs)) - statistics.fmean(own)
    return math.sqrt(max(variance, _SMALLEST**2))


def _spread(cell: Sequence[Residual]) -> float:
    """The scale of Student's t that has the median distance from the median."""
    middle = statistics.median(r.value for r in cell)
    return statistics.median(abs(r.value - middle) for r in cell) / _MEDIAN


def _loss(residuals: Sequence[Residual], plan: float) -> Callable[[np.ndarray], float]:
    """Minus the logarithm of the likelihood, as a function of the scales' logarithms."""
    value = np.array([r.value for r in residuals])
    isolated = np.array([r.terms.isolated for r in residuals]) + plan**2
    from_documentation = np.array([r.terms.from_documentation for r in residuals])
    counts: dict[str, int] = defaultdict(int)
    for r in residuals:
        counts[r.source] += 1
    weight = np.array([1 / counts[r.source] for r in residuals])
    prior = np.log([getattr(_PRIOR, name) for name in _FREE])

    def loss(logs: np.ndarray) -> float:
        from_source, outline, slow = np.exp(2 * logs)
        core = isolated + np.where(from_documentation, outline, from_source)
        square = np.where(value < 0, core, core + slow)
        tail = (_FREEDOM + 1) / 2 * np.log1p(value**2 / square / _FREEDOM)
        return float(weight @ (np.log(square) / 2 + tail) + ((logs - prior) ** 2).sum() / 2)

    return loss


def _minimum(loss: Callable[[np.ndarray], float], start: np.ndarray) -> np.ndarray:
    """Coordinate descent by golden sections between the smallest and largest scale."""
    at = start.copy()
    low, high = math.log(_SMALLEST), math.log(_LARGEST)
    best = loss(at)
    for _ in range(_SWEEPS):
        before = best
        for i in range(len(at)):
            at[i] = _section(partial(_along, loss, at, i), low, high)
        best = loss(at)
        if before - best < _TOLERANCE:
            break
    return at


def _along(loss: Callable[[np.ndarray], float], at: np.ndarray, index: int, value: float) -> float:
    moved = at.copy()
    moved[index] = value
    return loss(moved)


def _section(function: Callable[[float], float], low: float, high: float) -> float:
    """The best of a grid, then golden sections around it."""
    grid = np.linspace(low, high, 24)
    middle = int(np.argmin([function(x) for x in grid]))
    a, b = grid[max(middle - 1, 0)], grid[min(middle + 1, len(grid) - 1)]
    ratio = (math.sqrt(5) - 1) / 2
    while b - a > 1e-6:
        x, y = b - ratio * (b - a), a + ratio * (b - a)
        if function(x) < function(y):
            b = y
        else:
            a = x
    return float((a + b) / 2)
