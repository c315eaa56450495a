"""Rich table of a comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from plancast.report.tables import PART_LABELS
from plancast.textual import count, duration, gib, gpus, percent

if TYPE_CHECKING:
    from plancast.comparison import Comparison
    from plancast.forecast import Forecast

_ROWS: tuple[tuple[str, Callable[[Forecast], str]], ...] = (
    ("global batch", lambda f: f"{f.global_batch:,}"),
    ("iteration", lambda f: duration(f.iteration_time)),
    ("90 % interval", lambda f: f"{duration(f.interval[0])} to {duration(f.interval[1])}"),
    ("rate per GPU", lambda f: f"{count(f.units_per_s_per_gpu)} {f.unit}/s"),
    ("TFLOP/s/GPU", lambda f: f"{f.model_flops_per_s_per_gpu / 1e12:.0f}"),
    ("MFU", lambda f: percent(f.mfu)),
    ("peak memory", lambda f: f"{gib(f.peak_memory)} of {gib(f.memory_capacity)} GiB"),
    ("fits", lambda f: "yes" if f.fits else "no"),
)


def comparison_tables(comparison: Comparison) -> RenderableType:
    """One column a forecast, then a sentence on each difference."""
    forecasts = list(comparison)
    legend = [
        Text.assemble(
            (f"{_letter(i)}  ", "bold"),
            (f"{f.machine} ({gpus(f.devices)})  ", ""),
            (f.strategy or "defaults", "cyan"),
        )
        for i, f in enumerate(forecasts)
    ]
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("")
    for index in range(len(forecasts)):
        table.add_column(_letter(index), justify="right")
    for label, cell in _ROWS:
        table.add_row(label, *(cell(f) for f in forecasts))
    table.add_section()
    breakdowns = [f.breakdown() for f in forecasts]
    for part, (label, colour) in PART_LABELS.items():
        values = [b[part] for b in breakdowns]
        if max(values) <= 1e-5 * max(f.iteration_time for f in forecasts):
            continue
        table.add_row(Text(label, style=colour), *(duration(v) if v > 0 else "" for v in values))
    reasons = [
        Text.assemble(
            (f"{_letter(i)} against A: ", "bold"),
            d.reason,
            (
                f"   (90 % between {_signed(d.interval[0])} and {_signed(d.interval[1])}; faster "
                f"with probability {percent(d.faster_probability, 0)})",
                "dim",
            ),
        )
        for i, d in enumerate(comparison.differences, start=1)
    ]
    if len({f.global_batch for f in forecasts}) > 1:
        reasons.append(
            Text("note: the global batches differ, so the steps are not of equal work", style="dim")
        )
    return Group(*legend, table, *reasons)


def _signed(seconds: float) -> str:
    return f"{'+' if seconds > 0 else '−'}{duration(abs(seconds))}"


def _letter(index: int) -> str:
    return chr(ord("A") + index) if index < 26 else f"#{index + 1}"
