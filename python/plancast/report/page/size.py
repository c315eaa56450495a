"""The page of machines that could train a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plancast.report.page import colours
from plancast.report.page.figures import Figure, sizing_figure
from plancast.report.page.frame import Card, Chart, Page, Section, csv_text, script_json
from plancast.report.page.grid import SCRIPTS, Column, Grid
from plancast.report.sizing import knee_words, sources, unit_of, why_none
from plancast.textual import count, percent
from plancast.training.amounts import energy, money, whole_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plancast.training.sizing_result import Sizing
    from plancast.training.training_run import TrainingRun

_COLUMNS = (
    "machine", "hosts", "keeps", "days", "days_low", "days_high", "usd", "kwh", "gpu_hours",
    "strategy", "why_not",
)  # fmt: skip


def sizing_page(sizing: Sizing, title: str, command: str = "") -> Page:
    """The machine to take, all that were tried, and how the best one scales."""
    best = sizing.best
    run = None if best is None else best.run
    page = Page(
        title=title,
        subtitle="" if run is None else run.phases[0].forecast.strategy,
        facts=_asked(sizing),
        cards=_cards(sizing),
        warnings=[] if best is not None else [why_none(sizing)],
        notes=[
            *(f"{o.machine}: {o.why_not}" for o in sizing.options if o.why_not),
            *(
                f"{o.machine} is not ranked by cost: {o.run.rent}"
                for o in sizing.options
                if o.run is not None and o.run.usd is None and not o.why_not
            ),
            *sources(sizing),
        ],
        command=command,
        scripts=SCRIPTS,
    )
    page.sections = [Section("Machines", [_options(sizing)], "machines")]
    if any(o.run is not None and o.run.usd is not None for o in sizing.options):
        chart = Chart.of(
            "Days against dollars",
            sizing_figure(sizing),
            "Bars are 90 % intervals; dashed lines are what was asked for.",
        )
        page.sections.append(Section("Time and cost", [chart], "cost"))
    if sizing.curve:
        name = (sizing.best or sizing.options[0]).machine
        chart = Chart.of(
            f"More and fewer hosts of {name}", curve_figure(sizing), knee_words(sizing)
        )
        page.sections.append(Section("How it scales", [chart], "scaling"))
    page.files = {
        "sizing.json": script_json(sizing.to_dict()).replace("\\u003c", "<"),
        "machines.csv": csv_text(
            _COLUMNS, [[row[name] for name in _COLUMNS] for row in sizing.records()]
        ),
    }
    return page


def _asked(sizing: Sizing) -> list[str]:
    run = next((option.run for option in sizing.options if option.run is not None), None)
    found = [] if run is None else [f"{count(run.units)} {unit_of(sizing)}"]
    if sizing.days is not None:
        found.append(f"in {whole_run(sizing.days * 86400)}")
        found.append(f"with a probability of {percent(sizing.confidence, 0)}")
    if sizing.budget is not None:
        found.append(f"for at most {money(sizing.budget)}")
    return found


def _cards(sizing: Sizing) -> list[Card]:
    best = sizing.best
    if best is None or best.run is None:
        return []
    run: TrainingRun = best.run
    low, high = run.interval
    probability = sizing.probability(best)
    found = [
        Card("take", f"{best.hosts:,} × {best.machine}", f"{run.machine.devices:,} GPUs"),
        Card(
            "time", whole_run(run.seconds), f"90 % between {whole_run(low)} and {whole_run(high)}"
        ),
    ]
    if probability is not None:
        found.append(Card("keeps the date", percent(probability, 0), "by the error of forecasts"))
    bounds = run.usd_interval
    if run.usd is not None and bounds is not None:
        text = f"90 % between {money(bounds[0])} and {money(bounds[1])}"
        found.append(Card("cost", money(run.usd), text))
    forecast = run.phases[0].forecast
    return [
        *found,
        Card("energy", energy(run.kwh)),
        Card("MFU", percent(forecast.mfu), f"{percent(run.useful_share)} of the time trains"),
    ]


def _options(sizing: Sizing) -> Grid:
    options = [option for option in sizing.options if option.run is not None]
    runs = [option.run for option in options if option.run is not None]
    columns = [
        Column("machine", [option.machine for option in options]),
        Column("hosts", [option.hosts for option in options]),
        Column("GPUs", [run.machine.devices for run in runs]),
        Column("time", [run.seconds for run in runs], [whole_run(run.seconds) for run in runs]),
    ]
    if sizing.days is not None:
        chances = [sizing.probability(option) or 0.0 for option in options]
        columns.append(Column("P(date)", chances, [percent(chance, 0) for chance in chances]))
    costs = ["no price" if run.usd is None else money(run.usd) for run in runs]
    columns += [
        Column("cost", [run.usd for run in runs], costs),
        Column("energy", [run.kwh for run in runs], [energy(run.kwh) for run in runs]),
        Column(
            "MFU",
            [run.phases[0].forecast.mfu for run in runs],
            [percent(run.phases[0].forecast.mfu) for run in runs],
        ),
        Column("keeps", ["yes" if sizing.keeps(option) else "no" for option in options]),
        Column("plan", [run.phases[0].forecast.strategy for run in runs]),
    ]
    return Grid(columns)


def curve_figure(sizing: Sizing) -> Figure:
    """Days and dollars by hosts of the machine that is best."""
    points = sizing.curve
    hosts = [point.hosts for point in points]
    data: list[dict[str, Any]] = [
        _line("days", hosts, [point.run.days for point in points], colours.PARTS["compute"], "y")
    ]
    ideal = [points[0].run.days * points[0].hosts / each for each in hosts]
    data.append(_line("days, if it scaled", hosts, ideal, colours.GROUND, "y"))
    data[-1]["line"]["dash"] = "dot"
    usd = [point.run.usd for point in points]
    if all(one is not None for one in usd):
        data.append(_line("dollars", hosts, usd, colours.PARTS["exposed_dp"], "y2"))
    layout = {
        "height": 360,
        "margin": {"l": 8, "r": 16, "t": 8, "b": 8},
        "hovermode": "x unified",
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "xaxis": {
            "type": "log", "title": {"text": "hosts"}, "automargin": True, "tickvals": hosts,
            "ticktext": [f"{each:,}" for each in hosts],
        },
        "yaxis": {"title": {"text": "days"}, "automargin": True, "rangemode": "tozero"},
        "yaxis2": {
            "title": {"text": "dollars"}, "automargin": True, "rangemode": "tozero",
            "overlaying": "y", "side": "right", "showgrid": False, "tickmode": "auto",
            "tickformat": "$,.3~s",
        },
    }  # fmt: skip
    return {"data": data, "layout": layout}


def _line(
    name: str, x: Sequence[int], y: Sequence[float | None], fill: str, axis: str
) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines+markers", "name": name, "x": list(x),
        "y": [None if value is None else float(f"{value:.5g}") for value in y], "yaxis": axis,
        "line": {"color": fill},
    }  # fmt: skip
