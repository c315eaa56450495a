"""The page of a whole run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plancast.report.page.figures import Figure, stacked_bars
from plancast.report.page.frame import (
    Card,
    Chart,
    Page,
    Part,
    Section,
    Table,
    csv_text,
    script_json,
)
from plancast.report.remarks import merged, place, setting
from plancast.report.training import shares, sources
from plancast.textual import count, duration, percent
from plancast.training.amounts import energy, money, whole_run
from plancast.training.goodput import goodput

if TYPE_CHECKING:
    from plancast.training.reliability import Reliability
    from plancast.training.training_run import TrainingRun

_FILLS = (
    "#3b82c4", "#8ab6de", "#d9c04f", "#f2a541", "#e07a5f", "#a07cc5", "#a9b1bd",
)  # fmt: skip
# Parts of the goodput, in words, as they are stacked.
_PARTS = {
    "useful": "training", "saving": "saving checkpoints", "repeated": "work done twice",
    "restarting": "restarting", "waiting": "waiting for a host",
}  # fmt: skip
_POINTS = 120
_SPAN = 30.0  # times the interval to either side


def run_page(run: TrainingRun, command: str = "") -> Page:
    """When it is through, for how much, and where the time goes."""
    first = run.phases[0].forecast
    plans = list({p.forecast.strategy: p.forecast for p in run.phases}.values())
    warnings = [text for text, _ in merged([plan.warnings for plan in plans])]
    if not run.fits:
        unfit = next(p.forecast for p in run.phases if not p.forecast.fits)
        warnings.insert(0, f"Does not fit in memory: {unfit.fit_advice}")
    page = Page(
        title=f"{first.model} on {place(first)}, {count(run.units)} {first.unit}",
        subtitle="; ".join(plan.strategy or "defaults" for plan in plans),
        facts=[f"{name} {value}" for name, value in setting(first).items()],
        cards=_cards(run),
        warnings=warnings,
        notes=[*(text for text, _ in merged([p.notes for p in plans])), *sources(run)],
        command=command,
    )
    page.sections = [Section("Where the time goes", _time(run), "time")]
    if run.reliability is not None and not run.reliability.costs.never_fails:
        chart = Chart.of(
            "Time by the interval of checkpoints",
            goodput_figure(run.reliability),
            "The dashed line is the run's own interval.",
        )
        page.sections.append(Section("Checkpoints and failures", [chart], "checkpoints"))
    page.sections.append(Section("Phases", [_phases(run)], "phases"))
    fields = run.to_dict()
    columns = ["name", "steps", "batch", "seq", "strategy", "iteration_time_s", "mfu", "seconds"]
    page.files = {
        "run.json": script_json(fields).replace("\\u003c", "<"),
        "phases.csv": csv_text(columns, [[p[name] for name in columns] for p in fields["phases"]]),
    }
    return page


def _cards(run: TrainingRun) -> list[Card]:
    low, high = run.interval
    found = [
        Card(
            "time",
            whole_run(run.seconds),
            f"90 % between {whole_run(low)} and {whole_run(high)}",
            "" if run.fits else "bad",
        )
    ]
    if run.date_s is not None:
        after = f"that it is through after {whole_run(run.date_s)}"
        found.append(Card("date", percent(run.probability_by(run.date_s), 0), after))
    bounds = run.usd_interval
    if run.usd is None or bounds is None:
        found.append(Card("cost", "unknown", str(run.rent)))
    else:
        text = f"90 % between {money(bounds[0])} and {money(bounds[1])}"
        found.append(Card("cost", money(run.usd), text))
    least, most = run.kwh_interval
    return [
        *found,
        Card("energy", energy(run.kwh), f"90 % between {energy(least)} and {energy(most)}"),
        Card("work", f"{count(run.gpu_hours)} GPU-hours", f"{run.steps:,} steps"),
        Card("useful", percent(run.useful_share), "of the wall time"),
    ]


def time_figure(run: TrainingRun) -> Figure:
    """Shares of the wall time as one bar."""
    parts = _parts(run)
    fills = dict(zip((name for name, _ in parts), _FILLS, strict=False))
    return stacked_bars(
        ["run"],
        {name: [share * 100] for name, share in parts},
        fills,
        {},
        "% of the wall time",
        {name: [whole_run(share * run.seconds)] for name, share in parts},
    )


def _parts(run: TrainingRun) -> list[tuple[str, float]]:
    return [(name, share) for name, share in shares(run) if share > 1e-9]


def _time(run: TrainingRun) -> list[Part]:
    parts = _parts(run)
    rows = [[name, whole_run(share * run.seconds), percent(share)] for name, share in parts]
    return [
        Chart.of("Shares of the wall time", time_figure(run)),
        Table(["part", "time", "share"], rows, bars=[share for _, share in parts]),
    ]


def _phases(run: TrainingRun) -> Table:
    rows = [
        [
            phase.name,
            phase.forecast.strategy,
            f"{phase.steps:,}",
            f"{phase.forecast.global_batch:,}",
            f"{phase.forecast.seq:,}" if phase.forecast.seq else "",
            duration(phase.forecast.iteration_time),
            percent(phase.forecast.mfu),
            whole_run(phase.seconds),
        ]
        for phase in run.phases
    ]
    columns = ["phase", "strategy", "steps", "batch", "sequence", "iteration", "MFU", "time"]
    return Table(columns, rows, (0, 1))


def goodput_figure(found: Reliability) -> Figure:
    """Shares of time by the interval of checkpoints, on a logarithmic axis."""
    own = found.shares.interval_s
    at = [own * _SPAN ** (2 * point / _POINTS - 1) for point in range(_POINTS + 1)]
    curve = [goodput(found.costs, x, waiting=found.shares.waiting) for x in at]
    data: list[dict[str, Any]] = []
    for (name, label), fill in zip(
        _PARTS.items(), ("#3b82c4", "#f2c14e", "#e07a5f", "#a07cc5", "#a9b1bd"), strict=True
    ):
        values = [100 * getattr(one, name) for one in curve]
        if max(values) > 0:
            data.append(
                {
                    "type": "scatter", "mode": "lines", "stackgroup": "time", "name": label,
                    "x": [float(f"{x / 60:.5g}") for x in at],
                    "y": [float(f"{value:.5g}") for value in values],
                    "line": {"width": 0.5, "color": fill}, "fillcolor": fill,
                    "hovertemplate": "%{fullData.name} %{y:.2f} %<extra></extra>",
                }
            )  # fmt: skip
    least = 10 * int(min(100 * one.useful for one in curve) // 10)
    line = {
        "type": "line", "x0": own / 60, "x1": own / 60, "y0": 0, "y1": 1, "yref": "paper",
        "line": {"dash": "dash", "width": 1.5, "color": "#c75146"},
    }  # fmt: skip
    layout = {
        "height": 360,
        "margin": {"l": 8, "r": 16, "t": 8, "b": 8},
        "hovermode": "x unified",
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "xaxis": {
            "type": "log", "title": {"text": "minutes between checkpoints"}, "automargin": True,
            "exponentformat": "none",
        },
        "yaxis": {"title": {"text": "% of the time"}, "range": [least, 100], "automargin": True},
        "shapes": [line],
    }  # fmt: skip
    return {"data": data, "layout": layout}
