"""Sizes of machines as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from plancast.accuracy.report.fitted_table import FittedTable, WrappedText
from plancast.report.training import stands_on
from plancast.textual import bar, count, counted, percent
from plancast.training.amounts import energy, money, whole_run

if TYPE_CHECKING:
    from plancast.training.sizing_result import Option, Sizing


def sizing_tables(sizing: Sizing) -> RenderableType:
    """The whole answer to `size`."""
    asked = []
    if sizing.days is not None:
        asked.append(f"in {whole_run(sizing.days * 86400)}")
        if sizing.confidence != 0.5:
            asked[-1] += f" with {percent(sizing.confidence, 0)}"
    if sizing.budget is not None:
        asked.append(f"for at most {money(sizing.budget)}")
    run = next((option.run for option in sizing.options if option.run is not None), None)
    what = "" if run is None else f"{run.model.name}, {count(run.units)} {unit_of(sizing)} "
    parts: list[RenderableType] = [Text(f"{what}{' and '.join(asked)}", style="bold"), ""]
    best = sizing.best
    if best is not None and best.run is not None:
        parts += [
            Text(
                f"{counted(best.hosts, 'host')} of {best.machine}: "
                + whole_run(best.run.seconds)
                + ("" if best.run.usd is None else f", {money(best.run.usd)}"),
                style="bold green",
            ),
            WrappedText(best.run.phases[0].forecast.strategy, style="cyan"),
            *_cheaper(sizing),
            "",
        ]
    else:
        parts += [Text(why_none(sizing), style="bold red"), ""]
    parts.append(_options(sizing))
    parts += [
        Text(f"{option.machine}: {option.why_not}", style="yellow")
        for option in sizing.options
        if option.why_not
    ]
    parts += [
        Text(f"{option.machine} is not ranked by cost: {option.run.rent}", style="yellow")
        for option in sizing.options
        if option.run is not None and option.run.usd is None and not option.why_not
    ]
    if sizing.curve:
        parts += ["", _curve(sizing), ""]
    parts += stands_on(sources(sizing))
    return Group(*parts)


def _cheaper(sizing: Sizing) -> list[RenderableType]:
    found = sizing.cheaper
    if found is None or found.run is None or found.run.usd is None:
        return []
    return [
        WrappedText(
            f"these are the fewest; {found.hosts:,} cost less: {whole_run(found.run.seconds)}, "
            f"{money(found.run.usd)}, {found.run.phases[0].forecast.strategy}",
            style="yellow",
        )
    ]


def unit_of(sizing: Sizing) -> str:
    """What the runs count: tokens or samples."""
    run = next(option.run for option in sizing.options if option.run is not None)
    return run.phases[0].forecast.unit


def why_none(sizing: Sizing) -> str:
    """What to say where no machine keeps date and budget."""
    priced = [
        o.run.usd for o in sizing.options if o.run is not None and o.run.usd and not o.why_not
    ]
    if sizing.budget is not None and priced:
        return (
            f"no machine keeps the budget: the cheapest costs {money(min(priced))}. Ask for a "
            "cheaper price (`--price`) or a later date."
        )
    return "no machine is found that does it; the lines below say why."


def _options(sizing: Sizing) -> FittedTable:
    table = FittedTable()
    table.words("machine", least=11)
    table.numbers("hosts", leaves=6)
    table.numbers("GPUs", "time")
    if sizing.days is not None:
        table.numbers("P(date)")
    table.numbers("cost")
    table.numbers("energy", leaves=4)
    unit = unit_of(sizing) if any(option.run for option in sizing.options) else "tokens"
    table.numbers(f"{unit}/$", leaves=5)
    table.numbers(f"{unit}/kWh", leaves=3)
    table.numbers("MFU", leaves=2)
    table.words("strategy", least=20, leaves=1, style="cyan")
    for option in sizing.options:
        run = option.run
        if run is None:
            table.row(option.machine, "", "", "none fits", style="dim")
            continue
        probability = sizing.probability(option)
        table.row(
            option.machine,
            f"{option.hosts:,}",
            f"{run.machine.devices:,}",
            whole_run(run.seconds),
            *([] if probability is None else [percent(probability, 0)]),
            _cost(sizing, option),
            energy(run.kwh),
            "" if run.units_per_usd is None else count(run.units_per_usd),
            count(run.units_per_kwh),
            percent(run.phases[0].forecast.mfu),
            run.phases[0].forecast.strategy,
            style="bold" if option is sizing.best else "",
        )
    return table


def _cost(sizing: Sizing, option: Option) -> Text:
    usd = None if option.run is None else option.run.usd
    if usd is None:
        return Text("no price", style="yellow")
    over = sizing.budget is not None and usd > sizing.budget
    return Text(money(usd), style="red" if over else "")


def _curve(sizing: Sizing) -> Group:
    """How the first option scales, and where it stops paying."""
    points = sizing.curve
    name = (sizing.best or sizing.options[0]).machine
    table = FittedTable(title=f"More and fewer hosts of {name}")
    table.numbers("hosts", "time")
    table.numbers("cost", leaves=2)
    table.numbers("efficiency")
    table.picture(leaves=1)
    first = points[0]
    for point in points:
        ideal = first.units_per_s * point.hosts / first.hosts
        share = point.units_per_s / ideal
        table.row(
            f"{point.hosts:,}",
            whole_run(point.run.seconds),
            "no price" if point.run.usd is None else money(point.run.usd),
            percent(share),
            Text(bar(min(1.0, share)), style="green"),
        )
    return Group(table, Text(knee_words(sizing), style="dim"))


def knee_words(sizing: Sizing) -> str:
    """Up to how many hosts a doubling pays."""
    knee = sizing.knee
    said = (
        "a doubling never pays here"
        if knee is None
        else f"doubling pays up to {counted(knee, 'host')}"
    )
    if knee == sizing.curve[-1].hosts:
        said += " at least"
    return f"{said} (1.5 times as fast or more)"


def sources(sizing: Sizing) -> list[str]:
    """What the runs stand on: assumptions, prices, power, failures."""
    texts: dict[str, None] = {}
    for option in sizing.options:
        run = option.run
        if run is None:
            continue
        texts.update(dict.fromkeys(run.assumed))
        if not isinstance(run.rent, str):
            told = [f"{quote.of}: {quote}" for quote in run.rent.quotes if quote.kind != "own"]
            texts.update(dict.fromkeys(told))
        texts.update(dict.fromkeys(run.draw.sources))
        if run.reliability is not None:
            texts[run.reliability.sources[0]] = None
    return list(texts)
