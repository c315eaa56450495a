"""Plans and machines side by side, with the reason for the difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plancast import arguments
from plancast.checked import checked
from plancast.errors import InputError
from plancast.forecast import Forecast
from plancast.parts import WORDS
from plancast.shown import Shown, Tabular
from plancast.textual import change, duration
from plancast.uncertainty import NINETY_FIVE_PERCENT, difference_scale, faster_probability

if TYPE_CHECKING:
    from rich.console import RenderableType

    from plancast.explaining.causes import Cause

# With more of a path priced from other hardware, no probability is told.
_MOST_EXTRAPOLATED = 0.5


@dataclass(frozen=True)
class Difference:
    """How one forecast differs from the first, seconds; positive is slower.

    `interval` is the central 90 % of `seconds`: errors that both forecasts share (kernels
    of one GPU, one link, one software) cancel, the bad luck of single runs is left out.

    `extrapolated` are the shares of both critical paths, the first's first, that are priced
    from measurements of other GPUs or links and do not cancel. From a half on nobody knows
    how sure the difference is: `faster_probability` is None.
    """

    seconds: float
    relative: float
    parts: dict[str, float]
    faster_probability: float | None
    reason: str
    interval: tuple[float, float]
    extrapolated: tuple[float, float] = (0.0, 0.0)
    # Every cause with a sentence, which sum to `seconds` (Forecast.explain); none between jobs.
    causes: tuple[Cause, ...] = ()


class Comparison(Shown, Tabular):
    """The result of `plancast.compare`."""

    def __init__(self, forecasts: Sequence[Forecast]) -> None:
        if len(forecasts) < 2:
            raise InputError("a comparison needs at least two plans or machines.")
        for forecast in forecasts:
            arguments.instance(forecast, Forecast, "forecast", "predict(model, machine, strategy)")
        self._forecasts = tuple(forecasts)

    def __iter__(self) -> Iterator[Forecast]:
        return iter(self._forecasts)

    def __len__(self) -> int:
        return len(self._forecasts)

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Each forecast after the first against the first."""
        base = self._forecasts[0]
        return tuple(difference(base, other) for other in self._forecasts[1:])

    def to_dict(self) -> dict[str, Any]:
        """The fields of `plancast compare --json`."""
        return {
            "plans": [
                {
                    "machine": f.machine,
                    "devices": f.devices,
                    "strategy": f.strategy,
                    "global_batch": f.global_batch,
                    **f.to_dict(),
                }
                for f in self._forecasts
            ],
            "differences": [
                {
                    "iteration_time_s": d.seconds,
                    "interval_s": list(d.interval),
                    "relative": d.relative,
                    "breakdown_s": d.parts,
                    "faster_probability": d.faster_probability,
                    "extrapolated": list(d.extrapolated),
                    "reason": d.reason,
                    "causes": [cause.to_dict() for cause in d.causes],
                }
                for d in self.differences
            ],
        }

    def records(self) -> list[dict[str, Any]]:
        """A row for each forecast in their order."""
        from plancast.plan_record import run_record

        return [run_record(forecast) for forecast in self]

    def plot_breakdown(self) -> Any:
        """Where the time of each goes, as a plotly figure."""
        from plancast.charts.breakdown import breakdown

        names = [f"{n}. {f.strategy} on {f.machine}" for n, f in enumerate(self, start=1)]
        return breakdown(list(self), names, "Side by side")

    def plot_differences(self, place: int = 1) -> Any:
        """What makes the forecast at `place` slower or faster than the first, part by part.

        Args:
          place: from 1 on, of those after the first.
        """
        from plancast.charts.figure import drawn
        from plancast.report.page.compare import difference_bars

        at = arguments.whole(place, "place", 1, len(self) - 1)
        found = difference(self._forecasts[0], self._forecasts[at])
        return drawn(difference_bars(found), f"{self._forecasts[at].strategy}: {found.reason}")

    def __rich__(self) -> RenderableType:
        from plancast.report.compare import comparison_tables

        return comparison_tables(self)

    def __repr__(self) -> str:
        fastest = min(self, key=lambda forecast: forecast.iteration_time)
        return (
            f"<Comparison of {len(self)} forecasts, fastest {fastest.strategy} on "
            f"{fastest.machine}: {duration(fastest.iteration_time)}>"
        )


@checked
def compare(*forecasts: Forecast) -> Comparison:
    """Sets forecasts side by side; the first is what the others are compared with."""
    return Comparison(forecasts)


def difference(base: Forecast, other: Forecast) -> Difference:
    """`other` against `base`."""
    seconds = other.iteration_time - base.iteration_time
    mine, theirs = base.breakdown(), other.breakdown()
    parts = {part: theirs[part] - mine[part] for part in mine}
    scale = difference_scale(base, other)
    slack = NINETY_FIVE_PERCENT * scale
    relative = seconds / base.iteration_time if base.iteration_time > 0 else 0.0
    extrapolated = (_unshared(base, other), _unshared(other, base))
    known = max(extrapolated) < _MOST_EXTRAPOLATED
    return Difference(
        seconds,
        relative,
        parts,
        faster_probability(seconds, scale) if known else None,
        _reason(seconds, relative, parts),
        (seconds - slack, seconds + slack),
        extrapolated,
        _causes(base, other),
    )


def _causes(base: Forecast, other: Forecast) -> tuple[Cause, ...]:
    from plancast.question import PlanQuestion

    if not all(isinstance(f._question, PlanQuestion) for f in (base, other)):
        return ()
    return other.explain(versus=base).causes


def _unshared(mine: Forecast, theirs: Forecast) -> float:
    """The share of my critical path that is extrapolated and not in theirs, too."""
    others = theirs.extrapolated()
    seconds = sum(max(0.0, own - others.get(n, 0.0)) for n, own in mine.extrapolated().items())
    return seconds / mine.iteration_time if mine.iteration_time > 0 else 0.0


def _reason(seconds: float, relative: float, parts: dict[str, float]) -> str:
    if abs(relative) < 0.0005:
        return "as fast"
    verdict = (
        f"{duration(abs(seconds))} {'slower' if seconds > 0 else 'faster'} ({change(relative)})"
    )
    by_size = sorted(parts.items(), key=lambda item: -abs(item[1]))
    causes = [item for item in by_size if abs(item[1]) >= 0.1 * abs(seconds)][:3]
    said = ", ".join(f"{WORDS[part]} {_signed(value)}" for part, value in causes)
    return f"{verdict}: {said}"


def _signed(seconds: float) -> str:
    return f"{'+' if seconds > 0 else '−'}{duration(abs(seconds))}"
