"""A whole run: `plancast.train`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from plancast import arguments
from plancast.adapters import fine_tuning_nodes
from plancast.checked import checked
from plancast.errors import InputError
from plancast.forecast import Forecast
from plancast.machine import Machine
from plancast.model import Model
from plancast.planning import DEFAULT_PROFILE, check_nouns, predict
from plancast.progress import Progress, following
from plancast.randomness import Randomness
from plancast.session import Session
from plancast.strategy import Strategy
from plancast.training import amounts
from plancast.training import phases as phase_rules
from plancast.training.best_plan import best_plan
from plancast.training.checkpoints import Checkpoints, state_bytes
from plancast.training.event_run import EventRun, Simulated, simulate
from plancast.training.failures import Failures
from plancast.training.goodput import Costs, best_interval, goodput, waiting_share
from plancast.training.jitter import jittered
from plancast.training.phases import Phase, Settled
from plancast.training.prices import Rent, draw, rent_if_known
from plancast.training.reliability import Reliability
from plancast.training.slow_hosts import Slowed, SlowHosts
from plancast.training.training_run import PhaseRun, TrainingRun

if TYPE_CHECKING:
    from plancast.precision import Types
    from plancast.records import Records

_DEFAULT_FAILURES = "llama3"
_LEAST_USEFUL = 1e-3
# Of all simulated runs together; a million take about a second.
_MOST_EVENTS = 30_000_000


@checked
def train(
    model: Model,
    machine: Machine,
    strategy: Strategy | str = "best",
    *,
    tokens: float | str | None = None,
    samples: float | str | None = None,
    batch: int | None = None,
    ramp: str | None = None,
    phases: Sequence[Phase] | None = None,
    days: float | str | None = None,
    evaluate: str | None = None,
    failures: Failures | str | None = _DEFAULT_FAILURES,
    checkpoints: Checkpoints | str | None = None,
    slow_hosts: SlowHosts | str | None = None,
    randomness: Randomness | None = None,
    simulate_runs: int = 0,
    seed: int = 0,
    price: float | str = "on-demand",
    pue: float | None = None,
    watts: float | None = None,
    dtype: str = "bf16",
    profile: str = DEFAULT_PROFILE,
    cuda_graphs: bool | str = False,
    nodes: Strategy | None = None,
    session: Session | None = None,
    records: Records | None = None,
    progress: Progress = None,
    **types: Unpack[Types],
) -> TrainingRun:
    """Forecasts a whole training run: days, GPU-hours, dollars and kilowatt-hours.

    Every phase is predicted once; the rest is arithmetic (docs/training_runs.md).

    Args:
      model: what is trained.
      machine: where, without spare hosts.
      strategy: a tree, its short form, or `best`: the fastest of a few (`pc.rank` tries all).
      tokens: how many are trained on, or text such as `15T`.
      samples: the same for models without sequences.
      batch: global batch, samples per step; about 4 M tokens by default, unless the strategy
        says `accum`.
      ramp: `START:STEP:TOKENS`, a batch that grows to `batch`.
      phases: parts with batches, sequences or plans of their own.
      days: a date to tell the probability of, or text such as `12 weeks`.
      evaluate: `STEPS:TIME`, such as `1000:2min`: a pause after so many steps.
      failures: `Failures`, or text such as `llama3`, `none` or `gpu=80000h,spares=4`
        (`Failures.parse`); None: nothing fails.
      checkpoints: `Checkpoints`, or text such as `async,store=2TB/s,every=30min`.
      slow_hosts: `SlowHosts`, or text such as `host=5000h,speed=0.8,detect=30min`; None: none.
      randomness: jitter and stragglers of single iterations, simulated for every phase; steps
        then take what they take on average.
      simulate_runs: how many runs to simulate failure by failure, beside the closed form.
      seed: of simulated runs.
      price: dollars per GPU-hour, or `on-demand`, `reserved` or `spot`.
      pue: power usage effectiveness of the site.
      watts: what a GPU draws with its share of the host; by data sheets by default.
      dtype: matmul precision.
      profile: how the framework runs.
      cuda_graphs: launch captured CUDA graphs even if the profile does not.
      nodes: what is trained, as for `pc.rank`, where a plan is `best` or in short form; a tree
        says it itself. What a checkpoint holds goes by it, too.
      session: shared memo; a fresh one by default.
      records: measured kernels to go by (docs/records.md).
      progress: called with plans done and plans in all while `best` is searched; by default a bar.
      types: of what is stored and sent, as for `predict`.

    Raises:
      InputError: an amount, phase or plan that makes no sense, with what would be right.

    >>> run = train(Model.preset("llama3-8b"), Machine.preset("dgx-h100:2"), "tp=2,zero=1,mb=1",
    ...     tokens="100B", batch=512, failures=None)
    >>> run.steps, round(run.seconds / run.steps / run.phases[0].forecast.iteration_time, 9)
    (23842, 1.0)
    """
    check_nouns(model, machine, session)
    total = _total(model, tokens, samples)
    if nodes is not None:
        nodes = fine_tuning_nodes(nodes)
    accumulates = not isinstance(strategy, str) or "accum=" in strategy
    size = arguments.batch(batch)
    usual = Settled(
        name="training",
        amount=0.0,
        batch=size or phase_rules.usual_batch(model.seq),
        seq=model.seq,
        strategy=strategy,
        dtype=arguments.dtype(dtype),
    )
    said: list[str] = []
    if size is None and not accumulates:
        like = ", 4 M tokens as Llama 2 had" if 3e6 < usual.units < 6e6 else ""
        said.append(f"no batch is given: {usual.batch:,} samples a step{like}")
    if session is None:
        session = Session(records=records)
    elif records is not None:
        raise InputError("give `records` to the session: `Session(records=records)`.")
    how: dict[str, Any] = {
        "profile": arguments.word(profile, "profile"),
        "cuda_graphs": cuda_graphs,
        "session": session,
        **types,
    }
    if size is None and accumulates:
        usual = _with_own_batch(model, machine, usual.training(nodes), how)
    settled = phase_rules.settle(list(phases or ()), ramp, model, total, usual)
    settled = [phase.training(nodes) for phase in settled]
    with following(progress, "plans") as tell:
        runs = tuple(_forecasts(model, machine, settled, how, nodes, tell))
    if randomness is not None:
        runs = tuple(
            jittered(model, machine, phase, run, randomness, how)
            for phase, run in zip(settled, runs, strict=True)
        )
    paused = _pauses(evaluate, sum(run.steps for run in runs))
    reliability = _reliability(model, machine, runs, failures, checkpoints)
    if reliability is None:
        said.append("nothing fails, and nothing is saved")
    money: Rent | str = rent_if_known(machine, price)
    run = TrainingRun(
        model=model,
        machine=machine,
        phases=runs,
        paused_s=paused,
        reliability=reliability,
        slowed=_slowed(model, machine, settled, runs, how, slow_hosts, reliability),
        rent=money,
        draw=draw(machine, pue=pue, watts=watts),
        date_s=None if days is None else amounts.seconds(days, "days", unit="d"),
        assumed=tuple(said),
    )
    if simulate_runs:
        count = arguments.whole(simulate_runs, "simulate_runs", 1, 10_000)
        return run.with_simulation(_simulated(run, count, seed))
    return run


def _total(model: Model, tokens: float | str | None, samples: float | str | None) -> float | None:
    """Tokens, or samples of a model without sequences; None: phases say it."""
    if tokens is not None and samples is not None:
        raise InputError("a run is counted in `tokens` or in `samples`, not in both.")
    if model.seq > 0 and samples is not None:
        raise InputError(f"`{model.name}` is trained on tokens; give `tokens` instead of samples.")
    if model.seq <= 0 and tokens is not None:
        raise InputError(f"`{model.name}` has no sequences; give `samples` instead of tokens.")
    value = tokens if tokens is not None else samples
    return (
        None if value is None else amounts.scaled(value, "tokens" if model.seq > 0 else "samples")
    )


def _with_own_batch(model: Model, machine: Machine, usual: Settled, how: dict[str, Any]) -> Settled:
    """The batch that follows from a strategy's `accum`."""
    from dataclasses import replace

    forecast = predict(model, machine, usual.strategy, dtype=usual.dtype, **how)
    if forecast.chosen.get("accum", "1") == "1" and "accum=" not in forecast.strategy:
        return usual
    return replace(usual, batch=forecast.global_batch)


