"""Rich tables of explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from plancast.accuracy.report.fitted_table import FittedTable, WrappedText
from plancast.explaining.causes import Cause, leading
from plancast.parts import WORDS
from plancast.report.remarks import merged, place, said, setting
from plancast.textual import duration, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plancast.explaining.alone import Explanation, StageBinding
    from plancast.explaining.difference import ExplainedDifference
    from plancast.explaining.marginal import Marginal
    from plancast.forecast import Forecast

# Stages shown before the rest is left to --json.
_MOST_STAGES = 8
# Of the iteration: what saves less is not worth a line.
_LEAST_SAVED = 0.001
_COLUMNS = {
    "GEMM": ("gemm", "convolution"),
    "attention": ("attention",),
    "memory": ("memory", "optimizer"),
    "slowed": ("slowed",),
    "bubble": ("bubble",),
    "host": ("host",),
}


def explanation_tables(explanation: Explanation) -> RenderableType:
    """What binds each stage, what would bind next, what more of a resource is worth."""
    forecast = explanation.forecast
    parts: list[RenderableType] = [*_head(forecast), ""]
    if not forecast.fits:
        parts.append(Text(f"does not fit: {explanation.advice}", style="bold red"))
    if forecast.iteration_time > 0:
        parts += [
            _stages_table(explanation.stages, forecast.iteration_time),
            _bottlenecks_table(explanation),
            _marginals_table(explanation.marginals),
        ]
    return Group(*parts)


def difference_tables(difference: ExplainedDifference) -> RenderableType:
    """The verdict, one sentence a cause, and where the kernels' part of it is."""
    mine, theirs = difference.forecast, difference.versus
    parts: list[RenderableType] = [*_head(mine)]
    parts.append(Text.assemble(("versus  ", "dim"), _versus(mine, theirs)))
    parts += [WrappedText(theirs.strategy or "defaults", style="cyan"), ""]
    parts.append(
        Text.assemble(
            (difference.verdict, "bold"),
            f": {duration(mine.iteration_time)} instead of {duration(theirs.iteration_time)}",
        )
    )
    parts.append(cause_lines(difference.causes, difference.picoseconds))
    if difference.modules:
        parts.append(_modules_line(difference))
    parts += _stage_lines(difference)
    if mine.global_batch != theirs.global_batch:
        note = "note: the global batches differ, so the steps are not of equal work"
        parts.append(Text(note, style="dim"))
    return Group(*parts)


def cause_lines(
    causes: Sequence[Cause],
    total_ps: int,
    *,
    most: int = 8,
    names: tuple[str, str] = ("this plan", "the other plan"),
) -> FittedTable:
    """A line a cause that matters, and one for all others; the column sums to the difference."""
    table = FittedTable(plain=True)
    table.numbers("")
    table.words("", least=40)
    shown = leading(causes, total_ps, most=most)
    for cause in shown:
        style = "red" if cause.picoseconds > 0 else "green"
        table.row(Text(signed(cause.seconds), style=style), cause.named(*names))
    rest = total_ps - sum(cause.picoseconds for cause in shown)
    if len(shown) < len(causes):
        others = len(causes) - len(shown)
        table.row(Text(signed(rest / 1e12), style="dim"), f"{others} smaller causes (--json lists)")
    return table


def signed(seconds: float) -> str:
    """With its sign.

    >>> signed(-0.0123)
    '−12.3 ms'
    """
    return f"{'+' if seconds > 0 else '−' if seconds < 0 else ''}{duration(abs(seconds))}"


def _head(forecast: Forecast) -> list[RenderableType]:
    subject = Text(forecast.model, style="bold")
    subject.append(f" on {place(forecast)}, {said(setting(forecast))}", style="not bold dim")
    return [subject, WrappedText(forecast.strategy or "defaults", style="cyan")]


def _versus(mine: Forecast, theirs: Forecast) -> str:
    facts = [place(theirs)] if place(mine) != place(theirs) else []
    own = setting(mine)
    facts += [f"{k} {v}" for k, v in setting(theirs).items() if own.get(k) != v]
    if theirs.what_if or mine.what_if:
        facts.append(f"what if {theirs.what_if or 'nothing'}")
    return ", ".join(facts) or "on the same machine"


def _modules_line(difference: ExplainedDifference) -> Text:
    largest = max(map(abs, difference.modules.values()))
    shown = {n: s for n, s in difference.modules.items() if abs(s) >= largest / 50}
    named = ", ".join(f"{name} {signed(seconds)}" for name, seconds in list(shown.items())[:6])
    return Text(f"kernels alone, by module: {named}", style="dim")


