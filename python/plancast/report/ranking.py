"""Rich table of a ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from plancast.accuracy.report.fitted_table import FittedTable, WrappedText
from plancast.report.remarks import NO_CHANGE, place, remarks, said, setting
from plancast.textual import count, duration, gib, percent, ranges

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plancast.forecast import Forecast
    from plancast.learned import Learned
    from plancast.ranking import Ranking


def ranking_tables(ranking: Ranking, *, top: int, learned: Learned | None = None) -> RenderableType:
    """The best plans, what has to be said about them, and what was left out.

    `learned`: what the forecasts go by; then also which of the plans to run for more of it.
    """
    plans = ranking[:top]
    parts: list[RenderableType] = []
    if plans:
        first = plans[0]
        heading = Text(first.model, style="bold")
        heading.append(f" on {place(first)}", style="")
        # Of several types, plans may say the same.
        by_time = sorted(ranking, key=lambda plan: plan.iteration_time)
        chances = {id(by_time[tie.position]): tie.probability for tie in ranking.ties}
        table = _plans_table(plans, chances if len(chances) > 1 else {})
        facts = setting(first)
        if len({plan.dtype for plan in plans}) > 1:
            del facts["type"]
        parts += [heading, Text(said(facts), style="dim"), table]
        parts += [*_ties(ranking), *remarks(plans, _numbers)]
        if learned is not None and len(plans) > 1:
            parts.append(WrappedText(_teaches(learned, plans), style="dim"))
    else:
        parts.append(Text("no plan of the space fits", style="bold red"))
        parts += _nearest(ranking)
    if ranking.stopped:
        parts.append(Text(_stopped(ranking), style="bold yellow"))
    parts.append(Text(_decided(ranking), style="dim"))
    parts.append(WrappedText(f"space: {ranking.space}", style="dim"))
    for reason, number in sorted(ranking.excluded.items(), key=lambda item: -item[1]):
        parts.append(WrappedText(f"{number:>7,} left out: {reason}", indent=2, style="dim"))
    return Group(*parts)


def _teaches(learned: Learned, plans: Sequence[Forecast]) -> str:
    """Which of the plans would teach most of all of them, were it run."""
    gains = learned.teaches(plans)
    best = max(range(len(plans)), key=gains.__getitem__)
    return (
        f"a run of {plans[best].strategy} would teach most: the intervals of these plans would be "
        f"{percent(gains[best], 0)} narrower"
    )


def _decided(ranking: Ranking) -> str:
    """How many plans were decided on in which way, and how fast."""
    text = f"{ranking.evaluated:,} plans simulated"
    if ranking.bounded:
        text += f", {ranking.bounded:,} more cannot be among the best (bounds)"
    text += f", in {duration(ranking.seconds)}"
    decided = ranking.evaluated + ranking.bounded + sum(ranking.excluded.values())
    if ranking.seconds > 0:
        text += f" ({decided / ranking.seconds:,.0f}/s)"
    return text


def _stopped(ranking: Ranking) -> str:
    if not ranking.open:  # of several spaces, perhaps
        return "stopped when all plans of this space were decided on"
    text = f"stopped: {ranking.open:,} plans were not decided on and may be better"
    if ranking.bound > 0 and ranking.objective == "time":
        text += f", none below {duration(ranking.bound)}"
    return text


def _nearest(ranking: Ranking) -> list[RenderableType]:
    """What a ranking without a plan has to say instead."""
    if ranking.nearest is None:
        return [Text("none suits the batch and the machine; the reasons stand below")]
    strategy, advice = ranking.nearest["strategy"], ranking.nearest["advice"]
    lines: list[RenderableType] = [WrappedText(f"nearest: {strategy}", style="bold")]
    other = ranking.outside
    if other is None:
        return [*lines, WrappedText(advice)]
    # What fits is known, so no word of more hosts.
    lines.append(WrappedText(advice.removesuffix(f" {NO_CHANGE}")))
    fact = f"{duration(other.iteration_time)}, {gib(other.peak_memory)} GiB"
    lines.append(WrappedText(f"outside of the space fits {other.strategy}: {fact}; widen --space"))
    return lines


def _ties(ranking: Ranking) -> list[RenderableType]:
    """Which plans the errors of forecasts do not tell apart, and the simplest of them."""
    if len(ranking.ties) < 2:
        return []
    positions = sorted(tie.position for tie in ranking.ties)
    simplest = ranking.ties[0]
    text = f"tie within the error of forecasts: {_numbers(positions)}; the simplest of them is "
    return [Text(f"{text}#{simplest.position + 1}", style="dim")]


def _plans_table(plans: Sequence[Forecast], chances: Mapping[int, float]) -> FittedTable:
    table = FittedTable()
    table.numbers("#", style="dim")
    table.words("strategy", least=28, style="cyan")
    several = len({plan.dtype for plan in plans}) > 1
    if several:
        table.words("type")
    rate = "samples/s/GPU" if plans[0].unit == "samples" else "tok/s/GPU"
    table.numbers("iteration")
    for column, leaves in (("90 %", 5), ("vs best", 6), (rate, 4), ("MFU", 3)):
        table.numbers(column, leaves=leaves)
    if chances:
        table.numbers("P(best)", leaves=7)
    table.numbers("GiB")
    table.numbers("bubble", leaves=2)
    table.numbers("comm", leaves=1)
    best = plans[0].iteration_time
    for position, plan in enumerate(plans, start=1):
        shares, total = plan.breakdown(), plan.iteration_time
        exposed = sum(value for part, value in shares.items() if part.startswith("exposed_"))
        table.row(
            str(position),
            plan.strategy,
            *([plan.dtype] if several else []),
            duration(total),
            "−{0[0]:.0%} +{0[1]:.0%}".format([abs(bound / total - 1) for bound in plan.interval]),
            "" if position == 1 else f"+{percent(total / best - 1)}",
            count(plan.units_per_s_per_gpu),
            percent(plan.mfu),
            *([_chance(chances.get(id(plan)))] if chances else []),
            gib(plan.peak_memory),
            percent(shares["bubble"] / total),
            percent(exposed / total),
            style="bold" if position == 1 else "",
        )
    return table


def _chance(probability: float | None) -> str:
    """Of a tie, that it is the best."""
    if probability is None:
        return ""
    return percent(probability, 0) if probability >= 0.01 else "<1 %"


def _numbers(positions: Sequence[int]) -> str:
    return f"#{ranges([position + 1 for position in positions])}"
