"""Plans and machines side by side, with the reason for the difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plancast import arguments
from plancast.checked import checked
from plancast.errors import InputError
from plancast.forecast import Forecast
from plancast.textual import change, duration
from plancast.uncertainty import NINETY_FIVE_PERCENT, difference_scale, faster_probability

if TYPE_CHECKING:
    from rich.console import RenderableType

# Parts of the breakdown in words.
WORDS = {
    "compute": "compute",
    "recompute": "recomputation",
    "exposed_tp": "exposed tensor-parallel communication",
    "exposed_dp": "exposed data-parallel communication",
    "exposed_pp": "exposed pipeline messages",
    "exposed_cp": "exposed context-parallel communication",
    "exposed_ep": "exposed expert-parallel communication",
    "exposed_offload": "exposed offload copies",
    "bubble": "pipeline bubble",
    "straggler": "waiting for slower peers",
    "launch": "waiting for the host",
    "optimizer": "optimizer step",
    "other": "everything else",
}


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


class Comparison:
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
                }
                for d in self.differences
            ],
        }

    def __rich__(self) -> RenderableType:
        from plancast.report.compare import comparison_tables

        return comparison_tables(self)

    def _repr_html_(self) -> str:
        from plancast.report.html import to_html

        return to_html(self.__rich__())

    def __repr__(self) -> str:
        return f"<Comparison of {len(self)} forecasts>"


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
    )


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