def _stage_lines(difference: ExplainedDifference) -> list[RenderableType]:
    """Parts that moved differently in the stages of pipelines that are equally deep."""
    stages = difference.stages
    if not 2 <= len(stages) <= _MOST_STAGES:
        return []
    lines: list[RenderableType] = []
    for part, words in WORDS.items():
        moved = [parts[part] for parts in stages.values()]
        if max(moved) - min(moved) < max(abs(difference.picoseconds), 1) / 10:
            continue
        told = ", ".join(signed(ps / 1e12) for ps in moved)
        lines.append(Text(f"{words}, stage by stage: {told}", style="dim"))
    return lines


def _stages_table(stages: Sequence[StageBinding], total: float) -> FittedTable:
    shown = list(stages)
    if len(stages) > _MOST_STAGES:
        shown = [*stages[: _MOST_STAGES - 1], stages[-1]]
    skipped = len(stages) - len(shown)
    notes = [f"{skipped} more stages between them; --json lists all"] if skipped else []
    notes += [text for text, _ in merged([[stage.words] for stage in stages]) if text]
    table = FittedTable(
        title="What binds each stage (% of the iteration)", caption="\n".join(notes)
    )
    table.words("stage", least=7)
    table.numbers("GPUs", leaves=3)
    table.words("bound by", least=9, style="bold")
    table.numbers("GEMM")
    table.numbers("attention", leaves=4)
    table.numbers("memory", leaves=5)
    table.numbers("slowed", leaves=2)
    table.numbers("comm")
    table.numbers("bubble")
    table.numbers("host", leaves=1)
    for stage in shown:
        exposed = sum(s for name, s in stage.seconds.items() if name.startswith("exposed_"))
        cells = {
            name: sum(stage.seconds.get(key, 0.0) for key in keys)
            for name, keys in _COLUMNS.items()
        }
        order = [*list(cells.values())[:4], exposed, *list(cells.values())[4:]]
        shares = [percent(seconds / total) if seconds > 0 else "" for seconds in order]
        table.row(stage.stage, f"{stage.devices:,}", stage.binding, *shares)
    return table


def _bottlenecks_table(explanation: Explanation) -> FittedTable:
    total = explanation.forecast.iteration_time
    worth = [b for b in explanation.bottlenecks if b.saves >= _LEAST_SAVED * total]
    caption = ""
    if worth and worth[0].next:
        first = worth[0]
        caption = (
            f"Next, without {first.name}: {first.next}; {duration(first.next_iteration_time)} "
            "without both"
        )
    if any(not b.simulated for b in worth):
        taken = "The bubble and unlike stages are taken from the breakdown, not simulated"
        caption += f"{'. ' if caption else ''}{taken}"
    table = FittedTable(title="Bottlenecks: the iteration without each", caption=caption)
    table.words("without")
    table.numbers("iteration", "saves", "share")
    for one in worth:
        share = percent(one.saves / total)
        table.row(one.name, duration(one.iteration_time), duration(one.saves), share)
    return table


def _marginals_table(marginals: Sequence[Marginal]) -> FittedTable:
    table = FittedTable(title="What a tenth more or less is worth")
    table.words("resource", least=10)
    table.numbers("10 % more", "10 % less")
    table.words("how", least=24, style="dim")
    names = dict.fromkeys(marginal.resource for marginal in marginals)
    for name in names:
        own = [marginal for marginal in marginals if marginal.resource == name]
        cells = [next((m for m in own if m.change * sign > 0), None) for sign in (1, -1)]
        remarks = dict.fromkeys(remark for marginal in own for remark in _remarks(marginal))
        table.row(name, *(_worth(cell) for cell in cells), "; ".join(remarks))
    return table


def _worth(marginal: Marginal | None) -> str:
    if marginal is None or marginal.per_ten_percent is None:
        return "?"
    return signed(marginal.per_ten_percent) if marginal.per_ten_percent else "nothing"


def _remarks(marginal: Marginal) -> list[str]:
    sign = "more" if marginal.change > 0 else "less"
    texts = [f"{sign}: {marginal.plan}" if marginal.plan else "", marginal.remark]
    texts.append(f"{sign}: an anomaly, {marginal.anomaly}" if marginal.anomaly else "")
    return [text for text in texts if text]
