"""Rich tables of forecasts and rankings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from plancast.report.knowledge import how_known
from plancast.textual import bar, count, duration, gib, gpus, percent

if TYPE_CHECKING:
    from plancast.forecast import Forecast
    from plancast.ranking import Ranking

# What each part of the breakdown is, and the colour of its bar.
PART_LABELS = {
    "compute": ("kernels", "green"),
    "recompute": ("recomputation", "yellow"),
    "exposed_tp": ("exposed tensor-parallel comm", "cyan"),
    "exposed_dp": ("exposed data-parallel comm", "blue"),
    "exposed_pp": ("exposed pipeline messages", "magenta"),
    "exposed_cp": ("exposed context-parallel comm", "cyan"),
    "exposed_ep": ("exposed expert-parallel comm", "cyan"),
    "exposed_offload": ("exposed copies to and from the host", "magenta"),
    "bubble": ("pipeline bubble", "red"),
    "straggler": ("waiting for slower peers", "red"),
    "launch": ("waiting for the host", "bright_black"),
    "optimizer": ("optimizer step", "green"),
    "other": ("everything else", "white"),
}
# Device classes listed before the rest is summed up.
_MOST_CLASSES = 8


def forecast_tables(forecast: Forecast) -> RenderableType:
    """The whole answer to `predict`."""
    parts: list[RenderableType] = [headline(forecast), "", breakdown_table(forecast), ""]
    parts.append(memory_table(forecast))
    if not forecast.fits and forecast.fit_advice:
        parts.append(Text(forecast.fit_advice, style="bold red"))
    if forecast.chosen:
        parts.append(Text(""))
        parts.append(chosen_text(forecast))
    parts.extend(Text(f"note: {note}", style="dim") for note in forecast.notes)
    parts.extend(Text(f"warning: {warning}", style="yellow") for warning in forecast.warnings)
    return Group(*parts)


def headline(forecast: Forecast) -> RenderableType:
    """Model, machine, plan and the figures that people quote."""
    low, high = forecast.interval
    text = Text()
    text.append(f"{forecast.model}", style="bold")
    text.append(f" on {forecast.machine} ({gpus(forecast.devices)})\n")
    text.append(forecast.strategy or "defaults", style="cyan")
    text.append(f"   batch {forecast.global_batch}, profile {forecast.profile}\n\n", style="dim")
    text.append("iteration  ", style="dim")
    text.append(
        duration(forecast.iteration_time), style="bold green" if forecast.fits else "bold red"
    )
    text.append(f"   90 % between {duration(low)} and {duration(high)}\n", style="dim")
    text.append("rate       ", style="dim")
    text.append(
        f"{count(forecast.units_per_s_per_gpu)} {forecast.unit}/s/GPU   "
        f"{forecast.model_flops_per_s_per_gpu / 1e12:.0f} TFLOP/s/GPU   MFU {percent(forecast.mfu)}"
        f"   HFU {percent(forecast.hfu)}\n"
    )
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
    return text


def breakdown_table(forecast: Forecast) -> Table:
    """Where the time goes, and how each number is known."""
    table = Table(box=box.SIMPLE_HEAD, title="Where the time goes", title_justify="left")
    table.add_column("part", no_wrap=True)
    table.add_column("time", justify="right")
    table.add_column("share", justify="right")
    table.add_column("", min_width=24)
    table.add_column("known by", style="dim")
    total = forecast.iteration_time
    known = how_known(forecast)
    for part, seconds in forecast.breakdown().items():
        if seconds < total * 1e-5:
            continue
        share = seconds / total if total > 0 else 0.0
        label, colour = PART_LABELS[part]
        table.add_row(
            label, duration(seconds), percent(share), Text(bar(share), style=colour), known[part]
        )
    table.add_section()
    table.add_row("iteration", duration(total), percent(1.0), "", "", style="bold")
    return table


def memory_table(forecast: Forecast) -> Table:
    """Peak memory by device class."""
    table = Table(
        box=box.SIMPLE_HEAD,
        title="Peak memory, GiB per GPU (replayed, analytic)",
        title_justify="left",
    )
    table.add_column("devices", no_wrap=True)
    for column in ("GPUs", "weights", "gradients", "optimizer", "activations", "workspace"):
        table.add_column(column, justify="right")
    for column in ("allocated", "reserved", "device"):
        table.add_column(column, justify="right", style="bold" if column == "device" else "")
    table.add_column("of GPU", justify="right")
    entries = forecast.memory
    fullest = max(range(len(entries)), key=lambda i: entries[i].device, default=0)
    shown = set(range(len(entries)))
    if len(entries) > _MOST_CLASSES:
        shown = {*range(_MOST_CLASSES - 2), fullest, len(entries) - 1}
    skipped = 0
    for index, entry in enumerate(entries):
        if index not in shown:
            skipped += 1
            continue
        share = entry.device / forecast.memory_capacity if forecast.memory_capacity else 0.0
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
        table.add_row(
            entry.device_class,
            f"{entry.ranks:,}",
            *(gib(size) for size in sizes),
            Text(percent(share, 0), style="red" if share > 1 else "green"),
        )
    if skipped:
        table.caption = f"{skipped} more device classes between them; --json lists all"
        table.caption_justify = "left"
    return table


def chosen_text(forecast: Forecast) -> Text:
    """What was left open and how it was decided."""
    text = Text("chosen     ", style="dim")
    text.append(", ".join(f"{key}={value}" for key, value in forecast.chosen.items()))
    return text


def ranking_tables(ranking: Ranking, *, top: int) -> RenderableType:
    """The best plans, and what was left out."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("#", justify="right", style="dim")
    table.add_column("strategy", style="cyan", no_wrap=True)
    rate = "samples/s/GPU" if len(ranking) and ranking[0].unit == "samples" else "tok/s/GPU"
    for column in ("iteration", "90 %", "vs best", rate, "MFU", "GiB", "bubble", "comm"):
        table.add_column(column, justify="right", no_wrap=True)
    best = ranking[0].iteration_time if len(ranking) else 0.0
    for position, plan in enumerate(ranking[:top], start=1):
        shares, total = plan.breakdown(), plan.iteration_time
        exposed = sum(value for part, value in shares.items() if part.startswith("exposed_"))
        table.add_row(
            str(position),
            plan.strategy,
            duration(total),
            "−{0[0]:.0%} +{0[1]:.0%}".format([abs(bound / total - 1) for bound in plan.interval]),
            "" if position == 1 else f"+{percent(total / best - 1)}",
            count(plan.units_per_s_per_gpu),
            percent(plan.mfu),
            gib(plan.peak_memory),
            percent(shares["bubble"] / total),
            percent(exposed / total),
            style="bold" if position == 1 else "",
        )
    parts: list[RenderableType] = []
    if len(ranking):
        first = ranking[0]
        heading = Text(f"{first.model}", style="bold")
        heading.append(
            f" on {first.machine} ({gpus(first.devices)}), batch {first.global_batch}", style=""
        )
        parts += [heading, table]
    else:
        parts.append(Text("no plan of the space fits", style="bold red"))
        parts.append(Text("take more hosts, a smaller batch or sequence, or a wider space"))
    took = f"{ranking.evaluated:,} plans simulated in {duration(ranking.seconds)}"
    if ranking.seconds > 0:
        took += f" ({ranking.evaluated / ranking.seconds:,.0f}/s)"
    parts.append(Text(took, style="dim"))
    parts.append(Text(f"space: {ranking.space}", style="dim"))
    for reason, number in sorted(ranking.excluded.items(), key=lambda item: -item[1]):
        parts.append(Text(f"  {number:>7,} left out: {reason}", style="dim"))
    return Group(*parts)