def _forecasts(
    model: Model,
    machine: Machine,
    settled: list[Settled],
    how: dict[str, Any],
    nodes: Strategy | None,
    progress: Callable[[int, int], object] | None,
) -> list[PhaseRun]:
    runs: list[PhaseRun] = []
    found: dict[tuple[int, int, str], Strategy | str] = {}
    for phase in settled:
        here = phase.model(model)
        try:
            if phase.strategy == "best":
                # A ramp keeps the plan of the full batch where it can.
                forecast = _found(here, machine, phase, settled, found, how, nodes, progress)
            else:
                forecast = predict(
                    here, machine, phase.strategy, batch=phase.batch, dtype=phase.dtype, **how
                )
        except InputError as error:
            if len(settled) == 1:
                raise
            raise InputError(f"phase `{phase.name}`: {error}") from None
        runs.append(PhaseRun(phase.name, phase.steps, phase.units, forecast))
    return runs


def _found(
    model: Model,
    machine: Machine,
    phase: Settled,
    settled: list[Settled],
    found: dict[tuple[int, int, str], Strategy | str],
    how: dict[str, Any],
    nodes: Strategy | None,
    progress: Callable[[int, int], object] | None,
) -> Forecast:
    largest = max(
        other.batch
        for other in settled
        if other.strategy == "best" and other.seq == phase.seq and other.dtype == phase.dtype
    )
    key = (largest, phase.seq, phase.dtype)
    if key not in found:
        best = best_plan(
            model, machine, batch=largest, dtype=phase.dtype, nodes=nodes, progress=progress, **how
        )
        found[key] = best.plan
    try:
        return predict(model, machine, found[key], batch=phase.batch, dtype=phase.dtype, **how)
    except InputError:  # more replicas than a small batch has samples: a plan of its own
        return best_plan(model, machine, batch=phase.batch, dtype=phase.dtype, nodes=nodes, **how)


