"""A whole run as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from plancast.accuracy.report.fitted_table import FittedTable, WrappedText
from plancast.report.remarks import place, remarks
from plancast.textual import change, count, duration, percent
from plancast.training.amounts import data, energy, money, whole_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plancast.training.training_run import TrainingRun

_MOST_PHASES = 12


def run_tables(run: TrainingRun) -> RenderableType:
    """The whole answer to `train`."""
    first = run.phases[0].forecast
    subject = Text(first.model, style="bold")
    subject.append(f" on {place(first)}, {count(run.units)} {first.unit}", style="")
    parts: list[RenderableType] = [subject]
    plans = list(dict.fromkeys(phase.forecast.strategy for phase in run.phases))
    if len(plans) == 1:
        parts.append(WrappedText(plans[0] or "defaults", style="cyan"))
    parts += ["", _figures(run), ""]
    if len(run.phases) > 1:
        parts += [_phases(run, len(plans) > 1), ""]
    random = any(phase.jitter is not None for phase in run.phases)
    if run.useful_share < 1 or run.paused_s > 0 or random:
        parts += [_time(run)]
    if not run.fits:
        advice = next(p.forecast.fit_advice for p in run.phases if not p.forecast.fits)
        parts.append(Text(f"does not fit in memory: {advice}", style="bold red"))
    parts += stands_on(sources(run))
    parts += remarks(list({p.forecast.strategy: p.forecast for p in run.phases}.values()))
    return Group(*parts)


def _figures(run: TrainingRun) -> Text:
    low, high = run.interval
    text = Text()

    def line(name: str, value: str, rest: str, style: str = "") -> None:
        text.append(f"{name:<10}", style="dim")
        text.append(value, style=style)
        text.append(f"   {rest}\n", style="dim")

    line(
        "time",
        whole_run(run.seconds),
        f"90 % between {whole_run(low)} and {whole_run(high)}",
        "bold green" if run.fits else "bold red",
    )
    if run.date_s is not None:
        share = percent(run.probability_by(run.date_s), 0)
        line("date", share, f"that it is through after {whole_run(run.date_s)}")
    line("work", f"{count(run.gpu_hours)} GPU-hours", f"{run.steps:,} steps")
    bounds = run.usd_interval
    if run.usd is None or bounds is None:
        line("cost", "unknown", str(run.rent), "yellow")
    else:
        line(
            "cost",
            money(run.usd),
            f"90 % between {money(bounds[0])} and {money(bounds[1])}",
            "bold",
        )
    least, most = run.kwh_interval
    line("energy", energy(run.kwh), f"90 % between {energy(least)} and {energy(most)}")
    text.rstrip()
    return text


def _phases(run: TrainingRun, own_plans: bool) -> FittedTable:
    table = FittedTable(title="Phases")
    table.words("phase", least=8)
    table.numbers("steps", "batch")
    table.numbers("sequence", leaves=2)
    table.numbers(run.phases[0].forecast.unit, "iteration")
    table.numbers("MFU", leaves=1)
    table.numbers("time")
    if own_plans:
        table.words("strategy", least=20, style="cyan")
    shown = list(run.phases)
    left = len(shown) - _MOST_PHASES
    if left > 0:
        shown = [*shown[: _MOST_PHASES - 2], *shown[-2:]]
    for number, phase in enumerate(shown):
        if left > 0 and number == _MOST_PHASES - 2:
            table.row(f"{left} more")
        forecast = phase.forecast
        table.row(
            phase.name,
            f"{phase.steps:,}",
            f"{forecast.global_batch:,}",
            f"{forecast.seq:,}" if forecast.seq else "",
            count(phase.steps * phase.units),
            duration(forecast.iteration_time),
            percent(forecast.mfu),
            whole_run(phase.seconds),
            *([forecast.strategy] if own_plans else []),
        )
    return table


def _time(run: TrainingRun) -> Group:
    """Where the wall time goes, and what is behind it."""
    table = FittedTable(title="Where the time goes")
    table.words("part")
    table.numbers("time", "share")
    for name, share in shares(run):
        if share > 1e-9:
            table.row(name, whole_run(share * run.seconds), percent(share))
    text = Text()

    def line(name: str, *words: str) -> None:
        text.append(f"{name:<11}", style="dim")
        text.append("".join(words) + "\n")

    found = run.reliability
    if found is not None and not found.costs.never_fails:
        expected = found.failures_in(run.seconds)
        line(
            "failures",
            f"{expected:,.0f} expected, " if expected >= 10 else f"{expected:.2g} expected, ",
            f"one every {whole_run(found.costs.mtbf)}; ",
            f"{whole_run(found.costs.restart)} until it goes on",
        )
    longest = max(run.phases, key=lambda phase: phase.seconds)
    if longest.jitter is not None:
        noise = longest.jitter
        line(
            "jitter",
            f"a step takes {noise.factor:.4g} times as long, ± {percent(noise.deviation)} ",
            f"({noise.samples:,} random ones, seed {noise.seed})",
        )
    if run.slowed is not None:
        slow = run.slowed
        evicted = f"it is evicted after {whole_run(float(slow.hosts.detect))}"
        lasts = f"it lasts {whole_run(float(slow.hosts.lasts))}"
        line(
            "slow hosts",
            f"one every {whole_run(1 / slow.rate)} makes a step {slow.factor:.3g} times as long; ",
            evicted if slow.hosts.evict else lasts,
        )
    if found is not None:
        cost = found.cost
        line(
            "checkpoint",
            f"{data(cost.bytes)} every {whole_run(found.shares.interval_s)}; ",
            f"training stands still for {duration(cost.stall_s)}",
            f", written {duration(cost.lag_s)} later" if cost.lag_s else "",
        )
    if run.simulated is not None and found is not None:
        sim = run.simulated
        line(
            "simulated",
            f"{len(sim.wall_s)} runs with failures: {percent(sim.useful)} useful ",
            f"({change(sim.useful / found.useful - 1)} of the closed form), ",
            f"{whole_run(sim.quantile(0.05))} to {whole_run(sim.quantile(0.95))}",
        )
    return Group(table, text)


def shares(run: TrainingRun) -> list[tuple[str, float]]:
    """Shares of the wall time; they sum to one."""
    steady = sum(phase.steps * phase.forecast.iteration_time for phase in run.phases)
    parts = [("training", min(steady, run.training_s) / run.seconds)]
    if any(phase.jitter is not None for phase in run.phases):
        held = max(run.training_s - steady, 0.0)
        parts.append(("held up by jitter, stragglers", held / run.seconds))
    parts.append(("evaluation", run.paused_s / run.seconds))
    found = run.reliability
    useful = 1.0 if found is None else found.useful
    if run.slowed is not None:
        parts.append(("held up by slow hosts", useful * (1 - run.slowed.useful)))
    if found is not None:
        parts += [
            ("saving checkpoints", found.shares.saving),
            ("work done twice after failures", found.shares.repeated),
            ("noticing failures, restarting", found.shares.restarting),
            ("waiting for a host", found.shares.waiting),
        ]
    return parts


def stands_on(texts: Sequence[str]) -> list[RenderableType]:
    """What prices, powers and rates come from, each once, in the end."""
    table = Table.grid(padding=(0, 1))
    for text in dict.fromkeys(texts):
        table.add_row(Text("-", style="dim"), Text(text, style="dim"))
    return [Text("stands on", style="dim"), table] if texts else []


def sources(run: TrainingRun) -> list[str]:
    """Prices, powers and rates with their sources, and what was left open."""
    texts = list(run.assumed)
    if not isinstance(run.rent, str):
        texts += [f"{quote.of}: {quote}" for quote in run.rent.quotes if quote.kind != "own"]
    texts += run.draw.sources
    if run.reliability is not None:
        texts += run.reliability.sources
    return texts
