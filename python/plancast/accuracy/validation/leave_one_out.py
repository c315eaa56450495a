"""Intervals judged on sources that their widths have not seen."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, fields

from plancast.accuracy.validation.levels import fit_levels
from plancast.accuracy.validation.residuals import Residual
from plancast.accuracy.validation.uncertainty import Scales, fit

# The least share of rows that an interval of 90 % may hold.
LEAST_COVERAGE = 0.80
# The widest that it should be, as half-width over the source's mean absolute error.
WIDEST = 1.5


@dataclass(frozen=True)
class LeftOut:
    """One source under intervals fitted to all others.

    `points` are ln(measured / forecast) of each row with the ends of its interval, the forecast
    being the median under levels fitted to all others (levels.py); `plain` are those of what is
    simulated;
    `hindsight` is the half-width of the narrowest interval around the forecast, the same for
    all rows, that holds 80 % of them: no interval known beforehand is narrower and holds as
    many. Half-widths are relative to the forecast.
    """

    source: str
    points: tuple[tuple[float, float, float], ...]
    plain: tuple[float, ...]
    mape: float
    hindsight: float
    scales: Scales

    @property
    def rows(self) -> int:
        """How many rows the source has."""
        return len(self.points)

    def inside(self, times: float = 1.0) -> int:
        """Rows inside if all intervals were `times` as wide."""
        return sum(times * low <= value <= times * high for value, low, high in self.points)

    def median_half_width(self, times: float = 1.0) -> float:
        """Of all rows, if all intervals were `times` as wide."""
        return statistics.median(
            (math.exp(times * high) - math.exp(times * low)) / 2 for _, low, high in self.points
        )

    @property
    def coverage(self) -> float:
        """Share of the rows inside."""
        return self.inside() / self.rows

    @property
    def half_width(self) -> float:
        """The median of the rows."""
        return self.median_half_width()

    @property
    def ratio(self) -> float:
        """Half-width over the source's mean absolute error."""
        return self.half_width / self.mape if self.mape > 0 else math.inf

    @property
    def best_ratio(self) -> float:
        """The same of the narrowest interval."""
        return self.hindsight / self.mape if self.mape > 0 else math.inf


@dataclass(frozen=True)
class Narrowed:
    """Intervals `times` as wide: shares of rows inside, and of how many sources the
    half-width is at most 1.5 times the mean error.
    """

    times: float
    coverage: float
    source_coverage: float
    narrow: int


@dataclass(frozen=True)
class LeaveOneOut:
    """All sources, each left out in its turn, and the scales fitted to all."""

    scales: Scales
    sources: tuple[LeftOut, ...]

    @property
    def coverage(self) -> float:
        """Share of all left-out rows inside."""
        return self.narrowed(1.0).coverage

    @property
    def source_coverage(self) -> float:
        """The same, every source counted alike."""
        return self.narrowed(1.0).source_coverage

    @property
    def mape(self) -> float:
        """Mean absolute error, every source counted alike."""
        return statistics.fmean(s.mape for s in self.sources)

    @property
    def half_width(self) -> float:
        """Mean of the sources' median half-widths."""
        return statistics.fmean(s.half_width for s in self.sources)

    def narrowed(self, times: float) -> Narrowed:
        """What all intervals would be if they were `times` as wide."""
        inside = sum(s.inside(times) for s in self.sources)
        return Narrowed(
            times=times,
            coverage=inside / sum(s.rows for s in self.sources),
            source_coverage=statistics.fmean(s.inside(times) / s.rows for s in self.sources),
            narrow=sum(s.median_half_width(times) <= WIDEST * s.mape for s in self.sources),
        )

    def changes(self) -> dict[str, dict[str, float]]:
        """By source: what leaving it out changes of each scale, relative."""
        return {
            s.source: {
                f.name: getattr(s.scales, f.name) / getattr(self.scales, f.name) - 1
                for f in fields(Scales)
            }
            for s in self.sources
        }

    def to_dict(self) -> dict[str, object]:
        """For `plancast validate --json`."""
        return {
            "coverage": self.coverage,
            "source_coverage": self.source_coverage,
            "scales": {f.name: getattr(self.scales, f.name) for f in fields(Scales)},
            "sources": {
                s.source: {
                    "rows": s.rows,
                    "coverage": s.coverage,
                    "median_half_width": s.half_width,
                    "mape": s.mape,
                    "narrowest_half_width": s.hindsight,
                    "scale_changes": change,
                }
                for s, change in zip(self.sources, self.changes().values(), strict=True)
            },
        }


def leave_one_out(residuals: Sequence[Residual]) -> LeaveOneOut:
    """Refits without each source and looks at it; needs four sources or more."""
    names = sorted({r.source for r in residuals})
    return LeaveOneOut(fit(residuals), tuple(_left_out(name, residuals) for name in names))


def _left_out(name: str, residuals: Sequence[Residual]) -> LeftOut:
    others = [r for r in residuals if r.source != name]
    own = [r for r in residuals if r.source == name]
    scales, levels = fit(others), fit_levels(others)
    compared = {r.terms.profile for r in others}
    bounds = (scales.bounds(r, compared=r.terms.profile in compared) for r in own)
    values = [r.value - levels.of(r.terms) for r in own]
    return LeftOut(
        source=name,
        points=tuple((v, low, high) for v, (low, high) in zip(values, bounds, strict=True)),
        plain=tuple(r.value for r in own),
        mape=statistics.fmean(abs(math.exp(-v) - 1) for v in values),
        hindsight=narrowest([math.exp(v) - 1 for v in values], LEAST_COVERAGE),
        scales=scales,
    )


def narrowest(deviations: Sequence[float], share: float) -> float:
    """Half-width of the shortest interval with 0 in it that holds `share` of them.

    >>> narrowest([0.1, 0.2, 0.3, 0.4, 9.0], 0.8)
    0.2
    >>> narrowest([-0.1, 0.1], 1.0)
    0.1
    """
    needed = math.ceil(share * len(deviations) - 1e-9)
    ordered = sorted(deviations)
    best = math.inf
    for first in range(len(ordered) - needed + 1):
        low, high = min(ordered[first], 0.0), max(ordered[first + needed - 1], 0.0)
        best = min(best, (high - low) / 2)
    return best
