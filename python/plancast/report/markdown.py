"""A validation as a Markdown page, for documentation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from plancast import arguments, files
from plancast.accuracy.report.score_table import ScoreTable
from plancast.accuracy.report.score_tables import score_tables
from plancast.errors import InputError
from plancast.textual import change, markdown, percent

if TYPE_CHECKING:
    from plancast.accuracy.validation.scoreboard import Scoreboard

_T = TypeVar("_T")
# {{table sources}}, {{mape korthikanti_table5}}, {{rows}}: filled in by `fill`.
_PLACE = re.compile(r"\{\{\s*(?P<what>[a-z_0-9]+)(\s+(?P<name>[^}\s]+))?\s*\}\}")


def scoreboard_markdown(board: Scoreboard) -> str:
    """The scores of a validation; times are seconds per iteration."""
    parts = ["# Accuracy", fill(_INTRODUCTION, board)]
    for table in score_tables(board):
        parts.append(f"## {table.title}")
        if table.note:
            parts.append(table.note)
        parts.append(_table(table))
    parts += [f"Warning: {markdown(warning)}" for warning in board.warnings]
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = (
    "{{rows}} measured rows read, {{predicted}} predicted, {{scored}} with a measured time."
)


def fill(template: str, board: Scoreboard, folder: str | Path = ".") -> str:
    """Puts tables and figures into a text.

    `{{table NAME}}` is a table with its note, `{{mape SOURCE}}` and the like a score of a
    source, `{{rows}}`, `{{predicted}}`, `{{scored}}` and `{{sources}}` are counts.
    `{{section FILE#HEADING}}` is what stands below a heading of another page, by a path
    from `folder`.
    """
    tables = {table.key: table for table in score_tables(board)}
    counts = {
        "rows": len(board.results),
        "predicted": len(board.results) - sum(board.unsupported.values()),
        "scored": len(board.scored),
        "sources": len(board.sources),
    }

    def value(match: re.Match[str]) -> str:
        what, name = match["what"], match["name"] or ""
        if what == "table":
            return _described(_known(name, tables, "table"))
        if what == "section":
            path, _, heading = name.partition("#")
            return _section(Path(folder) / path, heading)
        if not name:
            return str(_known(what, counts, "count"))
        score = _known(what, _known(name, board.sources, "source"), "score")
        if what == "rows":
            return str(int(score))
        return change(score) if what == "bias" else percent(score)

    return _PLACE.sub(value, template)


def _section(path: Path, heading: str) -> str:
    """The text between a heading and the next."""
    if path.suffix != ".md":
        raise InputError(f"`{path}` is no page (`.md`) whose sections a report can hold.")
    parts = re.split(r"^#+ (.+)$", files.read_text(path), flags=re.MULTILINE)
    sections = {
        name.strip(): text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }
    return _known(heading, sections, f"heading in `{path}`")


def _known(name: str, table: Mapping[str, _T], what: str) -> _T:
    if name not in table:
        raise InputError(f"no {what} `{name}` for the report.{arguments.near(name, list(table))}")
    return table[name]


def _described(table: ScoreTable) -> str:
    return f"{table.note}\n\n{_table(table)}" if table.note else _table(table)


def _table(table: ScoreTable) -> str:
    lines = [_line(table.head)]
    lines.append("|" + "".join("---|" for _ in table.head))
    lines += [_line(row) for row in table.rows]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(markdown(cell) for cell in cells) + " |"
