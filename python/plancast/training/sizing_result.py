"""What `plancast.size` says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plancast.checked import checked
from plancast.immutable import Immutable
from plancast.shown import Shown, Tabular
from plancast.training.training_run import TrainingRun

if TYPE_CHECKING:
    from rich.console import RenderableType

# A doubling of hosts beyond the knee makes a run less than so many times as fast.
KNEE = 1.5


@dataclass(frozen=True)
class Option:
    """The size found of one kind of machine: its run, or why there is none."""

    machine: str
    run: TrainingRun | None
    why_not: str = ""

    @property
    def hosts(self) -> int:
        """Hosts that train."""
        return 0 if self.run is None else self.run.machine.hosts


@dataclass(frozen=True)
class CurvePoint:
    """How fast a run is on so many hosts: tokens (or samples) a second, failures included."""

    hosts: int
    run: TrainingRun

    @property
    def units_per_s(self) -> float:
        """Of the wall time."""
        return self.run.units / self.run.seconds


@checked
@dataclass(frozen=True)
class Sizing(Immutable, Shown, Tabular):
    """Machines that finish a run in time, cheapest first; those without a price behind them.

    `days` and `budget` are what was asked for; `curve` is how the first option scales. `cheaper` is
    the cheapest tried size of the best machine, where more hosts than the fewest cost less.
    """

    options: tuple[Option, ...]
    days: float | None
    budget: float | None
    confidence: float
    curve: tuple[CurvePoint, ...] = ()
    cheaper: Option | None = None

    @property
    def best(self) -> Option | None:
        """The cheapest that keeps date and budget; None: none does."""
        return next((option for option in self.options if self.keeps(option)), None)

    def keeps(self, option: Option) -> bool:
        """Whether an option keeps the date and is known to keep the budget."""
        run = option.run
        if run is None or option.why_not:
            return False
        if self.budget is not None and (run.usd is None or run.usd > self.budget):
            return False
        return self.days is None or run.seconds_at(self.confidence) <= self.days * 86400

    @property
    def knee(self) -> int | None:
        """Of the curve the most hosts to which a doubling still pays (`KNEE`)."""
        return knee([(point.hosts, point.units_per_s) for point in self.curve])

    def to_dict(self) -> dict[str, Any]:
        """The fields of `plancast size --json`."""
        return {
            "days": self.days,
            "budget_usd": self.budget,
            "confidence": self.confidence,
            "best": None if self.best is None else self.best.machine,
            "options": [self._option(option) for option in self.options],
            "cheaper": None if self.cheaper is None else self._option(self.cheaper),
            "curve": [
                {"hosts": p.hosts, "units_per_s": p.units_per_s, "days": p.run.days,
                 "usd": p.run.usd, "strategy": p.run.phases[0].forecast.strategy}
                for p in self.curve
            ],
            "knee_hosts": self.knee,
        }  # fmt: skip

    def _option(self, option: Option) -> dict[str, Any]:
        run = option.run
        fields: dict[str, Any] = {
            "machine": option.machine,
            "hosts": option.hosts,
            "keeps": self.keeps(option),
            "why_not": option.why_not or None,
        }
        if run is not None:
            fields |= {
                "probability_of_date": self.probability(option),
                "units_per_usd": run.units_per_usd,
                "units_per_kwh": run.units_per_kwh,
                "run": run.to_dict(),
            }
        return fields

    def probability(self, option: Option) -> float | None:
        """That an option keeps the date; None: none was asked for."""
        if option.run is None or self.days is None:
            return None
        return option.run.probability_by(self.days * 86400)

    def records(self) -> list[dict[str, Any]]:
        """One flat record a machine, units in the names."""
        return [self._row(option) for option in self.options]

    def _row(self, option: Option) -> dict[str, Any]:
        run = option.run
        low, high = (None, None) if run is None else run.interval
        return {
            "machine": option.machine,
            "hosts": option.hosts,
            "keeps": self.keeps(option),
            "days": None if run is None else run.days,
            "days_low": None if low is None else low / 86400,
            "days_high": None if high is None else high / 86400,
            "usd": None if run is None else run.usd,
            "kwh": None if run is None else run.kwh,
            "gpu_hours": None if run is None else run.gpu_hours,
            "strategy": None if run is None else run.phases[0].forecast.strategy,
            "why_not": option.why_not or None,
        }

    def plot_options(self) -> Any:
        """Days against dollars of each machine, as a plotly figure."""
        from plancast.charts.sizes import sizes

        return sizes(self)

    def __rich__(self) -> RenderableType:
        from plancast.report.sizing import sizing_tables

        return sizing_tables(self)

    def __repr__(self) -> str:
        best = self.best
        if best is None:
            return f"<Sizing of {len(self.options)} machines: none keeps date and budget>"
        return f"<Sizing of {len(self.options)} machines: {best.hosts} hosts of {best.machine}>"


def knee(rates: Sequence[tuple[int, float]]) -> int | None:
    """The most hosts whose last doubling made a run at least 1.5 times as fast.

    Args:
      rates: hosts and work per second; counts whose half is not there are passed over.

    >>> knee([(hosts, hosts / (1 + hosts / 8)) for hosts in (1, 2, 4, 8, 16, 32)])
    8
    """
    known = dict(rates)
    found = None
    for hosts in sorted(known):
        half = known.get(hosts // 2) if hosts % 2 == 0 else None
        if half is None:
            continue
        if known[hosts] < KNEE * half:
            break
        found = hosts
    return found
