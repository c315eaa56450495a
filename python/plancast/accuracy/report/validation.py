"""Rich tables of a validation."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from plancast.accuracy.report.fitted_table import FittedTable
from plancast.accuracy.report.score_table import ScoreTable
from plancast.accuracy.report.score_tables import score_tables
from plancast.textual import duration

if TYPE_CHECKING:
    from plancast.accuracy.validation.scoreboard import Scoreboard

# Pages have all tables; a terminal those that people look at first.
_SHOWN = (
    "sources",
    "levels",
    "learning",
    "changed",
    "groups",
    "layers",
    "intervals",
    "fits",
    "memory",
    "worst",
    "targets",
)
_MOST_ROWS = {"worst": 12}
_LONGEST_REASON = 120


def scoreboard_tables(board: Scoreboard) -> RenderableType:
    """Sources, order of plans, intervals, memory, worst rows, and what was not predicted."""
    tables = {table.key: table for table in score_tables(board)}
    parts: list[RenderableType] = [_table(tables[key]) for key in _SHOWN if key in tables]
    parts += _not_predicted(board)
    parts += [Text(f"warning: {warning}", style="yellow") for warning in board.warnings]
    return Group(*parts)


def _table(source: ScoreTable) -> FittedTable:
    table = FittedTable(title=source.title)
    hidden = [i for i, name in enumerate(source.head) if name == "strategy"]
    last = len(source.head)
    for index, name in enumerate(source.head):
        if index in hidden:
            continue
        # Tables say what matters most on the left.
        leaves = last - index if index > 2 else None
        if index == 0 or index in source.words:
            table.words(name, leaves=leaves)
        else:
            table.numbers(name, leaves=leaves)
    for row in source.rows[: _MOST_ROWS.get(source.key)]:
        cells = [_cell(cell) for i, cell in enumerate(row) if i not in hidden]
        table.row(*cells, style="bold" if row[0].startswith("**") else "")
    return table


def _cell(text: str) -> Text:
    """Without the marks of Markdown."""
    style = "yellow" if text == "**no**" else ""
    return Text(text.replace("**", "").replace("`", ""), style=style)


def _shorten(reason: str) -> str:
    return reason if len(reason) <= _LONGEST_REASON else reason[: _LONGEST_REASON - 3] + "..."


def _not_predicted(board: Scoreboard) -> list[RenderableType]:
    lines: list[RenderableType] = []
    total = sum(board.unsupported.values())
    predicted = len(board.results) - total
    lines.append(
        Text(
            f"{len(board.results)} rows read, {predicted} predicted in {duration(board.seconds)}, "
            f"{total} not supported{':' if total else ''}"
        )
    )
    shortened: Counter[str] = Counter()
    for reason, number in board.unsupported.items():
        shortened[_shorten(reason)] += number
    for reason, number in shortened.most_common():
        lines.append(Text(f"  {number:>4}  {reason}", style="dim"))
    lines += [Text(f"skipped `{s.path}`: {s.reason}", style="dim") for s in board.skipped]
    return lines
