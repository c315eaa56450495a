"""The page of the one question: the plan, how sure its forecast is, and how it is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plancast.report.choice import is_told
from plancast.report.page.frame import (
    Card,
    Page,
    Part,
    Raw,
    Section,
    Table,
    Words,
    csv_text,
    script_json,
)
from plancast.report.page.predict import forecast_page
from plancast.textual import change, count, duration, gib, html, percent

if TYPE_CHECKING:
    from plancast.choice import Choice
    from plancast.forecast import Forecast

_TONES = {"high": "good", "low": "bad"}
_ALTERNATIVES = ("strategy", "iteration_time_s", "slower", "peak_memory_bytes", "trades")


def choice_page(choice: Choice, command: str = "") -> Page:
    """The answer in cards, what else there is, then the plan as `predict` draws it."""
    best = choice.best
    if best is None:
        return _nothing(choice, command)
    page = forecast_page(best, command)
    page.title = f"The plan for {best.model} on {choice.machine.name}"
    page.cards = _cards(choice, best)
    page.warnings = [text for text in page.warnings if not is_told(text, choice.confidence)]
    page.notes = [*choice.said, *page.notes]
    answer = [
        Section("How sure that is", _sure(choice), "sure"),
        Section("How it is run", _launch(choice), "launch"),
    ]
    if choice.others:
        answer.insert(1, Section("Alternatives", [_others(choice)], "alternatives"))
    page.sections = [*answer, *page.sections]
    fields = choice.to_dict()
    page.files = {
        "choice.json": script_json(fields).replace("\\u003c", "<"),
        "alternatives.csv": csv_text(
            _ALTERNATIVES, [[one[name] for name in _ALTERNATIVES] for one in fields["alternatives"]]
        ),
        **page.files,
    }
    return page


def _cards(choice: Choice, best: Forecast) -> list[Card]:
    from plancast.causal import causal_mfu
    from plancast.training.amounts import money, whole_run

    low, high = best.interval
    causal = causal_mfu(best)
    room = choice.headroom / best.memory_capacity if best.memory_capacity else 0.0
    found = [
        Card("step", duration(best.iteration_time), _between(duration(low), duration(high))),
        Card(
            f"{best.unit}/s",
            count(best.units_per_s_per_gpu * best.devices),
            f"{count(best.units_per_s_per_gpu)} a GPU",
        ),
        Card("MFU", percent(best.mfu), "" if causal is None else f"{percent(causal)} causal"),
        Card(
            "memory",
            f"{gib(best.peak_memory)} GiB",
            f"of {gib(best.memory_capacity)} a GPU, {percent(room, 0)} of headroom",
            "good",
        ),
    ]
    run = choice.run
    if run is not None:
        ends = (whole_run(one) for one in run.interval)
        found.append(Card("time", whole_run(run.seconds), _between(*ends)))
        bounds = run.usd_interval
        if run.usd is None or bounds is None:
            found.append(Card("cost", "unknown", str(run.rent)))
        else:
            found.append(Card("cost", money(run.usd), _between(*map(money, bounds))))
    sure = choice.confidence
    if sure is not None:
        found.append(Card("confidence", sure.grade, "", _TONES.get(sure.grade, "")))
    return found


def _between(low: str, high: str) -> str:
    return f"90 % between {low} and {high}"


def _sure(choice: Choice) -> list[Part]:
    sure = choice.confidence
    if sure is None:
        return []
    rows = [
        [name if not at else "", text]
        for name, texts in (
            ("measured", sure.measured),
            ("extrapolated", sure.extrapolated),
            ("not in it", sure.not_modelled),
        )
        for at, text in enumerate(texts)
    ]
    return [Table(["", "what the forecast stands on"], rows, (0, 1))]


def _others(choice: Choice) -> Table:
    rows = [
        [
            other.forecast.strategy,
            duration(other.forecast.iteration_time),
            change(other.slower),
            gib(other.forecast.peak_memory),
            other.trades,
        ]
        for other in choice.others
    ]
    return Table(["plan", "step", "slower", "GiB", "what it trades"], rows, (0, 4))


def _launch(choice: Choice) -> list[Part]:
    where = f"written to {choice.file}" if choice.file else "`--launch FOLDER/` writes it"
    return [
        Words(f"The argument file of {choice.framework}, {where}:"),
        Raw(f"<pre>{html(choice.launch_config())}</pre>"),
        Words("On every host:"),
        Raw(f"<pre>{html(choice.command())}</pre>"),
    ]


def _nothing(choice: Choice, command: str) -> Page:
    from plancast.report.choice import of_plan

    nearest, parts = choice.nearest, list[Part]()
    cards = []
    if nearest is not None:
        need, have = nearest["peak_memory_bytes"], nearest["memory_capacity_bytes"]
        cards = [
            Card("needs", f"{gib(need)} GiB", f"of {gib(have)} a GPU", "bad"),
            Card("too much", f"{gib(need - have)} GiB", "a GPU", "bad"),
        ]
        parts.append(Words(of_plan(nearest["advice"])))
    would = choice.would_fit or ("fewer parameters or shorter sequences",)
    rows = [[text] for text in would]
    return Page(
        title=f"No plan of {choice.model.name} fits on {choice.machine.name}",
        subtitle="" if nearest is None else f"nearest: {nearest['strategy']}",
        cards=cards,
        notes=choice.said,
        sections=[
            Section("What it lacks", parts, "lacks"),
            Section("What would do", [Table(["change"], rows)], "would"),
        ],
        command=command,
        files={"choice.json": script_json(choice.to_dict()).replace("\\u003c", "<")},
    )
