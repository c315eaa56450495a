"""What a measured row says about the errors of forecasts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plancast import _core
from plancast.forecast import Forecast

_SOFTWARE = "software/"


@dataclass(frozen=True)
class ErrorTerms:
    """The error structure of a forecast before measured runs widen it, relative to its time.

    `factors` are those of kernels and links: share of the critical path, relative scale,
    and whether others' measurements stand for it. `own` is the square of the kernels' own
    scale.
    """

    profile: str
    in_outline: bool
    device: str
    factors: Mapping[str, tuple[float, float, bool]]
    own: float

    @property
    def measured(self) -> float:
        """Variance by factors that have measurements."""
        return sum((x * s) ** 2 for x, s, guessed in self.factors.values() if not guessed)

    @property
    def extrapolated(self) -> float:
        """Variance by factors without."""
        return sum((x * s) ** 2 for x, s, guessed in self.factors.values() if guessed)


@dataclass(frozen=True)
class Residual:
    """ln(measured / forecast) of one row, and what its error may hang on."""

    row_id: str
    source: str
    value: float
    terms: ErrorTerms


def terms_of(forecast: Forecast, device: str) -> ErrorTerms:
    """Undoes what the shipped uncertainty adds, so that a fit does not depend on it."""
    shipped = _core.uncertainty()
    time = forecast.iteration_time or 1.0
    guessed = set(forecast._core.extrapolated_factors)
    factors = {
        name: (
            seconds / time,
            scale / (shipped["extrapolated_kernels"] if name in guessed else 1.0),
            name in guessed,
        )
        for name, (seconds, scale) in forecast.factors().items()
        if not name.startswith(_SOFTWARE)
    }
    return ErrorTerms(
        profile=forecast.profile,
        in_outline=_core.profile_in_outline(forecast.profile),
        device=device,
        factors=factors,
        own=max(forecast.own_variance_s2 / time**2 - shipped["plan"] ** 2, 0.0),
    )
