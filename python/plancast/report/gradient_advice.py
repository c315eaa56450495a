"""What advice on gradients is worth, as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from plancast.accuracy.report.fitted_table import FittedTable
from plancast.gradient_traffic.traffic import size_text
from plancast.textual import change, duration

if TYPE_CHECKING:
    from plancast.gradient_traffic.advice import GradientAdvice


def advice_tables(found: GradientAdvice) -> RenderableType:
    """Advice by what it gives, then the cards of a host."""
    now = found.rows[0].forecast
    head = Text(now.model, style="bold")
    head.append(f" on {now.gpus:,} workers of {now.machine}, {now.strategy}, {now.traffic}", "")
    table = FittedTable()
    table.words("advice", least=20)
    table.numbers("iteration", "waits", "efficiency", "samples/s", "speed")
    for row in found.rows:
        one = row.forecast
        table.row(
            row.advice if one.tuning is None else f"{row.advice}: {_size(one.traffic.bucket)}",
            duration(one.iteration_time),
            duration(one.exposed_time),
            f"{one.efficiency:.3f}",
            f"{one.samples_per_s:,.4g}",
            change(row.speed - 1) if row is not found.rows[0] else "",
        )
    parts: list[RenderableType] = [head, "", table]
    if len(found.cards) > 1:
        cards = FittedTable(title="Cards of the host")
        cards.numbers("cards", "samples/s", "efficiency", "with accum=4")
        for count, one, kept in found.cards:
            cards.row(
                f"{count:,}",
                f"{one.samples_per_s:,.4g}",
                f"{one.efficiency:.3f}",
                f"{kept.efficiency:.3f}",
            )
        most = found.cards[-1][0]
        said = (
            f"all {most} are worth it: each doubling gives 1.5 times as much or more"
            if found.worth == most
            else f"more than {found.worth} are not worth it: twice as many give less than 1.5 times"
        )
        parts += ["", cards, Text(said)]
    return Group(*parts)


def _size(bucket: int) -> str:
    return size_text(bucket) if bucket else "each tensor"
