"""What a measured row says about the errors of forecasts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plancast import _core
from plancast.arguments import shipped_profile
from plancast.forecast import Forecast

_SOFTWARE = "software/"


@dataclass(frozen=True)
class ErrorTerms:
    """The error structure of a forecast before measured runs widen it, relative to its time.

    `factors` are those of kernels and links: share of the critical path and relative scale.
    `own` is the square of the kernels' own scale.
    """

    profile: str
    from_documentation: bool
    device: str
    factors: Mapping[str, tuple[float, float]]
    own: float
    # Whose runs tell of one another; None of models that no level is known of (levels.py).
    lineage: str | None = None

    @property
    def isolated(self) -> float:
        """Variance by what isolated measurements leave open."""
        return self.own + sum((share * scale) ** 2 for share, scale in self.factors.values())


@dataclass(frozen=True)
class Residual:
    """ln(measured / simulated) of one row, and what its error may hang on."""

    row_id: str
    source: str
    value: float
    terms: ErrorTerms


def terms_of(forecast: Forecast, device: str) -> ErrorTerms:
    """Undoes what the shipped uncertainty adds, so that a fit does not depend on it."""
    plan = _core.uncertainty()["plan"]
    time = forecast.iteration_time or 1.0
    factors = {
        name: (seconds / time, scale)
        for name, (seconds, scale) in forecast.factors().items()
        if not name.startswith(_SOFTWARE)
    }
    return ErrorTerms(
        profile=shipped_profile(forecast.profile),
        from_documentation=_core.profile_from_documentation(forecast.profile),
        device=device,
        factors=factors,
        own=max(forecast.own_variance_s2 / time**2 - plan**2, 0.0),
        lineage=_core.profile_lineage(forecast.profile) if forecast.seq > 0 else None,
    )
