"""Tables of pipeline schedules in files, as text of the strategy language.

A file has a column for each of `stage`, `position`, `phase`, `micro_batch` and `chunk`, or a row of
steps for each stage: `F0.0 F1.0 B0.0 B1.0` (phase, micro-batch, chunk; all numbers from 0). A line
before them may say where virtual stages are, with a colon behind: `v:`, `0 1 1 0:`.
"""

from __future__ import annotations

from pathlib import Path

from plancast import csv_text, files
from plancast.errors import InputError

_COLUMNS = ("stage", "position", "phase", "micro_batch", "chunk")
_KEY = "schedule="
# Bytes of a file: 262,144 passes, the most that a plan may have, of three steps on a line each.
_MOST = 12 << 20


def with_tables(plan: str, folder: str | Path | None = None) -> str:
    """A short form, or a space of them, with the contents of files that `schedule=` names.

    Args:
      plan: the short form.
      folder: of the file that says so, where the tables have to be; None: a person said it.

    Raises:
      InputError: a file is not there, or is no table; names the line.

    >>> with_tables("pp=2,schedule=1f1b")
    'pp=2,schedule=1f1b'
    """
    if _KEY not in plan:
        return plan
    return ",".join(_with_table(item.strip(), folder) for item in plan.split(","))


def _with_table(item: str, folder: str | Path | None) -> str:
    if not item.startswith(_KEY):
        return item
    words = (word.strip() for word in item[len(_KEY) :].split("|"))
    return _KEY + "|".join(_read(word, folder) if _is_file(word) else word for word in words)


def _is_file(word: str) -> bool:
    return "/" in word or (" " not in word and word.endswith((".csv", ".txt")))


def _read(word: str, folder: str | Path | None) -> str:
    path = Path(word) if folder is None else files.beside(folder, word, "`schedule`")
    lines = files.read_text(path, most=_MOST).splitlines()
    rows = [
        (number, line.strip())
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    placement = rows.pop(0)[1] + " " if rows and rows[0][1].endswith(":") else ""
    if not rows:
        raise InputError(f"`{path}` has no rows. Write a row of steps for each stage.")
    return placement + (_of_columns if "," in rows[0][1] else _of_rows)(path, rows)


def _of_rows(path: Path, rows: list[tuple[int, str]]) -> str:
    for number, line in rows:
        if set(line) & set(",;|"):
            raise InputError(
                f"`{path}`, line {number}: a row has steps with spaces between them, as in "
                "`F0.0 F1.0 B0.0 B1.0`."
            )
    return ";".join(line for _, line in rows)


def _of_columns(path: Path, rows: list[tuple[int, str]]) -> str:
    header = [name.strip() for name in csv_text.cells(rows[0][1], f"`{path}`, line {rows[0][0]}")]
    if sorted(header) != sorted(_COLUMNS):
        raise InputError(
            f"`{path}`, line {rows[0][0]}: the columns are {', '.join(header)}. Name them "
            f"{', '.join(_COLUMNS)}, in any order, or write a row of steps for each stage."
        )
    stages: dict[int, dict[int, str]] = {}
    for number, line in rows[1:]:
        cells = csv_text.cells(line, f"`{path}`, line {number}")
        if len(cells) != len(header):
            raise InputError(
                f"`{path}`, line {number}: {len(cells)} cells, and there are {len(header)} columns."
            )
        cell = dict(zip(header, (c.strip() for c in cells), strict=True))
        at = {}
        for name in _COLUMNS:
            if name == "phase":
                continue
            if not (cell[name].isascii() and cell[name].isdecimal() and len(cell[name]) < 10):
                raise InputError(
                    f"`{path}`, line {number}: `{name}` is `{cell[name]}`; it is a whole number "
                    "from 0."
                )
            at[name] = int(cell[name])
        row = stages.setdefault(at["stage"], {})
        if at["position"] in row:
            raise InputError(
                f"`{path}`, line {number}: stage {at['stage']} has a step at position "
                f"{at['position']} already."
            )
        if not cell["phase"].isalpha():
            raise InputError(
                f"`{path}`, line {number}: `phase` is `{cell['phase']}`; it is `F` or `B`."
            )
        row[at["position"]] = f"{cell['phase']}{at['micro_batch']}.{at['chunk']}"
    if not stages:
        raise InputError(f"`{path}` has columns and no rows. Write a row for each step.")
    return ";".join(_row(path, stage, stages) for stage in range(_count(path, stages)))


def _count(path: Path, stages: dict[int, dict[int, str]]) -> int:
    missing = next((s for s in range(len(stages)) if s not in stages), None)
    if missing is not None:
        raise InputError(
            f"`{path}` has no step of stage {missing}, and some of stage {max(stages)}. Number "
            "stages from 0 without gaps."
        )
    return len(stages)


def _row(path: Path, stage: int, stages: dict[int, dict[int, str]]) -> str:
    row = stages[stage]
    missing = next((p for p in range(len(row)) if p not in row), None)
    if missing is not None:
        raise InputError(
            f"`{path}`: stage {stage} has no step at position {missing}, and one at position "
            f"{max(row)}. Number positions from 0 without gaps."
        )
    return " ".join(row[position] for position in range(len(row)))
