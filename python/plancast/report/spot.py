"""A run on hosts that come and go, as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from plancast.accuracy.report.fitted_table import FittedTable
from plancast.report.training import stands_on
from plancast.textual import count, counted, percent
from plancast.training.amounts import data, money, whole_run

if TYPE_CHECKING:
    from plancast.training.spot import SpotRun


def spot_tables(run: SpotRun) -> RenderableType:
    """The whole answer to `spot`."""
    outcome = run.outcome
    subject = Text(run.model.name, style="bold")
    subject.append(
        f" on up to {counted(run.trace.most, 'host')} of {run.machine.name}, "
        f"{count(outcome.samples)} samples",
        style="",
    )
    parts: list[RenderableType] = [subject, "", _figures(run), "", _plans(run), _time(run)]
    parts += [Text(f"no price: {text}", style="yellow") for text in unpriced(run)]
    parts += stands_on(sources(run))
    return Group(*parts)


def _figures(run: SpotRun) -> Text:
    outcome = run.outcome
    text = Text()

    def line(name: str, value: str, rest: str = "", style: str = "") -> None:
        text.append(f"{name:<10}", style="dim")
        text.append(value, style=style)
        text.append(f"   {rest}\n" if rest else "\n", style="dim")

    line(
        "time",
        whole_run(outcome.wall_s),
        f"{counted(outcome.restarts, 'restart')}, {count(outcome.lost_samples)} samples done twice",
        "bold green",
    )
    low, high = run.interval
    until = "the trace's end or later" if high is None else whole_run(high)
    line("", f"90 % between {whole_run(low)} and {until}", "", "dim")
    line(
        "goodput",
        percent(run.goodput),
        f"work for a paid host-hour, of {counted(run.reference.hosts, 'host')} that never go",
    )
    if run.usd is not None and run.usd_per_sample is not None:
        line("cost", money(run.usd), f"{money(1000 * run.usd_per_sample)} for 1,000 samples")
    bounds = run.usd_interval
    if bounds is not None:
        most = "unknown" if bounds[1] is None else money(bounds[1])
        line("", f"90 % between {money(bounds[0])} and {most}", "", "dim")
    other = run.dedicated_usd_per_sample
    if other is not None:
        line(
            "dedicated", money(other * outcome.samples), f"{money(1000 * other)} for 1,000 samples"
        )
    worth = f"worth it below {percent(run.goodput)} of the dedicated price"
    if run.wins is None:
        line("verdict", worth)
    else:
        line("verdict", "cheaper" if run.wins else "dearer", worth, "bold")
    text.rstrip()
    return text


def _plans(run: SpotRun) -> FittedTable:
    table = FittedTable(title="Plans")
    table.numbers("hosts", "time")
    table.numbers("samples/s", "of linear")
    table.words("strategy", least=24, style="cyan")
    each = run.reference.rate / run.reference.hosts
    for gear in sorted(run.gears, key=lambda gear: -gear.hosts):
        table.row(
            f"{gear.hosts:,}",
            whole_run(run.outcome.by_gear_s[gear.hosts]),
            f"{gear.rate:,.3g}" if gear.rate < 1000 else count(gear.rate),
            percent(gear.rate / gear.hosts / each),
            gear.strategy,
        )
    return table


def _time(run: SpotRun) -> Group:
    outcome = run.outcome
    table = FittedTable(title="Where the time goes")
    table.words("part")
    table.numbers("time", "share")
    for name, seconds in shares(run):
        table.row(name, whole_run(seconds), percent(seconds / outcome.wall_s))
    text = Text("checkpoint ", style="dim")
    text.append(
        f"{data(run.cost.bytes)} every {whole_run(run.interval_s)}; "
        f"{data(run.moved_bytes)} loaded by restarts of {whole_run(run.restart_s)} each"
    )
    return Group(table, text, Text(""))


def shares(run: SpotRun) -> list[tuple[str, float]]:
    """Seconds of the wall time by what is done."""
    outcome = run.outcome
    parts = [
        ("training that counts", outcome.training_s),
        ("saving checkpoints", outcome.saving_s),
        ("work done twice", outcome.repeated_s),
        ("restarting, loading state", outcome.restarting_s),
        ("waiting for hosts", outcome.waiting_s),
    ]
    return [(name, seconds) for name, seconds in parts if seconds > 1e-9 * outcome.wall_s]


def unpriced(run: SpotRun) -> list[str]:
    """Why a price is not known."""
    return [rent for rent in (run.rent, run.dedicated_rent) if isinstance(rent, str)]


def sources(run: SpotRun) -> list[str]:
    """Where prices and times come from."""
    texts = []
    for rent in (run.rent, run.dedicated_rent):
        if not isinstance(rent, str):
            texts += [f"{quote.of}: {quote}" for quote in rent.quotes if quote.kind != "own"]
    return [*texts, *run.sources]
