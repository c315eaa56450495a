"""The answer to the one question as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from plancast.accuracy.report.fitted_table import FittedTable, WrappedText
from plancast.report.margin import Beside
from plancast.report.remarks import NO_CHANGE, place, remarks, said, setting
from plancast.textual import change, count, duration, gib, gpus, percent

if TYPE_CHECKING:
    from plancast.choice import Choice
    from plancast.confidence import Confidence
    from plancast.forecast import Forecast
    from plancast.training.training_run import TrainingRun

_GRADES = {"high": "bold green", "fair": "bold yellow", "low": "bold red"}
_INDENT = 14


def choice_tables(choice: Choice) -> RenderableType:
    """The plan, its figures, how sure they are, what else there is, and how it is run."""
    best = choice.best
    if best is None:
        return _nothing(choice)
    parts: list[RenderableType] = [_subject(choice, best)]
    parts += [Text(said(setting(best)), style="dim"), ""]
    parts += [*_line("plan", best.strategy, "bold cyan"), *_figures(choice, best)]
    if choice.run is not None:
        parts += _run(choice.run)
    sure = choice.confidence
    parts += ["", *_sure(sure), ""]
    if choice.others:
        parts += [_others(choice, best)]
    written = f"wrote {choice.file}" if choice.file else "--launch FOLDER/ writes its file"
    parts += _line("launch", f"{choice.framework}: {written}")
    parts += _line("run it", choice.command(), "cyan")
    for text in choice.said:
        parts.append(WrappedText(f"note: {text}", style="dim"))
    parts += [line for line in remarks([best]) if not is_told(line.plain.partition(": ")[2], sure)]
    looked = f"found in {duration(choice.seconds)}; `plancast rank` lists the others"
    parts.append(WrappedText(looked, style="dim"))
    return Group(*parts)


def is_told(text: str, sure: Confidence | None) -> bool:
    """Whether a warning or note is among the reasons of the grade."""
    if sure is None:
        return False
    extrapolated = "% of the critical path is" in text and "other GPUs" in text
    return extrapolated or text in (*sure.extrapolated, *sure.not_modelled)


def _subject(choice: Choice, best: Forecast) -> Text:
    subject = Text(best.model, style="bold")
    subject.append(f" on {place(best)}", style="")
    return subject


def _line(name: str, value: str, style: str = "") -> list[RenderableType]:
    """A name in the margin and words beside it, however long."""
    return [Beside(name, value, style, margin=_INDENT)]


def _figures(choice: Choice, best: Forecast) -> list[RenderableType]:
    from plancast.causal import causal_mfu

    low, high = best.interval
    total = best.units_per_s_per_gpu * best.devices
    causal = causal_mfu(best)
    mfu = f"MFU {percent(best.mfu)}"
    if causal is not None:
        mfu += f" ({percent(causal)} causal)"
    room = f"{gib(choice.headroom)} of headroom"
    return [
        *_line(
            "rate",
            f"{count(total)} {best.unit}/s, {count(best.units_per_s_per_gpu)} a GPU, {mfu}",
        ),
        *_line(
            "step",
            f"{duration(best.iteration_time)}, 90 % between {duration(low)} and {duration(high)}",
        ),
        *_line(
            "memory",
            f"{gib(best.peak_memory)} of {gib(best.memory_capacity)} GiB a GPU, {room} "
            f"({percent(choice.headroom / best.memory_capacity, 0)})",
        ),
    ]


def _run(run: TrainingRun) -> list[RenderableType]:
    from plancast.training.amounts import money, whole_run

    low, high = run.interval
    unit = run.phases[0].forecast.unit
    lines = _line(
        "time",
        f"{whole_run(run.seconds)} for {count(run.units)} {unit}, 90 % between {whole_run(low)} "
        f"and {whole_run(high)}; {percent(run.useful_share)} of it trains, the rest goes to "
        "failures and checkpoints",
    )
    bounds = run.usd_interval
    if run.usd is None or bounds is None or isinstance(run.rent, str):
        return [*lines, *_line("cost", f"unknown: {run.rent}")]
    quotes = ", ".join(map(str, run.rent.quotes))
    cost = f"{money(run.usd)}, 90 % between {money(bounds[0])} and {money(bounds[1])}; {quotes}"
    return [*lines, *_line("cost", cost)]


def _sure(sure: Confidence | None) -> list[RenderableType]:
    """The reasons, then the grade."""
    if sure is None:
        return []
    lines: list[RenderableType] = []
    for name, reasons in (
        ("measured", sure.measured),
        ("extrapolated", sure.extrapolated or ("nothing",)),
        ("not in it", sure.not_modelled),
    ):
        for number, reason in enumerate(reasons):
            lines += _line("" if number else name, reason, "dim")
    return [*lines, *_line("confidence", sure.grade, _GRADES[sure.grade])]


def _others(choice: Choice, best: Forecast) -> FittedTable:
    table = FittedTable(title="Alternatives")
    table.words("plan", least=28, style="cyan")
    table.numbers("step", "slower", "GiB")
    table.words("what it trades", least=18)
    for other in choice.others:
        table.row(
            other.forecast.strategy,
            duration(other.forecast.iteration_time),
            change(other.slower),
            gib(other.forecast.peak_memory),
            other.trades,
        )
    return table


def _nothing(choice: Choice) -> RenderableType:
    """What is nearest, what it lacks, and the smallest changes."""
    subject = Text(choice.model.name, style="bold")
    subject.append(f" on {choice.machine.name} ({gpus(choice.machine.devices)})", style="")
    parts: list[RenderableType] = [subject, Text("no plan fits", style="bold red")]
    nearest = choice.nearest
    if nearest is not None:
        need, have = nearest["peak_memory_bytes"], nearest["memory_capacity_bytes"]
        parts += _line("nearest", nearest["strategy"], "bold")
        lacks = f"needs {gib(need)} GiB of {gib(have)} a GPU: {gib(need - have)} too much"
        parts += _line("lacks", lacks)
        parts += _line("why", of_plan(nearest["advice"]))
    for number, text in enumerate(choice.would_fit or ("fewer parameters or shorter sequences",)):
        parts += _line("" if number else "would fit", text)
    parts += [WrappedText(f"note: {text}", style="dim") for text in choice.said]
    return Group(*parts)


def of_plan(advice: str) -> str:
    """What the core says of one plan, without its word on others: what would do is known."""
    return advice.removesuffix(f" {NO_CHANGE}")
