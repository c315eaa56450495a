"""How sure a forecast is, in a word, with the reasons first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plancast.textual import percent

if TYPE_CHECKING:
    from plancast.forecast import Forecast

# Shares of the critical path priced from other GPUs or links from which a grade is lost.
_SOME, _MUCH = 0.1, 0.5
_LEAST = 0.005
# Warnings of `Forecast.warnings` by how they begin.
_NOT_THERE = ("no measured run", "beyond the measured runs", "the memory of a")
_UNKNOWN = ("software profile",)
# What no forecast of a step has in it by itself: some of it is in the level of the software.
_NEVER = "loading of data, evaluation and logging, but for what measured runs have of them"


@dataclass(frozen=True)
class Confidence:
    """A grade, `high`, `fair` or `low`, and what it stands on.

    High: less than a tenth of the time is priced from other GPUs or links, and measured runs of
    the software are on this GPU and reach as far as the plan, and what it keeps on hosts was held
    against their memory. Fair: any of these does not hold.
    Low: half of the time is priced from elsewhere, or no measured run is of the software nor of
    one like it.
    """

    grade: str
    measured: tuple[str, ...]
    extrapolated: tuple[str, ...]
    not_modelled: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "grade": self.grade,
            "measured": list(self.measured),
            "extrapolated": list(self.extrapolated),
            "not_modelled": list(self.not_modelled),
        }


def confidence(forecast: Forecast) -> Confidence:
    """The grade of a forecast and its reasons."""
    known = forecast.knowledge()
    own = known.get("measured", 0.0) + known.get("calibrated", 0.0)
    share = f"{percent(own, 0)} of the" if own >= _LEAST else "next to nothing of the"
    measured = [f"{share} kernels' time is priced by measurements of {_gpu(forecast)}"]
    software = forecast.software()
    if software["sources"]:
        lineage = f" of the {software['lineage']} lineage" if software["lineage"] else ""
        measured.append(f"runs of {software['sources']} sources{lineage} set its level")
    elsewhere = sum(forecast.extrapolated().values()) / (forecast.iteration_time or 1.0)
    extrapolated = []
    if elsewhere >= _LEAST:
        names = sorted(forecast.extrapolated().items(), key=lambda item: -item[1])
        most = names[0][0]
        extrapolated.append(
            f"{percent(elsewhere, 0)} of the time is priced from other GPUs or links, most of it "
            f"`{most}`"
        )
    fair, low = elsewhere >= _SOME, elsewhere >= _MUCH
    not_modelled = []
    for warning in forecast.warnings:
        if warning.startswith((*_NOT_THERE, *_UNKNOWN)):
            fair, low = True, low or (warning.startswith(_UNKNOWN) and not software["sources"])
            extrapolated.append(warning)
        elif "not simulated" in warning:
            not_modelled.append(warning)
    return Confidence(
        "low" if low else "fair" if fair else "high",
        tuple(measured),
        tuple(extrapolated),
        (*not_modelled, _NEVER),
    )


def _gpu(forecast: Forecast) -> str:
    return forecast.gpu.replace("+", " and ")
