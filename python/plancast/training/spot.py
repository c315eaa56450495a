"""Runs on hosts that come and go, and whether they are worth it: `plancast.spot`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

from plancast import arguments
from plancast.checked import checked
from plancast.errors import InputError
from plancast.forecast import Forecast
from plancast.immutable import Immutable
from plancast.machine import Machine
from plancast.model import Model
from plancast.planning import DEFAULT_PROFILE, check_nouns
from plancast.progress import Progress, following
from plancast.session import Session
from plancast.shown import Shown, Tabular
from plancast.training import amounts
from plancast.training.availability import Availability
from plancast.training.best_plan import NoPlanFitsError, best_plan
from plancast.training.checkpoints import CheckpointCost, Checkpoints, state_bytes
from plancast.training.failures import Failures
from plancast.training.goodput import Costs, best_interval
from plancast.training.morphing import Gear, Morphed, morph
from plancast.training.phases import usual_batch
from plancast.training.prices import Rent, rent_if_known
from plancast.training.spread import Spread, spread_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from plancast.precision import Types

# Fewer hosts that are tried where a number of them has no plan, or a poor one.
_LOOKED_AT = 3


@checked
@dataclass(frozen=True)
class SpotRun(Immutable, Shown, Tabular):
    """A run on hosts of a trace beside one on `reference` hosts that never go.

    `goodput` is work for a paid host-hour, relative to the reference's; times are seconds.
    """

    model: Model
    machine: Machine
    trace: Availability
    outcome: Morphed
    gears: tuple[Gear, ...]
    reference: Gear
    interval_s: float
    restart_s: float
    cost: CheckpointCost
    rent: Rent | str
    dedicated_rent: Rent | str
    fast: Morphed
    slow: Morphed | None
    sources: tuple[str, ...] = ()

    @property
    def interval(self) -> tuple[float, float | None]:
        """Central 90 % of the wall time, as the forecasts' errors have it; None: not by the end
        of the trace."""
        return self.fast.wall_s, None if self.slow is None else self.slow.wall_s

    @property
    def usd_interval(self) -> tuple[float, float | None] | None:
        """The same of the dollars; None: no price is known."""
        low, high = self.interval
        lowest = self._usd_of(low)
        return None if lowest is None else (lowest, None if high is None else self._usd_of(high))

    @property
    def paid_host_s(self) -> float:
        """Host-seconds that are paid for: every host of the trace, used or not."""
        return self.trace.host_seconds(self.outcome.wall_s)

    @property
    def goodput(self) -> float:
        """Samples for a paid host-second, relative to the reference."""
        own = self.outcome.samples / self.paid_host_s
        return own / (self.reference.rate / self.reference.hosts)

    @property
    def usd(self) -> float | None:
        """Dollars; None: no price is known."""
        return self._usd_of(self.outcome.wall_s)

    def _usd_of(self, wall_s: float) -> float | None:
        if isinstance(self.rent, str):
            return None
        hosts = self.trace.host_seconds(wall_s)
        return self.rent.usd_per_hour / self.machine.hosts / 3600 * hosts

    @property
    def usd_per_sample(self) -> float | None:
        """Dollars for a sample."""
        return None if self.usd is None else self.usd / self.outcome.samples

    @property
    def dedicated_usd_per_sample(self) -> float | None:
        """Dollars for a sample on reference hosts that never go."""
        if isinstance(self.dedicated_rent, str):
            return None
        each = self.dedicated_rent.usd_per_hour / self.machine.hosts / 3600
        return each * self.reference.hosts / self.reference.rate

    @property
    def wins(self) -> bool | None:
        """Whether it is cheaper than the reference; None: a price is not known."""
        own, other = self.usd_per_sample, self.dedicated_usd_per_sample
        return None if own is None or other is None else own < other

    @property
    def moved_bytes(self) -> float:
        """State that restarts loaded."""
        return self.outcome.restarts * self.cost.bytes

    def to_dict(self) -> dict[str, Any]:
        """The fields of `plancast spot --json`."""
        outcome = dict(vars(self.outcome))
        outcome["by_hosts_s"] = {str(k): v for k, v in outcome.pop("by_gear_s").items()}
        return {
            "model": self.model.name,
            "machine": self.machine.name,
            **outcome,
            "wall_s_interval": list(self.interval),
            "usd_interval": None if self.usd_interval is None else list(self.usd_interval),
            "paid_host_hours": self.paid_host_s / 3600,
            "goodput": self.goodput,
            "usd": self.usd,
            "usd_per_sample": self.usd_per_sample,
            "dedicated_usd_per_sample": self.dedicated_usd_per_sample,
            "wins": self.wins,
            "no_price": [
                rent for rent in (self.rent, self.dedicated_rent) if isinstance(rent, str)
            ],
            "checkpoint_interval_s": self.interval_s,
            "restart_s": self.restart_s,
            "state_bytes": self.cost.bytes,
            "moved_bytes": self.moved_bytes,
            "plans": self.records(),
            "reference_hosts": self.reference.hosts,
            "sources": list(self.sources),
        }  # fmt: skip

    def records(self) -> list[dict[str, Any]]:
        """A row for each number of hosts that has a plan."""
        return [
            {"hosts": gear.hosts, "samples_per_s": gear.rate, "strategy": gear.strategy,
             "load_s": gear.load_s, "stall_s": gear.stall_s}
            for gear in self.gears
        ]  # fmt: skip

    def plot_hosts(self) -> Any:
        """Hosts over time, and how many of them train, as a plotly figure."""
        from plancast.charts.figure import drawn
        from plancast.report.page.spot import hosts_figure

        return drawn(hosts_figure(self), f"{self.model.name} on hosts that come and go")

    def __rich__(self) -> RenderableType:
        from plancast.report.spot import spot_tables

        return spot_tables(self)

    def __repr__(self) -> str:
        return (
            f"<SpotRun {self.model.name} on {self.machine.name}: "
            f"{amounts.whole_run(self.outcome.wall_s)}, goodput {self.goodput:.3f}>"
        )


@checked
def spot(
    model: Model,
    machine: Machine,
    trace: Availability,
    *,
    tokens: float | str | None = None,
    samples: float | str | None = None,
    batch: int | None = None,
    notice: float | str = 0.0,
    restart: float | str | None = None,
    checkpoints: Checkpoints | str | None = None,
    price: float | str = "spot",
    dedicated_price: float | str = "on-demand",
    dtype: str = "bf16",
    profile: str = DEFAULT_PROFILE,
    session: Session | None = None,
    progress: Progress = None,
    **types: Unpack[Types],
) -> SpotRun:
    """Forecasts a run on hosts that are taken away and come back.

    For every number of hosts in the trace a plan is searched that fits in memory; the run is
    simulated event by event with saving, lost work, restarts and the loading of moved state.

    Args:
      model: what is trained.
      machine: which hosts; how many of them is as the trace says.
      trace: hosts over time; all of them are paid for.
      tokens: how many are trained on, or text such as `1T`.
      samples: the same for models without sequences.
      batch: global batch, the same on any number of hosts; about 4 M tokens by default.
      notice: seconds between a warning and the loss of hosts, or text such as `2min`.
      restart: seconds from a change until training goes on, without loading the state; 5 minutes
        by default (`Failures`).
      checkpoints: as of `train`; `best` goes by the mean time between losses.
      price: dollars per GPU-hour of these hosts, or a kind of price on record.
      dedicated_price: of hosts that never go, to compare with.
      dtype: matmul precision.
      profile: how the framework runs.
      session: shared memo; a fresh one by default.
      progress: called with host counts planned and in all; by default a bar.
      types: of what is stored and sent, as for `predict`.

    Raises:
      InputError: no plan fits on any number of hosts, or the trace ends too early.

    >>> trace = Availability.parse("time_h,hosts\\n0,2\\n1,1\\n3,2\\n")
    >>> run = spot(Model.preset("llama3-8b", seq=2048), Machine.preset("dgx-h100"), trace,
    ...     tokens="2B", batch=64)
    >>> 0 < run.goodput < 1, run.outcome.restarts
    (True, 2)
    """
    check_nouns(model, machine, session)
    if len(machine.sections) > 1:
        raise InputError("hosts of a trace are all alike; give one kind of machine.")
    work = _samples(model, tokens, samples)
    how = Checkpoints.parse(checkpoints) if isinstance(checkpoints, str) else checkpoints
    planner = _Planner(
        model,
        machine,
        arguments.batch(batch) or usual_batch(model.seq),
        how or Checkpoints(),
        {"dtype": arguments.dtype(dtype), "profile": profile, "session": session or Session(),
         **types},
    )  # fmt: skip
    counts = sorted(set(trace.hosts), reverse=True)
    with following(progress, "host counts") as tell:
        for number, hosts in enumerate(counts):
            planner.gear(hosts)
            if tell is not None:
                tell(number + 1, len(counts))
    reference = planner.gear(trace.most)
    if reference is None:
        raise InputError(planner.why)
    usual = Failures(host_hours=1.0)
    start = usual.startup if restart is None else amounts.seconds(restart, "restart", zero=True)
    interval = _interval(planner, trace, reference, work)
    warned = amounts.seconds(notice, "notice", zero=True)

    def at(ratio: float) -> Morphed:
        """All plans so many times as slow as forecast: what they share is most of the error."""

        def gear(hosts: int) -> Gear | None:
            found = planner.gear(hosts)
            return None if found is None else replace(found, rate=found.rate / ratio)

        return morph(trace, gear, work, interval=interval, restart=start, notice=warned)

    outcome = at(1.0)
    ratios = planner.spread(reference.hosts).interval(1.0)
    try:
        slow = at(ratios[1])
    except InputError:  # the trace ends before
        slow = None
    return SpotRun(
        model=model,
        machine=planner.machine(reference.hosts),
        trace=trace,
        outcome=outcome,
        gears=tuple(g for h in outcome.by_gear_s if (g := planner.used(h)) is not None),
        reference=reference,
        interval_s=interval,
        restart_s=start,
        cost=planner.cost(reference.hosts),
        rent=rent_if_known(planner.machine(reference.hosts), price),
        dedicated_rent=rent_if_known(planner.machine(reference.hosts), dedicated_price),
        fast=at(ratios[0]),
        slow=slow,
        sources=tuple(planner.checkpoints.sources(planner.machine(reference.hosts))),
    )


class _Planner:
    """The best way to run on so many hosts, and what saving and loading takes there."""

    def __init__(
        self,
        model: Model,
        machine: Machine,
        batch: int,
        checkpoints: Checkpoints,
        how: dict[str, Any],
    ) -> None:
        self.why = "no hosts are in the trace."
        self.checkpoints = checkpoints
        self._model = model
        self._fields = machine.to_dict()
        self.batch = batch
        self._how = how
        self._plans: dict[int, Forecast | None] = {}
        self._gears: dict[int, Gear | None] = {0: None}

    def machine(self, hosts: int) -> Machine:
        """So many hosts."""
        return Machine.from_dict({**self._fields, "hosts": hosts})

    def gear(self, hosts: int) -> Gear | None:
        """The fastest of the plans on so many hosts and a few less; None: none fits."""
        if hosts not in self._gears:
            found: list[Gear] = []
            # A count that divides the batch badly is worse than a few hosts less.
            for fewer in range(hosts, 0, -1):
                forecast = self._plan(fewer)
                if forecast is not None:
                    found.append(self._geared(fewer, forecast))
                if len(found) == _LOOKED_AT or (found and fewer & (fewer - 1) == 0):
                    break
            self._gears[hosts] = max(found, key=lambda gear: gear.rate) if found else None
        return self._gears[hosts]

    def used(self, hosts: int) -> Gear | None:
        """The gear that runs on exactly so many."""
        forecast = self._plans.get(hosts)
        return None if forecast is None else self._geared(hosts, forecast)

    def spread(self, hosts: int) -> Spread:
        """How sure the plan's speed on so many hosts is."""
        forecast = self._plans[hosts]
        assert forecast is not None
        return spread_of([(1.0, forecast)])

    def cost(self, hosts: int) -> CheckpointCost:
        """Of the plan on so many hosts."""
        forecast = self._plans[hosts]
        assert forecast is not None
        state = state_bytes(self._model.parameters, forecast)
        return self.checkpoints.cost(state, forecast, self.machine(hosts))

    def _geared(self, hosts: int, forecast: Forecast) -> Gear:
        cost = self.cost(hosts)
        return Gear(
            hosts=hosts,
            rate=forecast.samples_per_s,
            stall_s=cost.stall_s,
            lag_s=cost.lag_s,
            load_s=cost.load_s,
            strategy=forecast.strategy,
        )

    def _plan(self, hosts: int) -> Forecast | None:
        if hosts not in self._plans:
            try:
                self._plans[hosts] = best_plan(
                    self._model, self.machine(hosts), batch=self.batch, **self._how
                )
            except NoPlanFitsError as error:
                self._plans[hosts], self.why = None, str(error)
        return self._plans[hosts]


def _samples(model: Model, tokens: float | str | None, samples: float | str | None) -> float:
    right, other = (tokens, samples) if model.seq > 0 else (samples, tokens)
    name = "tokens" if model.seq > 0 else "samples"
    if right is None or other is not None:
        raise InputError(f"`{model.name}` is trained on {name}; give `{name}` (`--{name} 1T`).")
    return amounts.scaled(right, name) / max(1, model.seq)


def _interval(planner: _Planner, trace: Availability, reference: Gear, samples: float) -> float:
    """Seconds between saved states."""
    # A step is not cut, and writes do not overlap.
    least = max(planner.batch / reference.rate, reference.lag_s - reference.stall_s)
    if planner.checkpoints.every != "best":
        every = float(planner.checkpoints.every)
        if every < least:
            raise InputError(
                f"a checkpoint every {amounts.whole_run(every)} is too often; take "
                f"{amounts.whole_run(least)} or more."
            )
        return every
    between = samples / reference.rate / max(1, trace.losses())
    costs = Costs(between, reference.stall_s, reference.lag_s, 0.0)
    return best_interval(costs, least)
