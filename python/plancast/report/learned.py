"""What was learned from runs, in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from plancast.accuracy.report.fitted_table import FittedTable
from plancast.textual import gib, percent

if TYPE_CHECKING:
    from plancast.learned import Fact, Learned

# A factor is shown where its scale shrank by so much, or it moved by so much of its scale.
_NARROWER, _MOVED = 0.9, 0.3
_PARTS = {
    "part/exposed": "communication that is not hidden",
    "part/bubble": "pipeline bubble",
    "part/launch": "the host's part",
}


def learned_table(learned: Learned) -> RenderableType:
    """Factors that the runs tell of, and runs that contradict the others."""
    runs = "1 run" if len(learned) == 1 else f"{len(learned)} runs"
    table = FittedTable(title=f"Learned from {runs}")
    table.words("what")
    table.numbers("takes", "± before", "± now")
    shown = [f for f in learned.facts() if _tells(f)]
    for fact in shown:
        table.row(
            words_of(fact.name),
            f"{100 * math.expm1(fact.change):+.1f} %",
            percent(fact.before),
            percent(fact.after),
        )
    hidden = len(learned.facts()) - len(shown)
    parts: list[RenderableType] = [table] if shown or not learned.memory else []
    for held in learned.memory_facts():
        more = "more" if held.beyond >= 0 else "less"
        parts.append(
            Text(
                f"{held.software} holds {gib(abs(held.beyond) * held.capacity)} GiB {more} than "
                f"forecast on a device, ± {gib(held.after * held.capacity)} "
                f"(± {gib(held.before * held.capacity)} before)"
            )
        )
    if hidden:
        parts.append(Text(f"{hidden} more factors stay as they were", style="dim"))
    for run, off in learned.doubts():
        side = "longer" if off > 0 else "less"
        parts.append(
            Text(
                f"warning: `{run}` takes {percent(abs(math.expm1(off)), 0)} {side} than the other "
                "runs make likely, and counts for little",
                style="yellow",
            )
        )
    return Group(*parts)


def _tells(fact: Fact) -> bool:
    return fact.after < _NARROWER * fact.before or abs(fact.change) > _MOVED * fact.before


def words_of(name: str) -> str:
    """A factor as people call it.

    >>> words_of("H100-SXM-80GB/gemm/bf16"), words_of("software/fsdp")
    ('H100-SXM-80GB: products in bf16', 'software fsdp beside its level')
    """
    if name in _PARTS:
        return _PARTS[name]
    if name.startswith("software/"):
        return f"software {name.partition('/')[2]} beside its level"
    place, _, kind = name.partition("/")
    if kind.startswith("gemm/"):
        return f"{place}: products in {kind.partition('/')[2]}"
    return f"{place}: {kind}"
