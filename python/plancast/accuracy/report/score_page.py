"""A validation as one self-contained HTML page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING

from plancast.accuracy.report.score_plots import COLOURS, mark, residuals, scatter
from plancast.accuracy.report.score_table import ScoreTable
from plancast.accuracy.report.score_tables import score_tables
from plancast.textual import change, duration, html, percent

if TYPE_CHECKING:
    from plancast.accuracy.validation.scoreboard import Scoreboard

_TITLE = "Forecasts beside measurements"


def scoreboard_page(board: Scoreboard) -> str:
    """Pictures, tables and all rows; nothing in the page is loaded from elsewhere."""
    tables = score_tables(board)
    sources = sorted(board.sources)
    overall = board.overall["row_weighted"]
    summary = f"{len(board.results)} rows read, {len(board.scored)} with a forecast and a time."
    if overall:
        summary += (
            f" Mean error {percent(overall['mape'])}, bias {change(overall['bias'])}, median "
            f"{percent(overall['median'])}."
        )
    body = [f"<h1>{_TITLE}</h1>", f"<p>{summary}</p>", _contents(tables, board)]
    if board.scored:
        body += [
            '<h2 id="scatter">Forecast against measurement</h2>',
            "<p>Points on the line are exact; bars are 90 % intervals. Rest the pointer on a "
            "point for its row, choose sources below.</p>",
            _legend(sources),
            scatter(board.scored, sources),
        ]
    for table in tables:
        body.append(f'<h2 id="{table.key}">{html(table.title)}</h2>')
        if table.key == "sources":
            body.append(residuals(board.scored, sources, "source", lambda r: r.row.source, sources))
        elif table.key.startswith("by_"):
            body.append(_residuals(board, sources, table))
        if table.note:
            body.append(f"<p>{html(table.note)}</p>")
        body.append(_table(table))
    body.append(_rows(board))
    body += [f"<p>Warning: {html(warning)}</p>" for warning in board.warnings]
    folder = resources.files("plancast.accuracy.report")
    style = folder.joinpath("score_page.css").read_text("utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_TITLE}</title>\n<style>\n{style}{_hiding(len(sources))}</style></head>\n"
        f"<body><main>\n{chr(10).join(body)}\n</main></body>\n</html>\n"
    )


def _residuals(board: Scoreboard, sources: Sequence[str], table: ScoreTable) -> str:
    from plancast.accuracy.validation.slices import PROPERTIES, TITLES

    name = table.key.removeprefix("by_")
    order = [row[0] for row in table.rows]
    return residuals(board.scored, sources, TITLES[name], PROPERTIES[name], order)


def _contents(tables: Sequence[ScoreTable], board: Scoreboard) -> str:
    items = [("scatter", "Forecast against measurement")] if board.scored else []
    items += [(table.key, table.title) for table in tables] + [("rows", "All rows")]
    links = "".join(f'<li><a href="#{key}">{html(title)}</a></li>' for key, title in items)
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>'


def _legend(sources: Sequence[str]) -> str:
    """Boxes that hide a source in every picture; the style sheet does it."""
    boxes = "".join(
        f'<label><input type="checkbox" id="show{i}" checked> '
        f'<svg class="sign c{i % COLOURS}" aria-hidden="true" viewBox="0 0 10 10">'
        f"{mark(5, 5, i)}</svg> {html(source)}</label>"
        for i, source in enumerate(sources)
    )
    return f'<fieldset class="legend"><legend>Sources</legend>{boxes}</fieldset>'


def _hiding(sources: int) -> str:
    return "".join(
        f"main:has(#show{i}:not(:checked)) .row.s{i} {{ display: none }}\n" for i in range(sources)
    )


def _table(table: ScoreTable) -> str:
    return html_table(table.title, table.head, table.rows, table.words)


def html_table(
    caption: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    words: Sequence[int] = (),
) -> str:
    """A table whose first column names its rows; the others are numbers unless in `words`."""

    def cell(index: int, text: str) -> str:
        kind = "" if index in words or index == 0 else ' class="n"'
        if index == 0:
            return f'<th scope="row">{_inline(text)}</th>'
        return f"<td{kind}>{_inline(text)}</td>"

    columns = "".join(f'<th scope="col">{html(name)}</th>' for name in head)
    lines = "\n".join(
        f"<tr>{''.join(cell(i, text) for i, text in enumerate(row))}</tr>" for row in rows
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{html(caption)}">'
        f"<table><thead><tr>{columns}</tr></thead>\n<tbody>{lines}</tbody></table></div>"
    )


def _inline(text: str) -> str:
    """Bold and code of Markdown."""
    out = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html(text))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", out)


def _rows(board: Scoreboard) -> str:
    rows = []
    for r in board.results:
        low, high = r.interval or (0.0, 0.0)
        rows.append(
            (
                r.row.row_id,
                r.row.source,
                f"`{r.row.strategy}`" if r.row.strategy else "",
                duration(r.measured) if r.measured else ("out of memory" if r.row.oom else ""),
                duration(r.predicted) if r.predicted else "",
                change(r.error) if r.error is not None else "",
                f"{duration(low)} to {duration(high)}" if r.interval else "",
                {True: "yes", False: "no", None: ""}[r.fits],
                r.unsupported or "; ".join(r.warnings),
            )
        )
    head = (
        "row", "source", "strategy", "measured", "forecast", "error", "90 % interval", "fits",
        "remarks",
    )  # fmt: skip
    return '<h2 id="rows">All rows</h2>' + html_table("All rows", head, rows, (1, 2, 7, 8))
