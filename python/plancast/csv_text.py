"""Rows of CSV text; what is none is an InputError with its place."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from plancast.errors import InputError

# A cell has at most 128 KiB, by Python's csv; no line of a table has as many of those.
_LONGEST_LINE = 4 << 20
_LINE = re.compile(r"[^\r\n]*+(?:\r\n?|\n)|[^\r\n]++")


def lines(text: str, path: str | Path) -> Iterator[str]:
    """The lines of a text with their ends, one after another: no copy of the text is made.

    >>> list(lines("a,b\\r\\n1,2", "x.csv"))
    ['a,b\\r\\n', '1,2']
    """
    for number, found in enumerate(_LINE.finditer(text), start=1):
        if found.end() - found.start() > _LONGEST_LINE:
            raise InputError(f"{path}:{number} is longer than {_LONGEST_LINE >> 20} MiB.")
        yield found[0]


def rows(text: str, path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Every row with the line where it ends.

    >>> list(rows("a,b\\n1,2\\n", "x.csv"))
    [(1, ['a', 'b']), (2, ['1', '2'])]
    """
    reader = csv.reader(lines(text, path))
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
