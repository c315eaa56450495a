"""Tables that fit their page: words wrap, then columns leave, and no number is ever cut."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

# Words are not made narrower than this, unless a column asks for it.
_LEAST_WORDS = 16
# Even where every column that may leave has left.
_LEAST_OF_ALL = 8
# After these a word may be continued on the next line; a number's commas are part of it.
_INSIDE = r"(?<=\d),(?=\d{3}(?!\d))"
_LETTERS = rf"[^\s,]*(?:{_INSIDE}[^\s,]*)*"
_WORD = re.compile(rf"{_LETTERS}(?:(?!{_INSIDE}),+\s*|\s+)|(?!$){_LETTERS}$")
# And inside words that are too long for a line.
_PART = re.compile(r"[^=+:|]*[=+:|]|[^=+:|]+")


@dataclass
class _Column:
    name: str
    wraps: bool
    least: int
    leaves: int | None
    style: str
    justify: Literal["left", "right"]
    cells: list[Text]

    def header_width(self, whole: bool) -> int:
        words = [self.name] if whole else self.name.split()
        return max((cell_len(word) for word in words), default=0)

    def full_width(self) -> int:
        return max([self.header_width(whole=True), *map(_width, self.cells)])

    def least_width(self, least: int) -> int:
        if not self.wraps:
            return max([self.header_width(whole=False), *map(_width, self.cells)])
        return min(self.full_width(), max(self.header_width(whole=False), least))


class FittedTable:
    """A table as wide as its page at most: columns of words wrap down to their least width,
    then columns leave, those marked with the lowest number first, and a line says which.

    Numbers keep their width whatever the page is; where they alone are too wide, so is the
    table. `stacked`: instead of leaving, columns continue below beside the first one.
    """

    def __init__(
        self, *, title: str = "", caption: str = "", plain: bool = False, stacked: bool = False
    ) -> None:
        self._title = title
        self._caption = caption
        self._plain = plain
        self._stacked = stacked
        self._columns: list[_Column] = []
        self._sections: list[int] = []
        self._styles: list[str] = []

    def words(
        self, *names: str, least: int = _LEAST_WORDS, leaves: int | None = None, style: str = ""
    ) -> None:
        """Adds columns of text, which wraps after commas and spaces."""
        self._add(names, True, least, leaves, style, "left")

    def numbers(self, *names: str, leaves: int | None = None, style: str = "") -> None:
        """Adds columns of numbers."""
        self._add(names, False, 0, leaves, style, "right")

    def picture(self, name: str = "", *, leaves: int | None = None) -> None:
        """Adds a column of bars."""
        self._add((name,), False, 0, leaves, "", "left")

    def row(self, *cells: str | Text, style: str = "") -> None:
        """Adds a row; absent cells at its end are empty."""
        for index, column in enumerate(self._columns):
            cell = cells[index] if index < len(cells) else ""
            column.cells.append(cell if isinstance(cell, Text) else Text(cell))
        self._styles.append(style)

    def section(self) -> None:
        """Draws a line below the last row."""
        self._sections.append(len(self._styles) - 1)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for columns, left in self._pages(options.max_width):
            tight, widths = _layout(columns, options.max_width, self._plain)
            table = self._table(columns, widths, tight, left, options.max_width)
            width = max(options.max_width, _total(widths, tight, self._plain))
            yield from console.render(table, options.update_width(width))

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        full = _total([c.full_width() for c in self._columns], False, self._plain)
        return Measurement(min(full, options.max_width), min(full, options.max_width))

    def _pages(self, width: int) -> Iterator[tuple[list[_Column], list[str]]]:
        """Columns of each table, and the names of those that had to leave."""
        columns, left = list(self._columns), []
        if not self._stacked:
            while not _fits(columns, width, self._plain):
                leaving = [c for c in columns if c.leaves is not None]
                if not leaving:
                    break
                gone = min(leaving, key=lambda c: (c.leaves or 0, -columns.index(c)))
                columns.remove(gone)
                left += [gone.name] if gone.name else []
            yield columns, left
            return
        page = columns[:1]
        for column in columns[1:]:
            if len(page) > 1 and not _fits([*page, column], width, self._plain):
                yield page, []
                page = columns[:1]
            page.append(column)
        yield page, []

    def _table(
        self,
        columns: Sequence[_Column],
        widths: Sequence[int],
        tight: bool,
        left: Sequence[str],
        width: int,
    ) -> Table:
        said = [self._caption] if self._caption else []
        if left:
            names = ", ".join(c.name for c in self._columns if c.name in left)
            said.append(f"not shown in {width} columns: {names}")
        table = Table(
            box=None if self._plain else box.SIMPLE_HEAD,
            padding=(0, 1) if self._plain or not tight else (0, 0),
            pad_edge=not self._plain,
            title=self._title or None,
            title_justify="left",
            caption="\n".join(said) or None,
            caption_justify="left",
        )
        for column, size in zip(columns, widths, strict=True):
            table.add_column(
                column.name,
                justify=column.justify,
                style=column.style,
                width=size,
                overflow="fold",
            )
        for index, style in enumerate(self._styles):
            cells = [
                wrapped(c.cells[index], size) if c.wraps else c.cells[index]
                for c, size in zip(columns, widths, strict=True)
            ]
            table.add_row(*cells, style=style, end_section=index in self._sections)
        return table

    def _add(
        self,
        names: Sequence[str],
        wraps: bool,
        least: int,
        leaves: int | None,
        style: str,
        justify: Literal["left", "right"],
    ) -> None:
        self._columns += [_Column(n, wraps, least, leaves, style, justify, []) for n in names]


class WrappedText:
    """Words that wrap after commas too, as strategies need it, `indent` cells from the left."""

    def __init__(self, text: str | Text, *, indent: int = 0, style: str = "") -> None:
        self._text = text if isinstance(text, Text) else Text(text, style=style)
        self._indent = indent

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = wrapped(self._text, max(1, options.max_width - self._indent)).split("\n")
        for line in lines:
            yield Text(" " * self._indent) + line


def wrapped(text: Text, width: int) -> Text:
    """The text in lines of at most `width` cells, broken after commas and spaces.

    >>> wrapped(Text("tp=8,pp=16,recompute=full"), 12).plain
    'tp=8,pp=16,\\nrecompute=\\nfull'
    >>> wrapped(Text("of 58,424,320 bytes, 12,345"), 11).plain
    'of\\n58,424,320\\nbytes,\\n12,345'
    """
    if _width(text) <= width:
        return text
    breaks = []
    start = end = 0
    for piece_end in _piece_ends(text.plain, width):
        if end > start and cell_len(text.plain[start:piece_end].rstrip()) > width:
            breaks.append(end)
            start = end
        end = piece_end
    lines = text.divide(breaks)
    for line in lines:
        line.rstrip()
    return Text("\n").join(lines)


def _piece_ends(text: str, width: int) -> Iterator[int]:
    """Where lines may end; a word that is wider than a line ends inside too."""
    for match in _WORD.finditer(text):
        if cell_len(match[0].rstrip()) <= width:
            yield match.end()
            continue
        at = match.start()
        for part in _PART.finditer(match[0]):
            for end in range(width, len(part[0]), width):
                yield at + part.start() + end
            yield at + part.end()


def _layout(columns: Sequence[_Column], width: int, plain: bool) -> tuple[bool, list[int]]:
    """Whether columns stand close together, and the width of each."""
    full = [column.full_width() for column in columns]
    if _total(full, False, plain) <= width:
        return False, full
    least = _LEAST_OF_ALL if not _fits(columns, width, plain) else 0
    widths = [column.least_width(least or column.least) for column in columns]
    spare = width - _total(widths, True, plain)
    # Headers in one line are worth less than words in one.
    for wraps in (True, False):
        while spare > 0:
            wanting = [i for i, c in enumerate(columns) if c.wraps == wraps and widths[i] < full[i]]
            if not wanting:
                break
            for i in wanting[:spare]:
                widths[i] += 1
            spare -= len(wanting[:spare])
    return True, widths


def _fits(columns: Sequence[_Column], width: int, plain: bool) -> bool:
    return _total([c.least_width(c.least) for c in columns], True, plain) <= width


def _total(widths: Sequence[int], tight: bool, plain: bool) -> int:
    """The width of a table, with what stands between its columns."""
    if plain:
        return sum(widths) + 2 * (len(widths) - 1)
    return sum(widths) + len(widths) + 1 + (0 if tight else 2 * len(widths))


def _width(text: Text) -> int:
    return cell_len(text.plain)
