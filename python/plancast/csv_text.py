"""Rows of CSV text; what is none is an InputError with its place."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from plancast.errors import InputError


def rows(text: str, path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Every row with the line where it ends.

    >>> list(rows("a,b\\n1,2\\n", "x.csv"))
    [(1, ['a', 'b']), (2, ['1', '2'])]
    """
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num} is not CSV: {error}.") from None


def cells(line: str, place: str) -> list[str]:
    """The cells of one line.

    >>> cells('0,"a,b"', "x.csv:1")
    ['0', 'a,b']
    """
    try:
        return next(csv.reader([line]))
    except csv.Error as error:
        raise InputError(f"{place} is not CSV: {error}.") from None
