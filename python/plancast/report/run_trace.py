"""Rich tables of a profiled run beside its forecast."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from plancast.accuracy.report.fitted_table import FittedTable
from plancast.textual import duration, percent

if TYPE_CHECKING:
    from plancast.run_traces.compare import RunComparison
    from plancast.run_traces.rows import Row

_WORDS = {
    "product": "products",
    "attention": "attention",
    "attention.bwd": "attention, backward",
    "convolution": "convolutions",
    "norm": "norms",
    "elementwise": "elementwise and fused",
    "copy": "copies and casts",
    "optimizer": "optimizer",
    "loss": "loss",
    "other": "kernels of unknown names",
}
_MOST_PRODUCTS = 8
_MOST_COLLECTIVES = 12
# A difference that is worth a sentence: of the iteration, and of what differs.
_MATTERS, _DIFFERS = 0.01, 0.05


def comparison_tables(comparison: RunComparison) -> RenderableType:
    """Classes of kernels, collectives and gaps; products that differ most; where it is slow."""
    forecast, run_s = comparison.forecast, comparison.run_s
    whole = run_s or forecast.simulated_time
    beyond = duration(forecast.iteration_time - forecast.simulated_time)
    many = {0: "Collectives", 1: "1 iteration"}.get(
        comparison.iterations, f"{comparison.iterations} iterations"
    )
    table = FittedTable(title=f"{many} of {comparison.source} beside the forecast")
    table.words("what")
    table.numbers("kernels", leaves=1)
    table.numbers("forecast", "run", "differs")
    table.numbers("of the run", leaves=2)
    for row in comparison.classes:
        _add(table, row, _WORDS.get(row.kind, row.what), whole)
    table.section()
    for row in comparison.collectives[:_MOST_COLLECTIVES]:
        _add(table, row, row.what, whole)
    if len(comparison.collectives) > _MOST_COLLECTIVES:
        table.row(f"and {len(comparison.collectives) - _MOST_COLLECTIVES} more collectives")
    table.section()
    for part in (comparison.exposed, comparison.idle):
        if part is not None:
            _add(table, part, part.what, whole)
    parts: list[RenderableType] = [table]
    if run_s is not None:
        table.row(
            "the iteration",
            "",
            duration(forecast.iteration_time),
            duration(run_s),
            _differs(run_s / forecast.iteration_time),
            "",
        )
        parts.append(
            Text(
                f"Parts as simulated; {beyond} of the forecast are what runs of its software take "
                "beyond them.",
                style="dim",
            )
        )
    if comparison.products:
        parts += ["", _products(comparison.products, whole)]
    parts += ["", *map(Text, where_slow(comparison))]
    return Group(*parts)


def _products(rows: tuple[Row, ...], whole: float) -> FittedTable:
    table = FittedTable(title="Products, those that differ most first")
    table.words("product")
    table.numbers("kernels", leaves=1)
    table.numbers("forecast", "run", "differs")
    table.numbers("of the run", leaves=2)
    for row in rows[:_MOST_PRODUCTS]:
        _add(table, row, row.what, whole)
    if len(rows) > _MOST_PRODUCTS:
        table.row(f"and {len(rows) - _MOST_PRODUCTS} more")
    return table


def _add(table: FittedTable, row: Row, what: str, whole: float) -> None:
    counts = (
        f"{row.run_count:,}"
        if row.forecast_count == row.run_count
        else (f"{row.forecast_count:,} / {row.run_count:,}")
    )
    table.row(
        what,
        "" if not row.forecast_count and not row.run_count else counts,
        _time(row.forecast_s),
        _time(row.run_s),
        _differs(row.times),
        percent((row.run_s or 0.0) / whole),
    )


def _time(seconds: float | None) -> str:
    return "none" if seconds is None else duration(seconds)


def _differs(times: float | None) -> str:
    if times is None:
        return ""
    return f"{100 * (times - 1):+.1f} %" if times < 10 else f"{times:.0f} times"


def where_slow(comparison: RunComparison) -> list[str]:
    """Sentences: where the run takes longer than its forecast, largest first."""
    forecast, run_s = comparison.forecast, comparison.run_s
    lines = []
    if run_s is not None:
        low, high = forecast.interval
        side = "inside" if low <= run_s <= high else "outside of"
        own = run_s / forecast.iteration_time - 1
        lines = [f"The iteration takes {_signed(own)} than forecast, {side} the interval."]
    slow = [r for r in comparison.rows() if _is_slow(r, run_s or forecast.simulated_time)]
    if not slow:
        return [*lines, "No kind of kernel and no collective stands out as slow."]
    named = (
        f"{_WORDS.get(row.kind, row.what)} {duration(row.longer_s)}"
        + (f" ({row.times:.2f} times)" if row.times and row.times < 10 else "")
        for row in slow
    )
    return [*lines, "Slower than simulated: " + _listed(named) + "."]


def _is_slow(row: Row, whole: float) -> bool:
    return row.longer_s > _MATTERS * whole and (row.times is None or row.times > 1 + _DIFFERS)


def _signed(own: float) -> str:
    return f"{100 * abs(own):.1f} % {'more' if own > 0 else 'less'}"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)
