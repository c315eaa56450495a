"""What `plancast.train` says."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from plancast.cached import cached_property
from plancast.checked import checked
from plancast.errors import InputError
from plancast.forecast import Forecast
from plancast.immutable import Immutable
from plancast.machine import Machine
from plancast.model import Model
from plancast.shown import Shown
from plancast.training.event_run import Simulated
from plancast.training.prices import Draw, Rent
from plancast.training.reliability import Reliability
from plancast.training.slow_hosts import Slowed
from plancast.training.spread import Spread, spread_of

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType


@dataclass(frozen=True)
class Jitter:
    """Random iterations against the one without noise: mean and standard deviation."""

    factor: float
    deviation: float
    samples: int
    seed: int


@dataclass(frozen=True)
class PhaseRun:
    """A phase as it runs: whole steps of `units` tokens (or samples), each as forecast."""

    name: str
    steps: int
    units: int
    forecast: Forecast
    jitter: Jitter | None = None

    @property
    def seconds(self) -> float:
        """Training alone: no pauses, no failures."""
        return self.steps * self.step_s

    @property
    def step_s(self) -> float:
        """Of one step on average, with what is random in it."""
        factor = 1.0 if self.jitter is None else self.jitter.factor
        return self.forecast.iteration_time * factor


@checked
@dataclass(frozen=True)
class TrainingRun(Immutable, Shown):
    """A whole run, as forecast: median times, each with the central 90 % that follows from the
    forecasts' own (docs/training_runs.md). Times are seconds, unless a name says otherwise."""

    model: Model
    machine: Machine
    phases: tuple[PhaseRun, ...]
    paused_s: float
    reliability: Reliability | None
    rent: Rent | str
    draw: Draw
    slowed: Slowed | None = None
    date_s: float | None = None
    assumed: tuple[str, ...] = ()
    simulated: Simulated | None = None

    @property
    def steps(self) -> int:
        """Optimizer steps."""
        return sum(phase.steps for phase in self.phases)

    @property
    def units(self) -> float:
        """Tokens trained on; samples of models without sequences."""
        return float(sum(phase.steps * phase.units for phase in self.phases))

    @property
    def training_s(self) -> float:
        """Training alone."""
        return sum(phase.seconds for phase in self.phases)

    @property
    def busy_s(self) -> float:
        """Training and pauses to evaluate."""
        return self.training_s + self.paused_s

    @property
    def useful_share(self) -> float:
        """Of the wall time, the share not lost to failures, checkpoints and slow hosts."""
        share = 1.0 if self.reliability is None else self.reliability.useful
        return share if self.slowed is None else share * self.slowed.useful

    @property
    def seconds(self) -> float:
        """Wall time from the first step to the last."""
        return self.busy_s / self.useful_share

    @property
    def days(self) -> float:
        """Wall time, days."""
        return self.seconds / 86400

    @cached_property
    def spread(self) -> Spread:
        """How sure the training time is."""
        return spread_of(
            [
                (phase.seconds / phase.forecast.iteration_time, phase.forecast)
                for phase in self.phases
            ]
        )

    @property
    def interval(self) -> tuple[float, float]:
        """Central 90 % of the wall time."""
        low, high = self.spread.interval(self.training_s)
        return tuple((time + self.paused_s) / self.useful_share for time in (low, high))  # type: ignore[return-value]

    @property
    def gpus_paid(self) -> int:
        """GPUs that are paid for: those that train, and those of spare hosts."""
        spares = 0 if self.reliability is None else self.reliability.spares
        return self.machine.devices + spares * self._gpus_of_a_host

    @property
    def gpu_hours(self) -> float:
        """GPU-hours paid for."""
        return self.seconds / 3600 * self.gpus_paid

    @property
    def usd(self) -> float | None:
        """Dollars; None: no price is known."""
        return None if isinstance(self.rent, str) else self.seconds * self._usd_per_s

    @property
    def usd_interval(self) -> tuple[float, float] | None:
        """Central 90 % of the dollars."""
        if isinstance(self.rent, str):
            return None
        return self.interval[0] * self._usd_per_s, self.interval[1] * self._usd_per_s

    @property
    def kwh(self) -> float:
        """Kilowatt-hours of the site at rated power of the machines that train."""
        return self.seconds * self._kwh_per_s

    @property
    def kwh_interval(self) -> tuple[float, float]:
        """Central 90 % of the kilowatt-hours."""
        return self.interval[0] * self._kwh_per_s, self.interval[1] * self._kwh_per_s

    @property
    def fits(self) -> bool:
        """Whether every phase fits in memory."""
        return all(phase.forecast.fits for phase in self.phases)

    def probability_by(self, seconds: float) -> float:
        """That the run is through after so many seconds."""
        left = seconds * self.useful_share - self.paused_s
        return self.spread.probability_below(left / self.training_s)

    def seconds_at(self, probability: float) -> float:
        """The wall time that the run stays below with a probability."""
        training = self.training_s * self.spread.ratio_at(probability)
        return (training + self.paused_s) / self.useful_share

    @property
    def units_per_usd(self) -> float | None:
        """Tokens (or samples) for a dollar; None: no price is known."""
        return None if not self.usd else self.units / self.usd

    @property
    def units_per_kwh(self) -> float:
        """Tokens (or samples) for a kilowatt-hour."""
        return self.units / self.kwh

    def with_simulation(self, simulated: Simulated) -> TrainingRun:
        """The same run with failures simulated one by one."""
        return replace(self, simulated=simulated)

    def to_dict(self) -> dict[str, Any]:
        """The fields of `plancast train --json`."""
        tokens = self.model.seq > 0
        priced = not isinstance(self.rent, str)
        return {
            "model": self.model.name,
            "machine": str(self.machine),
            "gpus": self.machine.devices,
            "gpus_paid": self.gpus_paid,
            "tokens": self.units if tokens else None,
            "samples": None if tokens else self.units,
            "steps": self.steps,
            "seconds": self.seconds,
            "seconds_interval": list(self.interval),
            "days": self.days,
            "date_s": self.date_s,
            "probability_of_date": None
            if self.date_s is None
            else self.probability_by(self.date_s),
            "training_s": self.training_s,
            "paused_s": self.paused_s,
            "useful_share": self.useful_share,
            "gpu_hours": self.gpu_hours,
            "usd": self.usd,
            "usd_interval": None if self.usd_interval is None else list(self.usd_interval),
            "prices": [q.to_dict() for q in self.rent.quotes]
            if isinstance(self.rent, Rent)
            else [],
            "no_price": None if priced else self.rent,
            "kwh": self.kwh,
            "kwh_interval": list(self.kwh_interval),
            "pue": self.draw.pue,
            "power_sources": list(self.draw.sources),
            "fits": self.fits,
            "phases": [self._phase(phase) for phase in self.phases],
            "reliability": None if self.reliability is None else self.reliability.to_dict(),
            "slow_hosts": None if self.slowed is None else self.slowed.to_dict(),
            "simulated": None if self.simulated is None else asdict(self.simulated),
            "assumed": list(self.assumed),
        }

    def to_frame(self) -> pd.DataFrame:
        """A row for each phase, units in the column names."""
        import pandas as pd

        rows = [self._phase(phase) for phase in self.phases]
        for row in rows:
            low, high = row.pop("iteration_time_interval_s")
            row |= {"iteration_time_low_s": low, "iteration_time_high_s": high}
            row.pop("warnings")
            row.pop("jitter")
        return pd.DataFrame.from_records(rows)

    def plot_time(self) -> Any:
        """Where the wall time goes, as a plotly figure."""
        from plancast.charts.figure import drawn
        from plancast.report.page.train import time_figure

        return drawn(time_figure(self), f"{self.model.name} on {self.machine}")

    @staticmethod
    def _phase(phase: PhaseRun) -> dict[str, Any]:
        forecast = phase.forecast
        return {
            "name": phase.name,
            "steps": phase.steps,
            "units": phase.steps * phase.units,
            "batch": forecast.global_batch,
            "seq": forecast.seq,
            "dtype": forecast.dtype,
            "strategy": forecast.strategy,
            "seconds": phase.seconds,
            "iteration_time_s": forecast.iteration_time,
            "iteration_time_interval_s": list(forecast.interval),
            "jitter": None if phase.jitter is None else asdict(phase.jitter),
            "mfu": forecast.mfu,
            "peak_memory_bytes": forecast.peak_memory,
            "fits": forecast.fits,
            "warnings": list(forecast.warnings),
        }

    @property
    def _gpus_of_a_host(self) -> int:
        return max(section.gpus_per_host for section in self.machine.sections)

    @property
    def _usd_per_s(self) -> float:
        if isinstance(self.rent, str):
            raise InputError(self.rent)
        return self.rent.usd_per_hour / 3600 * self.gpus_paid / self.machine.devices

    @property
    def _kwh_per_s(self) -> float:
        return self.draw.kilowatts * self.draw.pue / 3600

    def __rich__(self) -> RenderableType:
        from plancast.report.training import run_tables

        return run_tables(self)

    def __repr__(self) -> str:
        from plancast.training.amounts import money, whole_run

        cost = "" if self.usd is None else f", {money(self.usd)}"
        return f"<TrainingRun {self.model.name} on {self.machine}: {whole_run(self.seconds)}{cost}>"
