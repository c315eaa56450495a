"""The page of one plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from plancast.causal import causal_mfu
from plancast.errors import InputError
from plancast.report.knowledge import beyond_kernels, how_known
from plancast.report.page.figures import memory_bars, memory_course, part_bars, shown_rows
from plancast.report.page.frame import (
    Card,
    Chart,
    Page,
    Part,
    Raw,
    Section,
    Table,
    Words,
    csv_text,
    script_json,
)
from plancast.report.page.grid import SCRIPTS
from plancast.report.page.machine import machine_parts
from plancast.report.page.modules import icicle, mean_seconds, module_seconds
from plancast.report.page.roofline import bandwidths, kernel_points, roofline
from plancast.report.page.slices import (
    MOST_TASKS,
    Lane,
    end_of,
    lanes,
    stage_parts,
    task_count,
    with_timeline,
)
from plancast.report.page.timeline import pipeline_figure
from plancast.report.remarks import place, setting
from plancast.report.tables import PART_LABELS
from plancast.textual import count, duration, gib, percent

if TYPE_CHECKING:
    from plancast.forecast import Forecast

Stages = Sequence[Mapping[str, float]]
# Device classes that one can choose in a menu, and points of a course of memory.
_MOST_CHOICES = 12
_POINTS = 600
_MOST_TENSORS = 12


def forecast_page(forecast: Forecast, command: str = "") -> Page:
    """What a forecast says, drawn."""
    detailed = with_timeline(forecast)
    found = lanes(detailed) if detailed is not None else []
    end = end_of(found)
    stages = [stage_parts(lane, end) for lane in found]
    change = f", what if {forecast.what_if}" if forecast.what_if else ""
    page = Page(
        title=f"{forecast.model} on {place(forecast)}{change}",
        subtitle=forecast.strategy or "defaults",
        facts=[f"{name} {value}" for name, value in setting(forecast).items()],
        chosen=[f"{name}={value}" for name, value in forecast.chosen.items()],
        cards=cards(forecast),
        warnings=warnings(forecast),
        notes=forecast.notes,
        command=command,
        scripts=SCRIPTS,
    )
    page.sections = [
        Section("Where the time goes", time_parts(forecast, found, stages), "time"),
        Section("Memory", memory_parts(forecast, detailed or forecast), "memory"),
    ]
    if found:
        page.sections[1:1] = [Section("The pipeline over time", pipeline_parts(found), "pipeline")]
        page.sections.append(Section("Module by module", module_parts(found, stages), "modules"))
    else:
        text = (
            f"This plan has {task_count(forecast):,} tasks on the devices that stand for others, "
            f"and pages draw up to {MOST_TASKS:,}; `--trace FILE` writes them all for "
            "ui.perfetto.dev."
        )
        page.sections.insert(1, Section("The pipeline over time", [Words(text)], "pipeline"))
    if detailed is not None:
        page.sections += [
            Section("The machine", parts, "machine")
            for parts in [machine_parts(forecast, found)]
            if parts
        ]
    kernels = kernel_parts(forecast)
    if kernels:
        page.sections.append(Section("Kernels", kernels, "kernels"))
    page.files = saved(forecast, found, stages)
    return page


def cards(forecast: Forecast) -> list[Card]:
    """The figures that people quote."""
    low, high = forecast.interval
    share = forecast.peak_memory / forecast.memory_capacity if forecast.memory_capacity else 0.0
    parts, total = forecast.breakdown(), forecast.iteration_time or 1.0
    exposed = sum(value for part, value in parts.items() if part.startswith("exposed_"))
    found = [
        Card(
            "iteration",
            duration(forecast.iteration_time),
            f"90 % between {duration(low)} and {duration(high)}",
        ),
        Card(
            "memory",
            f"{gib(forecast.peak_memory)} GiB",
            f"{percent(share, 0)} of {gib(forecast.memory_capacity)} GiB, "
            + ("fits" if forecast.fits else "does not fit"),
            "good" if forecast.fits else "bad",
        ),
        Card(
            f"{forecast.unit}/s/GPU",
            count(forecast.units_per_s_per_gpu),
            f"{forecast.model_flops_per_s_per_gpu / 1e12:.0f} TFLOP/s/GPU",
        ),
        Card("MFU", percent(forecast.mfu), mfu_beside(forecast)),
        Card("pipeline bubble", percent(parts["bubble"] / total), duration(parts["bubble"])),
        Card("exposed communication", percent(exposed / total), duration(exposed)),
    ]
    cost = forecast.to_dict()["cost"]
    if cost["usd_per_iteration"]:
        energy = cost["kwh_per_iteration"]
        found.append(
            Card(
                "cost of a step",
                f"${cost['usd_per_iteration']:,.4g}",
                f"{energy:,.3g} kWh" if energy else "",
            )
        )
    known = forecast.knowledge()
    if known:
        first = max(known, key=lambda name: known[name])
        rest = [f"{percent(v, 0)} {n}" for n, v in known.items() if n != first and v > 0.005]
        found.append(Card(f"kernels {first}", percent(known[first], 0), ", ".join(rest)))
    return found


def mfu_beside(forecast: Forecast) -> str:
    """What stands beside the MFU that counts whole squares of attention."""
    causal = causal_mfu(forecast)
    counted = "" if causal is None else f"{percent(causal)} causal, "
    return f"{counted}HFU {percent(forecast.hfu)}"


def warnings(forecast: Forecast) -> list[str]:
    """What has to be said with the figures, most important first."""
    said = []
    if forecast.what_if:
        said.append(f"What if {forecast.what_if}: this is not the plan as it is.")
    if not forecast.fits and forecast.fit_advice:
        said.append(forecast.fit_advice)
    return [*said, *forecast.warnings]


def time_parts(forecast: Forecast, found: Sequence[Lane], stages: Stages) -> list[Part]:
    """The breakdown, and of every device class."""
    total = forecast.iteration_time or 1.0
    known = how_known(forecast)
    rows, bars = [], []
    for part, seconds in forecast.breakdown().items():
        if seconds < total * 1e-5:
            continue
        label, _ = PART_LABELS[part]
        rows.append([label, duration(seconds), percent(seconds / total), known[part]])
        bars.append(seconds / total)
    rows.append(["iteration", duration(forecast.iteration_time), percent(1.0), ""])
    bars.append(0.0)
    parts: list[Part] = [Table(["part", "time", "share", "known by"], rows, (0, 3), bars)]
    beyond = beyond_kernels(forecast)
    if beyond:
        parts.append(Words(f"Software: {beyond}.", "note"))
    if found:
        drawn = shown_rows(len(found))
        parts.append(
            Chart.of(
                "Time of a GPU by device class, as simulated",
                part_bars([found[at].device_class for at in drawn], [stages[at] for at in drawn]),
                "Communication is what no kernel covers; waiting is for other stages, for "
                "slower peers or for the host." + _left_out(len(found) - len(drawn)),
            )
        )
    return parts


def pipeline_parts(found: Sequence[Lane]) -> list[Part]:
    """The timeline."""
    return [
        Chart.of(
            "Passes and communication of every device class",
            pipeline_figure(found),
            "Neighbouring micro-batches have two shades of a colour. Draw over a stretch of time "
            "to zoom in, click twice to zoom out."
            + _left_out(len(found) - len(shown_rows(len(found)))),
        )
    ]


def memory_parts(forecast: Forecast, detailed: Forecast) -> list[Part]:
    """Peaks by class, the course of memory, and what is alive at the peak."""
    if not forecast.memory:
        return [Words("This plan was not simulated.")]
    parts: list[Part] = [Chart.of("Peak memory by device class", memory_bars(forecast))]
    try:
        fullest = detailed.memory.fullest.device_class
        names = [entry.device_class for entry in detailed.memory]
        chosen = [fullest, *[name for name in names if name != fullest][: _MOST_CHOICES - 1]]
        figures = {
            name: memory_course(detailed.memory.timeline(name, max_points=_POINTS))
            for name in chosen
        }
        reasons = detailed.memory.explain()
    except InputError as error:
        return [*parts, Words(str(error), "note")]
    parts.append(Chart("Live memory over the iteration", figures, menu="of"))
    rows = [
        [t.name, t.kind, gib(t.bytes, 2), f"{t.copies:,}", f"{t.bytes_each / 2**20:,.1f}"]
        for t in reasons.tensors[:_MOST_TENSORS]
    ]
    rest = sum(t.bytes for t in reasons.tensors[_MOST_TENSORS:])
    if rest:
        rows.append(
            [f"{len(reasons.tensors) - _MOST_TENSORS} smaller ones", "", gib(rest, 2), "", ""]
        )
    shares = [t.bytes / max(1, reasons.memory.device) for t in reasons.tensors[:_MOST_TENSORS]]
    parts += [
        Raw("<h3>Alive at the peak</h3>"),
        Words(f"Of {reasons.memory.device_class}, the fullest.", "note"),
        Table(
            ["what", "kind", "GiB", "copies", "MiB each"], rows, (0, 1), [*shares, 0.0][: len(rows)]
        ),
    ]
    return parts


def module_parts(found: Sequence[Lane], stages: Stages) -> list[Part]:
    """The icicle: the mean over GPUs, or of one class."""
    each = [module_seconds(lane, parts) for lane, parts in zip(found, stages, strict=True)]
    figures = {"all GPUs": icicle(mean_seconds(found, each), "mean over GPUs")}
    if len(found) > 1:
        for lane, seconds in list(zip(found, each, strict=True))[:_MOST_CHOICES]:
            figures[lane.device_class] = icicle(seconds, lane.device_class)
    return [
        Chart(
            "Time by module, op and pass, as simulated",
            figures,
            "Click a box to make it the whole width.",
        )
    ]


def kernel_parts(forecast: Forecast) -> list[Part]:
    """Roofline and bandwidths of the plan's distinct kernels."""
    points = kernel_points(forecast)
    parts: list[Part] = []
    roofs = roofline(forecast, points)
    if roofs is not None:
        parts.append(
            Chart.of(
                "Products against the roofs of the data sheet",
                roofs,
                "A point is a distinct kernel, the larger the longer it takes once; bytes are the "
                "least that it reads and writes.",
            )
        )
    moved = bandwidths(forecast, points)
    if moved is not None:
        parts.append(Chart.of("Kernels that only move memory", moved))
    return parts


def saved(forecast: Forecast, found: Sequence[Lane], stages: Stages) -> dict[str, str]:
    """What can be saved from the page."""
    files = {
        "forecast.json": script_json(forecast.to_dict()).replace("\\u003c", "<"),
        "breakdown.csv": csv_text(["part", "seconds"], list(forecast.breakdown().items())),
        "memory.csv": csv_text(
            _MEMORY, [[getattr(entry, name) for name in _MEMORY] for entry in forecast.memory]
        ),
    }
    if found:
        rows = [
            [lane.device_class, lane.ranks, part, seconds]
            for lane, parts in zip(found, stages, strict=True)
            for part, seconds in parts.items()
        ]
        files["stages.csv"] = csv_text(["device_class", "gpus", "part", "seconds"], rows)
    return files


_MEMORY = (
    "device_class", "ranks", "parameters", "gradients", "optimizer", "activations", "workspace",
    "allocated", "rounding", "fragmentation", "reserved", "nccl", "context", "device", "host",
)  # fmt: skip


def _left_out(number: int) -> str:
    return f" {number} device classes in the middle are left out." if number > 0 else ""
