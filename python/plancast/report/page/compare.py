"""The page of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plancast.causal import causal_mfu
from plancast.explaining.causes import leading
from plancast.report.compare import letter, sureness
from plancast.report.explanation import signed
from plancast.report.page import colours
from plancast.report.page.figures import LABELS, Figure, part_bars, seconds_scale, stacked_bars
from plancast.report.page.frame import (
    Card,
    Chart,
    Page,
    Part,
    Section,
    Table,
    Words,
    csv_text,
    script_json,
)
from plancast.report.remarks import merged, place, setting
from plancast.textual import GIB, count, duration, gib, percent

if TYPE_CHECKING:
    from plancast.comparison import Comparison, Difference
    from plancast.forecast import Forecast

_ROWS = (
    ("machine", place),
    ("strategy", lambda f: f.strategy or "defaults"),
    ("what if", lambda f: f.what_if),
    ("batch", lambda f: f"{f.global_batch:,}"),
    ("iteration", lambda f: duration(f.iteration_time)),
    ("90 % from", lambda f: duration(f.interval[0])),
    ("90 % to", lambda f: duration(f.interval[1])),
    ("units/s/GPU", lambda f: f"{count(f.units_per_s_per_gpu)} {f.unit}"),
    ("TFLOP/s/GPU", lambda f: f"{f.model_flops_per_s_per_gpu / 1e12:.0f}"),
    ("MFU", lambda f: percent(f.mfu)),
    ("MFU, causal", lambda f: "" if (mfu := causal_mfu(f)) is None else percent(mfu)),
    ("peak memory, GiB", lambda f: gib(f.peak_memory)),
    ("of", lambda f: gib(f.memory_capacity)),
    ("fits", lambda f: "yes" if f.fits else "no"),
)


def comparison_page(comparison: Comparison, command: str = "") -> Page:
    """Plans or machines side by side, and what makes them differ."""
    forecasts = list(comparison)
    letters = [letter(at) for at in range(len(forecasts))]
    models = list(dict.fromkeys(f.model for f in forecasts))
    warnings = []
    for text, positions in merged([f.warnings for f in forecasts]):
        whose = "" if len(positions) == len(forecasts) else ", ".join(map(letter, positions)) + ": "
        warnings.append(f"{whose}{text}")
    page = Page(
        title=f"Plans for {' and '.join(models)}",
        subtitle=", ".join(dict.fromkeys(place(f) for f in forecasts)),
        facts=[f"{name} {value}" for name, value in setting(forecasts[0]).items()],
        cards=[_card(at, f, forecasts[0]) for at, f in enumerate(forecasts)],
        warnings=warnings,
        notes=list(dict.fromkeys(note for f in forecasts for note in f.notes)),
        command=command,
    )
    units = {f.unit for f in forecasts}
    rate = f"{units.pop()}/s/GPU" if len(units) == 1 else ""
    rows = [[label, *(cell(f) for f in forecasts)] for label, cell in _ROWS]
    if rate:
        at = [label for label, _ in _ROWS].index("units/s/GPU")
        rows[at] = [rate, *(count(f.units_per_s_per_gpu) for f in forecasts)]
    wordy = [row for row in rows if any(row[1:])]
    names = [
        f"{name}: {duration(f.iteration_time)}" for name, f in zip(letters, forecasts, strict=True)
    ]
    page.sections = [
        Section("Side by side", [Table(["", *letters], wordy)], "side"),
        Section(
            "Where the time goes",
            [Chart.of("Time by part", part_bars(names, [f.breakdown() for f in forecasts]))],
            "time",
        ),
        Section("What makes them differ", _differences(comparison), "differences"),
        Section(
            "Memory",
            [Chart.of("Peak memory of the fullest GPU", _memory(letters, forecasts))],
            "memory",
        ),
    ]
    page.files = {
        "comparison.json": script_json(comparison.to_dict()).replace("\\u003c", "<"),
        "breakdowns.csv": csv_text(
            ["part", *letters],
            [
                [part, *(f.breakdown()[part] for f in forecasts)]
                for part in forecasts[0].breakdown()
            ],
        ),
    }
    return page


def _card(at: int, forecast: Forecast, base: Forecast) -> Card:
    ratio = forecast.iteration_time / base.iteration_time if base.iteration_time else 1.0
    against = "" if at == 0 else f"{(ratio - 1) * 100:+.1f} % against A, "
    fits = "" if forecast.fits else ", does not fit"
    return Card(
        f"{letter(at)}  {forecast.strategy or 'defaults'}",
        duration(forecast.iteration_time),
        f"{against}MFU {percent(forecast.mfu)}, {gib(forecast.peak_memory)} GiB{fits}",
        "" if forecast.fits else "bad",
    )


def _differences(comparison: Comparison) -> list[Part]:
    parts: list[Part] = []
    for at, difference in enumerate(comparison.differences, start=1):
        name = letter(at)
        parts += [
            Words(f"{name} against A: {difference.reason}"),
            Words(sureness(difference, name), "note"),
            *_causes(difference, name),
            Chart.of(f"{name} against A, part by part", difference_bars(difference)),
        ]
    return parts


def _causes(difference: Difference, name: str) -> list[Part]:
    """A sentence on each cause that matters."""
    total = sum(cause.picoseconds for cause in difference.causes)
    shown = leading(difference.causes, total)
    rows = [[signed(cause.seconds), cause.named(name, "A")] for cause in shown]
    if not rows:
        return []
    rest = total - sum(cause.picoseconds for cause in shown)
    others = len(difference.causes) - len(shown)
    if others:
        rows.append([signed(rest / 1e12), f"{others} smaller causes"])
    return [Table([f"{name} beyond A", "why"], rows, (1,))]


def difference_bars(difference: Difference) -> Figure:
    """What each part adds or saves."""
    shown = [(p, v) for p, v in difference.parts.items() if abs(v) > 1e-3 * abs(difference.seconds)]
    shown.sort(key=lambda item: abs(item[1]))
    scale, unit = seconds_scale(max((abs(v) for _, v in shown), default=1.0))
    trace: dict[str, Any] = {
        "type": "bar",
        "orientation": "h",
        "y": [LABELS[part] for part, _ in shown],
        "x": [float(f"{value * scale:.6g}") for _, value in shown],
        "text": [f"{'+' if v > 0 else '−'}{duration(abs(v))}" for _, v in shown],
        "hoverinfo": "skip",
        "marker": {"color": ["#e07a5f" if value > 0 else "#6fb38a" for _, value in shown]},
    }
    edges = [0.0, *(value * scale for _, value in shown)]
    room = 0.13 * (max(edges) - min(edges))
    low = min(edges) - (room if min(edges) < 0 else 0.0)
    layout = {
        "height": 90 + 28 * max(1, len(shown)),
        "margin": {"l": 8, "r": 12, "t": 8, "b": 8},
        "showlegend": False,
        "xaxis": {
            "title": {"text": f"{unit} beyond A"},
            "automargin": True,
            "range": [low, max(edges) + room],
        },
        "yaxis": {"automargin": True},
    }
    return {"data": [trace], "layout": layout}


def _memory(letters: Sequence[str], forecasts: Sequence[Forecast]) -> Figure:
    kinds = ("parameters", "gradients", "optimizer", "activations", "workspace")
    fullest = [f.memory.fullest if f.memory else None for f in forecasts]
    sizes = {
        kind: [getattr(one, kind, 0) / GIB if one else 0.0 for one in fullest] for kind in kinds
    }
    sizes["overhead"] = [(one.device - one.allocated) / GIB if one else 0.0 for one in fullest]
    texts = {kind: [f"{size:.2f} GiB" for size in each] for kind, each in sizes.items()}
    labels = {"overhead": "allocator, NCCL, context"}
    return stacked_bars(letters, sizes, colours.MEMORY, labels, "GiB per GPU", texts)
