"""How many hosts of which machine a run needs: `plancast.size`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from plancast import arguments, files
from plancast.checked import checked
from plancast.errors import InputError
from plancast.machine import Machine
from plancast.model import Model
from plancast.planning import DEFAULT_PROFILE
from plancast.progress import Progress, following
from plancast.session import Session
from plancast.textual import counted
from plancast.training import amounts
from plancast.training.best_plan import NoPlanFitsError
from plancast.training.run import train
from plancast.training.sizing_result import CurvePoint, Option, Sizing
from plancast.training.training_run import TrainingRun

if TYPE_CHECKING:
    from plancast.precision import Types
    from plancast.strategy import Strategy
    from plancast.training.checkpoints import Checkpoints
    from plancast.training.failures import Failures

MACHINES = ("dgx-h100", "dgx-h200", "dgx-b200", "gb200-nvl72")
_MOST_GPUS = 32_768
# MFU to begin the search with.
_FIRST_MFU = 0.4
# Twice the hosts that take more than this share of the time: it does not scale any more.
_SATURATED = 0.95
# A size that costs less than this share is worth telling.
_CLEARLY = 0.99
# Costs so many times the least that was seen do not fall again with more hosts.
_RISING = 1.5
_CURVE = (0.25, 0.5, 1, 2, 4)


@checked
def size(
    model: Model,
    machines: Sequence[str] | None = None,
    *,
    tokens: float | str | None = None,
    samples: float | str | None = None,
    days: float | str | None = None,
    budget: float | str | None = None,
    confidence: float = 0.5,
    batch: int | None = None,
    most_gpus: int = _MOST_GPUS,
    curve: bool = True,
    failures: Failures | str | None = "llama3",
    checkpoints: Checkpoints | str | None = None,
    price: float | str = "on-demand",
    pue: float | None = None,
    watts: float | None = None,
    dtype: str = "bf16",
    profile: str = DEFAULT_PROFILE,
    nodes: Strategy | None = None,
    session: Session | None = None,
    progress: Progress = None,
    **types: Unpack[Types],
) -> Sizing:
    """Finds the fewest hosts that train a model in time, of several kinds of machines.

    Powers of two are tried first, then three counts below the least that does: 1.25, 1.5 and 1.75
    times a power of two; of the machine that is best then, any count, by halving. Of each count
    the plan is the best of a few (`train`'s `best`).

    Args:
      model: what is trained.
      machines: presets or machine files, without a number of hosts; `dgx-h100`, `dgx-h200`,
        `dgx-b200` and `gb200-nvl72` by default.
      tokens: how many are trained on, or text such as `15T`.
      samples: the same for models without sequences.
      days: by when, or text such as `30 days`; without, the most hosts that the budget pays.
      budget: dollars, or text such as `3M`.
      confidence: the probability with which the date is to be kept.
      batch: global batch; about 4 M tokens by default.
      most_gpus: larger machines are not tried.
      curve: whether to look how the best option scales.
      failures: as of `train`.
      checkpoints: as of `train`.
      price: dollars per GPU-hour, or `on-demand`, `reserved` or `spot`.
      pue: power usage effectiveness of the site.
      watts: what a GPU draws with its share of the host.
      dtype: matmul precision.
      profile: how the framework runs.
      nodes: what all plans train, as for `train`.
      session: shared memo; a fresh one by default.
      progress: called with machines done and machines in all; by default a bar.
      types: of what is stored and sent, as for `predict`.

    Raises:
      InputError: neither `days` nor `budget`, or what makes no sense.

    >>> sizing = size(Model.preset("llama3-8b"), ["dgx-h100"], tokens="20B", days=1, batch=256,
    ...     curve=False)
    >>> sizing.best is not None and sizing.best.run.days < 1
    True
    """
    if days is None and budget is None:
        raise InputError(
            "a size follows from a date or a budget; give `days` (`--days 30`) or `budget` "
            "(`--budget 3M`)."
        )
    if not 0 < confidence < 1:
        raise InputError(f"`confidence` is {confidence:g}; give a probability between 0 and 1.")
    arguments.whole(most_gpus, "most_gpus", 1, 1 << 24)
    wanted = None if days is None else amounts.seconds(days, "days", unit="d") / 86400
    money = None if budget is None else amounts.scaled(budget, "budget")
    how: dict[str, Any] = {
        "tokens": tokens, "samples": samples, "batch": batch, "failures": failures,
        "checkpoints": checkpoints, "price": price, "pue": pue, "watts": watts, "dtype": dtype,
        "profile": profile, "nodes": nodes, "session": session or Session(), **types,
    }  # fmt: skip
    names = list(machines or MACHINES)
    options = []
    trials: dict[str, _Trial] = {}
    with following(progress, "machines") as tell:
        for number, name in enumerate(names):
            if tell is not None:
                tell(number, len(names))
            trials[name] = _Trial(model, name, how, most_gpus)
            options.append(_option(trials[name], wanted, money, confidence))
        if tell is not None:
            tell(len(names), len(names))
    sizing = _sorted(options, wanted, money, confidence)
    if wanted is not None and sizing.best is not None:
        # Every count counts for the answer; for the table those above do.
        best = sizing.best
        fewest = _fewest(trials[best.machine], best, wanted * 86400, money, confidence)
        others = [option for option in options if option is not best]
        sizing = _sorted([fewest, *others], wanted, money, confidence)
    first = sizing.best or sizing.options[0]
    if curve and first.run is not None:
        sizing = replace(sizing, curve=_scaling(trials[first.machine], first))
    return replace(sizing, cheaper=_cheaper(trials, sizing))


def _sorted(
    options: Sequence[Option], wanted: float | None, money: float | None, confidence: float
) -> Sizing:
    return Sizing(
        options=tuple(sorted(options, key=lambda option: _order(option, wanted is None))),
        days=wanted,
        budget=money,
        confidence=confidence,
    )


def _fewest(
    trial: _Trial, found: Option, target: float, budget: float | None, confidence: float
) -> Option:
    """The fewest hosts of the best machine, by halving what lies below its count."""
    counts = [hosts for hosts in trial.found if hosts < found.hosts]
    low, high, best = max(counts, default=0), found.hosts, found
    while high - low > 1:
        middle = (low + high) // 2
        run = trial.run(middle)
        keeps = run is not None and run.seconds_at(confidence) <= target
        if run is not None and budget is not None and run.usd is not None:
            keeps = keeps and run.usd <= budget
        if keeps:
            high, best = middle, Option(trial.name, run)
        else:
            low = middle
    return best


def _cheaper(trials: dict[str, _Trial], sizing: Sizing) -> Option | None:
    """Of what was tried of the best machine, what costs least, if that is clearly less."""
    best = sizing.best
    if sizing.days is None or best is None or best.run is None or best.run.usd is None:
        return None
    trial = trials[best.machine]
    options = [Option(trial.name, run) for run in trial.found.values() if run is not None]
    kept = [(o.run.usd, o.hosts, o) for o in options if sizing.keeps(o) and o.run and o.run.usd]
    least = min(kept, key=lambda row: row[:2], default=None)
    return None if least is None or least[0] > _CLEARLY * best.run.usd else least[2]


class _Trial:
    """Runs on machines of one kind, by their number of hosts."""

    def __init__(self, model: Model, name: str, how: dict[str, Any], most_gpus: int) -> None:
        if not files.looks_like_file(name) and (":" in name or "+" in name):
            raise InputError(
                f"`{name}` says its hosts, which are to be found. Write `{name.split(':')[0]}`."
            )
        self.model, self.name = model, name
        self._how = how
        self.found: dict[int, TrainingRun | None] = {}
        self.why = ""
        one = self.machine(1)
        self.most = max(1, most_gpus // max(1, one.gpus_per_host))

    def machine(self, hosts: int) -> Machine:
        """So many hosts."""
        if files.looks_like_file(self.name):
            fields = files.read_mapping(self.name)
            return Machine.from_dict({**fields, "hosts": hosts}, what=f"`{self.name}`")
        return Machine.preset(self.name, hosts=hosts)

    def run(self, hosts: int) -> TrainingRun | None:
        """The run on so many hosts; None: no plan fits, `why` says what is nearest."""
        if hosts not in self.found:
            try:
                self.found[hosts] = train(self.model, self.machine(hosts), "best", **self._how)
            except NoPlanFitsError as error:
                self.found[hosts], self.why = None, str(error)
        return self.found[hosts]

    def first_guess(self, days: float) -> int:
        """Hosts that would do at 40 % of the peak."""
        one = self.machine(1)
        peak = max(float(one.to_dict()["gpu"].get("bf16_tflops") or 0) * 1e12, 1e12)
        amount = self._how["tokens"] or self._how["samples"]
        units = amounts.scaled(amount, "tokens") if amount is not None else 1.0
        work = 6 * self.model.active_parameters * units
        hosts = work / (_FIRST_MFU * peak * one.devices * days * 86400)
        return 1 << max(0, min(self.most.bit_length() - 1, round(math.log2(max(1.0, hosts)))))


def _option(trial: _Trial, days: float | None, budget: float | None, confidence: float) -> Option:
    if days is None:
        return _within_budget(trial, budget or 0.0)

    def time(hosts: int) -> float:
        run = trial.run(hosts)
        return math.inf if run is None else run.seconds_at(confidence)

    # Powers of two first: their plans are the good ones, and times fall until they scale no more.
    target = days * 86400
    hosts = trial.first_guess(days)
    while time(hosts) > target:
        if 2 * hosts > trial.most or time(2 * hosts) > _SATURATED * time(hosts) < math.inf:
            return _too_slow(trial, confidence)
        hosts *= 2
    while hosts > 1 and time(hosts // 2) <= target:
        hosts //= 2
    between = next_above(hosts // 2)
    while between < hosts and time(between) > target:
        between = next_above(between)
    fewest = Option(trial.name, trial.run(between))
    return fewest if budget is None else _affordable(trial, fewest, target, budget, confidence)


def _affordable(
    trial: _Trial, fewest: Option, target: float, budget: float, confidence: float
) -> Option:
    """The fewest hosts that keep the budget as well as the date; else the cheapest that were tried.

    More hosts may cost less than the fewest, by better plans.
    """

    def cost(hosts: int) -> float:
        """Infinite: not in time, or there is no price."""
        run = trial.run(hosts)
        if run is None or run.usd is None or run.seconds_at(confidence) > target:
            return math.inf
        return run.usd

    least = fewest.hosts
    if cost(least) <= budget or cost(least) == math.inf:
        return fewest
    hosts = 1 << least.bit_length()
    while hosts <= trial.most and cost(hosts) <= _RISING * cost(least):
        if cost(hosts) <= budget:
            between = next_above(max(fewest.hosts, hosts // 2))
            while between < hosts and cost(between) > budget:
                between = next_above(between)
            return Option(trial.name, trial.run(min(between, hosts)))
        least = min(least, hosts, key=cost)
        hosts *= 2
    return Option(trial.name, trial.run(least))


def _too_slow(trial: _Trial, confidence: float) -> Option:
    runs = [run for run in trial.found.values() if run is not None]
    if not runs:
        return Option(trial.name, None, trial.why)
    run = min(runs, key=lambda one: one.seconds_at(confidence))
    why = (
        f"the fastest size tried, {counted(run.machine.hosts, 'host')}, needs "
        f"{amounts.whole_run(run.seconds_at(confidence))}"
    )
    if 2 * run.machine.hosts <= trial.most:
        batch = run.phases[0].forecast.global_batch
        why += f"; more do not help at a batch of {batch:,}: a larger `batch` scales further"
    else:
        why += "; larger ones were not tried (`most_gpus`)"
    return Option(trial.name, run, why)


def _within_budget(trial: _Trial, budget: float) -> Option:
    """The most hosts that a budget pays for; a few may cost more than many, by poorer plans."""
    found: TrainingRun | None = None
    least: TrainingRun | None = None
    lowest = math.inf
    hosts, step = 1, 0
    while hosts <= trial.most:
        run = trial.run(hosts)
        if run is not None and run.usd is None:
            return Option(trial.name, run, f"no price, so no budget: {run.rent}")
        if run is not None and run.usd is not None:
            if run.usd < lowest:
                least, lowest = run, run.usd
            if run.usd <= budget:
                found, step = run, hosts
            elif found is not None or run.usd > _RISING * lowest:
                break
        hosts *= 2
    if found is None:
        why = trial.why if least is None else f"costs {amounts.money(lowest)}"
        return Option(trial.name, least, why)
    while (higher := next_above(step)) < min(hosts, trial.most + 1):
        run = trial.run(higher)
        if run is None or run.usd is None or run.usd > budget:
            break
        found, step = run, higher
    return Option(trial.name, found)


def _order(option: Option, fastest: bool) -> tuple[int, float]:
    """Those that do first, cheapest (or fastest) first; without a price behind them."""
    run = option.run
    if run is None:
        return 3, 0.0
    if option.why_not:
        return 2, run.seconds
    if run.usd is None:
        return 1, run.seconds
    return 0, run.seconds if fastest else run.usd


def _scaling(trial: _Trial, option: Option) -> tuple[CurvePoint, ...]:
    """Powers of two around its hosts, whose plans are the good ones, and itself."""
    middle = 1 << round(math.log2(option.hosts))
    counts = sorted({option.hosts, *(int(middle * factor) for factor in _CURVE)})
    points = []
    for hosts in counts:
        if 1 <= hosts <= trial.most:
            run = option.run if hosts == option.hosts else trial.run(hosts)
            if run is not None:
                points.append(CurvePoint(hosts, run))
    return tuple(points)


def next_above(hosts: int) -> int:
    """The next host count to try: 4, 5, 6, 7, 8, 10, ...

    >>> next_above(7), next_above(8), next_above(0)
    (8, 10, 1)
    """
    return hosts + 1 if hosts < 4 else hosts + (1 << (hosts.bit_length() - 3))
