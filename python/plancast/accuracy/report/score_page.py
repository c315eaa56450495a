"""The page of a validation: scores in cards, pictures, tables, and every row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plancast.accuracy.report.score_figures import residuals, scatter
from plancast.accuracy.report.score_table import ScoreTable
from plancast.accuracy.report.score_tables import score_tables
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
from plancast.report.page.grid import SCRIPTS, Column, Grid
from plancast.textual import change, duration, percent

if TYPE_CHECKING:
    from plancast.accuracy.validation.predict_row import RowResult
    from plancast.accuracy.validation.scoreboard import Scoreboard

_TITLE = "Forecasts beside measurements"
_CSV = ("row", "source", "strategy", "measured_s", "forecast_s", "low_s", "high_s", "error", "fits")


def scoreboard_page(board: Scoreboard, command: str = "") -> Page:
    """What forecasts are worth: overall, by source and by property of the plans."""
    sources = sorted(board.sources)
    page = Page(
        title=_TITLE,
        subtitle=f"{len(board.scored):,} of {len(board.results):,} rows have a time and a forecast",
        facts=[f"what if {board.what_if}"] if board.what_if else [],
        cards=_cards(board),
        warnings=board.warnings,
        command=command,
        scripts=SCRIPTS,
    )
    if board.scored:
        chart = Chart.of(
            "Forecast against measured time of an iteration",
            scatter(board.scored, sources),
            "Points on the line are exact; bars are 90 % intervals. Click a source below to hide "
            "it, twice to see it alone.",
        )
        page.sections.append(Section("Forecast against measurement", [chart], "scatter"))
    page.sections += [
        Section(table.title, _parts(board, sources, table), table.key)
        for table in score_tables(board)
    ]
    page.sections.append(Section("All rows", [_rows(board)], "rows"))
    page.files = {
        "scores.json": script_json(board.to_dict()).replace("\\u003c", "<"),
        "rows.csv": csv_text(_CSV, [_saved(result) for result in board.results]),
    }
    return page


def _cards(board: Scoreboard) -> list[Card]:
    overall = board.overall["row_weighted"]
    if not overall:
        return []
    mean = board.overall["source_weighted"]
    by_source = f"of every source alike {percent(mean['mape'])}"
    found = [
        Card("mean error", percent(overall["mape"]), by_source),
        Card("bias", change(overall["bias"]), "of forecasts against measured times"),
        Card("median error", percent(overall["median"]), f"90 % below {percent(overall['p90'])}"),
        Card(
            "in the 90 % interval",
            percent(board.covered / len(board.scored)),
            f"{board.covered:,} of {len(board.scored):,} rows",
        ),
        Card("sources", f"{len(board.sources):,}", f"{len(board.results):,} rows read"),
    ]
    worst = board.worst(1)[0]
    return [*found, Card("farthest off", change(worst.error or 0.0), worst.row.row_id)]


def _parts(board: Scoreboard, sources: list[str], table: ScoreTable) -> list[Part]:
    from plancast.accuracy.validation.slices import PROPERTIES, TITLES

    parts: list[Part] = [Words(_plain(table.note), "note")] if table.note else []
    name = table.key.removeprefix("by_")
    if table.key == "sources":
        figure = residuals(board.scored, sources, lambda r: r.row.source, sources)
        parts.append(Chart.of("Errors by source", figure))
    elif name in PROPERTIES:
        order = [row[0] for row in table.rows]
        figure = residuals(board.scored, sources, PROPERTIES[name], order)
        parts.append(Chart.of(f"Errors by {TITLES[name]}", figure))
    rows = [[_plain(cell) for cell in row] for row in table.rows]
    return [*parts, Table(table.head, rows, (0, *table.words))]


def _plain(text: str) -> str:
    """Without Markdown's signs for bold and code."""
    return text.replace("**", "").replace("`", "")


def _rows(board: Scoreboard) -> Grid:
    rows = board.results

    def times(label: str, values: list[float | None]) -> Column:
        return Column(label, values, ["" if v is None else duration(v) for v in values])

    intervals = [
        "" if r.interval is None else f"{duration(r.interval[0])} to {duration(r.interval[1])}"
        for r in rows
    ]
    measured = Column(
        "measured",
        [r.measured for r in rows],
        [
            duration(r.measured) if r.measured else ("out of memory" if r.row.oom else "")
            for r in rows
        ],
    )
    errors = [r.error for r in rows]
    return Grid(
        [
            Column("row", [r.row.row_id for r in rows]),
            Column("source", [r.row.source for r in rows]),
            Column("strategy", [r.row.strategy for r in rows]),
            measured,
            times("forecast", [r.predicted for r in rows]),
            Column("error", errors, ["" if e is None else change(e) for e in errors]),
            Column("90 % interval", intervals),
            Column("fits", [{True: "yes", False: "no", None: ""}[r.fits] for r in rows]),
            Column("remarks", [r.unsupported or "; ".join(r.warnings) for r in rows]),
        ]
    )


def _saved(result: RowResult) -> list[object]:
    low, high = result.interval or (None, None)
    row = result.row
    return [
        row.row_id, row.source, row.strategy, result.measured, result.predicted, low, high,
        result.error, result.fits,
    ]  # fmt: skip
