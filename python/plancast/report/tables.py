"""Rich tables of forecasts and rankings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from plancast.accuracy.report.fitted_table import FittedTable, WrappedText
from plancast.causal import causal_mfu
from plancast.report.knowledge import beyond_kernels, how_known
from plancast.report.margin import Beside
from plancast.report.remarks import place, remarks, said, setting
from plancast.textual import bar, count, duration, gib, percent

if TYPE_CHECKING:
    from plancast.forecast import Forecast
    from plancast.memory import PeakMemory

# What each part of the breakdown is, and the colour of its bar.
PART_LABELS = {
    "compute": ("compute", "green"),
    "recompute": ("recomputation", "yellow"),
    "exposed_tp": ("exposed tensor-parallel comm", "cyan"),
    "exposed_dp": ("exposed data-parallel comm", "blue"),
    "exposed_pp": ("exposed pipeline messages", "magenta"),
    "exposed_cp": ("exposed context-parallel comm", "cyan"),
    "exposed_ep": ("exposed expert-parallel comm", "cyan"),
    "exposed_offload": ("exposed offload copies", "magenta"),
    "bubble": ("pipeline bubble", "red"),
    "straggler": ("waiting for slower peers", "red"),
    "launch": ("waiting for the host", "bright_black"),
    "optimizer": ("optimizer step", "green"),
    "other": ("everything else", "white"),
}
_MARGIN = 11
# Device classes listed before the rest is summed up.
_MOST_CLASSES = 8


def forecast_tables(forecast: Forecast) -> RenderableType:
    """The whole answer to `predict`."""
    parts: list[RenderableType] = [headline(forecast), "", breakdown_table(forecast), ""]
    parts.append(memory_table(forecast.memory))
    if not forecast.fits and forecast.fit_advice:
        parts.append(Text(forecast.fit_advice, style="bold red"))
    if forecast.chosen:
        parts.append(Text(""))
        parts.append(chosen_text(forecast))
    parts += remarks([forecast])
    return Group(*parts)


def headline(forecast: Forecast) -> RenderableType:
    """Model, machine, plan and the figures that people quote."""
    subject = Text(forecast.model, style="bold")
    subject.append(f" on {place(forecast)}", style="")
    parts: list[RenderableType] = [subject]
    if forecast.what_if:
        parts.append(Text(f"WHAT IF {forecast.what_if}: not the plan as it is", style="bold red"))
    parts.append(WrappedText(forecast.strategy or "defaults", style="cyan"))
    parts += [Text(said(setting(forecast)), style="dim"), "", figures(forecast)]
    return Group(*parts)


def figures(forecast: Forecast) -> RenderableType:
    """The figures that people quote."""
    low, high = forecast.interval
    text = Text()
    text.append("iteration  ", style="dim")
    text.append(
        duration(forecast.iteration_time), style="bold green" if forecast.fits else "bold red"
    )
    text.append(f"   90 % between {duration(low)} and {duration(high)}\n", style="dim")
    text.append("rate       ", style="dim")
    rate = f"{count(forecast.units_per_s_per_gpu)} {forecast.unit}/s/GPU"
    flops = f"{forecast.model_flops_per_s_per_gpu / 1e12:.0f} TFLOP/s/GPU"
    text.append(f"{rate}   {flops}   HFU {percent(forecast.hfu)}\n")
    text.append("MFU        ", style="dim")
    causal = causal_mfu(forecast)
    half = "" if causal is None else f"   {percent(causal)} with attention counted causally"
    text.append(f"{percent(forecast.mfu)}{half}\n")
    text.append("memory     ", style="dim")
    capacity = forecast.memory_capacity
    share = forecast.peak_memory / capacity if capacity > 0 else 0.0
    text.append(
        f"{gib(forecast.peak_memory)} of {gib(capacity)} GiB ({percent(share, 0)})",
        style="" if forecast.fits else "bold red",
    )
    text.append(
        "   fits" if forecast.fits else "   does not fit",
        style="green" if forecast.fits else "bold red",
    )
    beyond = beyond_kernels(forecast)
    return Group(text, Beside("software", beyond, margin=_MARGIN)) if beyond else text


def breakdown_table(forecast: Forecast) -> FittedTable:
    """Where the time goes, and how each number is known."""
    table = FittedTable(title="Where the time goes")
    table.words("part")
    table.numbers("time", "share")
    table.picture(leaves=1)
    table.words("known by", style="dim", leaves=2)
    total = forecast.iteration_time
    known = how_known(forecast)
    for part, seconds in forecast.breakdown().items():
        if seconds < total * 1e-5:
            continue
        share = seconds / total if total > 0 else 0.0
        label, colour = PART_LABELS[part]
        table.row(
            label, duration(seconds), percent(share), Text(bar(share), style=colour), known[part]
        )
    table.section()
    table.row("iteration", duration(total), percent(1.0), style="bold")
    return table


def memory_table(entries: PeakMemory) -> FittedTable:
    """Peak memory by device class."""
    fullest = max(range(len(entries)), key=lambda i: entries[i].device, default=0)
    shown = set(range(len(entries)))
    if len(entries) > _MOST_CLASSES:
        shown = {*range(_MOST_CLASSES - 2), fullest, len(entries) - 1}
    skipped = len(entries) - len(shown)
    more = f"{skipped} more device classes between them; --json lists all" if skipped else ""
    table = FittedTable(title="Peak memory, GiB per GPU (replayed, analytic)", caption=more)
    table.words("devices", least=8)
    table.numbers("GPUs", leaves=4)
    table.numbers("weights", "gradients", "optimizer", "activations")
    table.numbers("workspace", leaves=1)
    table.numbers("allocated", leaves=3)
    table.numbers("reserved", leaves=2)
    table.numbers("device", style="bold")
    table.numbers("of GPU")
    for index, entry in enumerate(entries):
        if index not in shown:
            continue
        share = entries.share(entry)
        sizes = (
            entry.parameters,
            entry.gradients,
            entry.optimizer,
            entry.activations,
            entry.workspace,
            entry.allocated,
            entry.reserved,
            entry.device,
        )
        table.row(
            entry.device_class,
            f"{entry.ranks:,}",
            *(gib(size) for size in sizes),
            Text(percent(share, 0), style="red" if share > 1 else "green"),
        )
    return table


def chosen_text(forecast: Forecast) -> Text:
    """What was left open and how it was decided."""
    text = Text("chosen     ", style="dim")
    text.append(", ".join(f"{key}={value}" for key, value in forecast.chosen.items()))
    return text