def _pauses(evaluate: str | None, steps: int) -> float:
    """Seconds of all pauses to evaluate."""
    if evaluate is None:
        return 0.0
    every, colon, length = arguments.word(evaluate, "evaluate").partition(":")
    if not colon:
        raise InputError(
            f"`{evaluate[:40]}` says no pause; write STEPS:TIME, such as `1000:2min`: two minutes "
            "after every 1,000 steps."
        )
    return (
        steps // math.ceil(amounts.scaled(every, "evaluate")) * amounts.seconds(length, "evaluate")
    )


def _reliability(
    model: Model,
    machine: Machine,
    runs: Sequence[PhaseRun],
    failures: Failures | str | None,
    checkpoints: Checkpoints | str | None,
) -> Reliability | None:
    if isinstance(failures, str):
        failures = Failures.parse(failures)
    if isinstance(checkpoints, str):
        checkpoints = Checkpoints.parse(checkpoints)
    if failures is None and checkpoints is None:
        return None
    how = checkpoints or Checkpoints()
    last = runs[-1].forecast
    cost = how.cost(state_bytes(model.parameters, last), last, machine)
    mtbf = math.inf if failures is None else failures.mtbf(machine)
    outage = 0.0 if failures is None else failures.outage + cost.load_s
    costs = Costs(mtbf, cost.stall_s, cost.lag_s, outage)
    # Writes do not overlap, and a step is not cut.
    least = max(last.iteration_time, cost.lag_s - cost.stall_s)
    if how.every == "best":
        interval = best_interval(costs, least)
        if math.isinf(interval):
            raise InputError(
                "nothing fails, so no interval of checkpoints is the best; give `every`, such as "
                "`every=30min`."
            )
    else:
        interval = float(how.every)
        if interval < least:
            raise InputError(
                f"a checkpoint every {amounts.whole_run(interval)} is too often: a step takes "
                f"{amounts.whole_run(last.iteration_time)} and writing "
                f"{amounts.whole_run(cost.stall_s + cost.lag_s)}. "
                f"Take {amounts.whole_run(least)} or more, or a faster store."
            )
    waiting = 0.0
    if failures is not None and failures.spares is not None and not costs.never_fails:
        waiting = waiting_share(failures.spares, failures.replaced * failures.repair_s / costs.mtbf)
    shares = goodput(costs, interval, waiting=waiting)
    if shares.useful < _LEAST_USEFUL:
        raise InputError(
            f"the run does not get anywhere: it is interrupted every {amounts.whole_run(mtbf)}, "
            f"saves every {amounts.whole_run(interval)} and needs {amounts.whole_run(outage)} to "
            "go on. Take fewer hosts, a faster store or better failure rates."
        )
    return Reliability(
        failures=failures,
        checkpoints=how,
        cost=cost,
        costs=costs,
        shares=shares,
        sources=tuple([] if failures is None else failures.sources()) + tuple(how.sources(machine)),
    )


def _slowed(
    model: Model,
    machine: Machine,
    settled: list[Settled],
    runs: Sequence[PhaseRun],
    how: dict[str, Any],
    slow_hosts: SlowHosts | str | None,
    reliability: Reliability | None,
) -> Slowed | None:
    """What slow hosts do, by a simulation of the longest phase with one."""
    if isinstance(slow_hosts, str):
        slow_hosts = SlowHosts.parse(slow_hosts)
    if slow_hosts is None:
        return None
    phase, run = max(zip(settled, runs, strict=True), key=lambda pair: pair[1].seconds)
    slow = predict(
        phase.model(model), machine, run.forecast.plan, batch=phase.batch, dtype=phase.dtype,
        what_if=slow_hosts.what_if(machine), **how,
    )  # fmt: skip
    saved = 0.0 if reliability is None else reliability.cost.stall_s + reliability.cost.load_s
    failures = None if reliability is None else reliability.failures
    return Slowed(
        hosts=slow_hosts,
        factor=max(1.0, slow.iteration_time / run.forecast.iteration_time),
        rate=machine.hosts / slow_hosts.host_hours / 3600,
        outage_s=saved + (failures or Failures(host_hours=1.0)).startup,
    )


def _simulated(run: TrainingRun, count: int, seed: int) -> Simulated:
    if run.reliability is None:
        raise InputError("without failures and checkpoints there is nothing to simulate.")
    found = run.reliability
    failures = found.failures
    events = count * (run.busy_s / found.shares.interval_s + found.failures_in(run.seconds))
    if events > _MOST_EVENTS:
        raise InputError(
            f"{count:,} runs have {events:,.0f} checkpoints and failures; simulate fewer runs."
        )
    steps = EventRun(
        found.costs,
        found.shares.interval_s,
        spares=None if failures is None else failures.spares,
        repair=0.0 if failures is None else failures.repair_s,
        replaced=1.0 if failures is None else failures.replaced,
    )
    return simulate(steps, run.busy_s, runs=count, seed=seed)
