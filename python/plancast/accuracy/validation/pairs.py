"""Is the plan that a comparison calls faster the faster one, as often as it says?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from plancast.accuracy.validation.predict_row import RowResult
from plancast.accuracy.validation.uncertainty import Scales
from plancast.uncertainty import difference_scale, faster_probability

# Lower ends of the ranges of stated probability.
_RANGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True)
class StatedProbability:
    """Pairs of plans of one job for which the same probability was stated, about."""

    low: float
    high: float
    pairs: int
    stated: float  # mean
    true: float  # share in which the plan called faster was


@dataclass(frozen=True)
class _Errors:
    """The error structure of a row under fitted scales (plancast.uncertainty)."""

    result: RowResult
    scales: Scales

    def factors(self) -> dict[str, tuple[float, float]]:
        terms, time = self.result.terms, self.result.predicted or 0.0
        assert terms is not None
        software = (
            self.scales.software_from_documentation
            if terms.from_documentation
            else self.scales.software_from_source
        )
        return {
            **{name: (share * time, scale) for name, (share, scale) in terms.factors.items()},
            f"software/{terms.profile}": (time, software),
        }

    @property
    def own_variance_s2(self) -> float:
        terms, time = self.result.terms, self.result.predicted or 0.0
        assert terms is not None
        return (terms.own + self.scales.plan**2) * time**2


def stated_probabilities(
    groups: Iterable[Sequence[RowResult]], scales: Scales
) -> list[StatedProbability]:
    """All pairs of plans of one job, by the probability that the faster forecast is right."""
    pairs = sorted(_judged(groups, scales))
    out = []
    for low, high in zip(_RANGES, (*_RANGES[1:], 1.0), strict=True):
        found = [p for p in pairs if low <= p[0] and (p[0] < high or high == 1.0)]
        if found:
            stated = sum(p for p, _ in found) / len(found)
            true = sum(right for _, right in found) / len(found)
            out.append(StatedProbability(low, high, len(found), stated, true))
    return out


def _judged(groups: Iterable[Sequence[RowResult]], scales: Scales) -> Iterator[tuple[float, float]]:
    """(stated probability, 1 if right, a half for a tie) of every pair."""
    for group in groups:
        errors = [_Errors(result, scales) for result in group if result.residual is not None]
        for a, b in combinations(errors, 2):
            seconds = (b.result.predicted or 0.0) - (a.result.predicted or 0.0)
            measured = (b.result.measured or 0.0) - (a.result.measured or 0.0)
            # Of the plan that is forecast to be faster.
            probability = faster_probability(-abs(seconds), difference_scale(a, b))
            right = 0.5 if seconds * measured == 0 else float(seconds * measured > 0)
            yield probability, right
