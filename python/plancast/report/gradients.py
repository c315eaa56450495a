"""When gradients are sent, as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from plancast.accuracy.report.fitted_table import FittedTable, WrappedText
from plancast.gradient_traffic.traffic import size_text
from plancast.textual import change, duration, percent

if TYPE_CHECKING:
    from plancast.gradient_traffic.forecast import GradientForecast
    from plancast.gradient_traffic.tuning import Tuning


def gradient_tables(
    found: GradientForecast, against: GradientForecast | None = None
) -> RenderableType:
    """The whole answer to `gradients`, and the same with gradients that are sent otherwise."""
    subject = Text(found.model, style="bold")
    workers = "worker" if found.gpus == 1 else "workers"
    subject.append(f" on {found.gpus:,} {workers} of {found.machine}", style="")
    parts: list[RenderableType] = [subject, "", _figures(found)]
    if against is not None:
        table = FittedTable(title="Against another scheme")
        table.words("sent as", style="cyan")
        table.numbers("iteration", "waits", "speed")
        for one in (against, found):
            table.row(
                str(one.traffic),
                duration(one.iteration_time),
                duration(one.exposed_time),
                f"{against.iteration_time / one.iteration_time:.2f}",
            )
        parts += ["", table]
    if found.tuning is not None:
        parts += ["", *_tuning(found.tuning)]
    return Group(*parts)


def _figures(found: GradientForecast) -> Group:
    plan = f"{found.strategy}, " if found.strategy else ""
    sent = Text("sent as    ", style="dim")
    sent.append(str(found.traffic), style="not dim")
    head = Text("plan       ", style="dim")
    head.append(f"{plan}global batch {found.global_batch:,}", style="not dim")
    return Group(WrappedText(head), WrappedText(sent), _times(found))


def _times(found: GradientForecast) -> Text:
    text = Text()

    def line(name: str, value: str, rest: str = "", style: str = "") -> None:
        text.append(f"{name:<11}", style="dim")
        text.append(value, style=style)
        text.append(f"   {rest}\n" if rest else "\n", style="dim")

    line(
        "iteration",
        duration(found.iteration_time),
        f"{found.samples_per_s:,.4g} samples/s",
        "bold green",
    )
    line(
        "alone",
        duration(found.alone_time),
        f"without gradients to send: efficiency {percent(found.efficiency)}",
    )
    line("waits", duration(found.exposed_time), "for gradients that computation does not hide")
    line(
        "gradients",
        f"{found.gradient_bytes / 1e6:,.4g} MB",
        f"in {found.messages:,} messages, {found.parts:,} parts; at most "
        f"{found.most_in_flight / 1e6:,.3g} MB in flight",
    )
    beside = f", {found.bucket_bytes / 1e6:,.4g} MB of it for buckets" if found.bucket_bytes else ""
    line("memory", f"{found.peak_memory / 1e9:,.4g} GB", f"of a worker{beside}")
    if found.copies_time > 0:
        line("copies", duration(found.copies_time), "of gradients into buckets, back, and casts")
    text.rstrip()
    return text


def _tuning(tuned: Tuning) -> list[RenderableType]:
    rows: list[RenderableType] = []
    table = FittedTable(title="Tuned")
    table.words("", "sent as", style="cyan")
    table.numbers("iteration", "against best")
    table.row("default", str(tuned.default), duration(tuned.default_time), change(tuned.loss))
    table.row("best", str(tuned.best), duration(tuned.best_time), "")
    rows.append(table)
    for knob in ("bucket", "partition", "credit"):
        along = tuned.along(knob)
        if len(along) < 2:
            continue
        curve = FittedTable(title=f"By {knob}, the rest as best")
        curve.numbers(knob, "iteration", "against best")
        for value, time in along:
            style = "bold" if value == getattr(tuned.best, knob) else ""
            curve.row(
                _named(knob, value), duration(time), change(time / tuned.best_time - 1), style=style
            )
        rows += ["", curve]
    return rows


def _named(knob: str, value: int) -> str:
    if knob == "credit" and value <= 1:
        return "one part" if value else "one to each"
    if value == 0:
        return "each tensor" if knob == "bucket" else "whole"
    return size_text(value) if value % 1024 == 0 else f"{value / 1e6:,.4g}MB"
