"""CSV files read strictly: every column named once, every row as long as the header."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from plancast import csv_text, files
from plancast.errors import InputError
from plancast.textual import brief


class Table:
    """A CSV file with a header."""

    def __init__(self, path: str | Path, *, most: int = files.MOST_TEXT) -> None:
        """`most`: bytes of the file; a larger one is refused."""
        self._path = path
        text = files.read_text(path, most=most)
        self._reader = csv.reader(csv_text.lines(text, f"`{path}`"), strict=True)
        self.columns: list[str] = [name.strip() for name in next(self._lines(), [])]
        for name, count in Counter(self.columns).items():
            if count > 1:
                raise InputError(f"`{path}` has two columns `{name}`. Names must be unique.")

    def rows(self) -> Iterator[Cells]:
        """The rows under the header; blank lines are none."""
        for values in self._lines():
            if not values:
                continue
            place = f"`{self._path}`:{self._reader.line_num}"
            if len(values) != len(self.columns):
                raise InputError(
                    f"{place}: the row has {len(values)} values and the header "
                    f"{len(self.columns)} columns. Put values with commas in double quotes."
                )
            yield Cells(place, dict(zip(self.columns, values, strict=True)))

    def _lines(self) -> Iterator[list[str]]:
        while True:
            try:
                yield next(self._reader)
            except StopIteration:
                return
            except csv.Error as error:
                line = self._reader.line_num
                raise InputError(f"`{self._path}`:{line} is not CSV: {error}.") from None


class Cells:
    """The values of one row by column; `place` names the row in errors."""

    def __init__(self, place: str, values: dict[str, str]) -> None:
        self.place = place
        self._values = values

    def text(self, name: str) -> str:
        """The value without surrounding blanks; empty if the column is absent."""
        return self._values.get(name, "").strip()

    def number(self, name: str) -> float | None:
        """A finite number; None if empty."""
        if not self.text(name):
            return None
        try:
            value = float(self.text(name))
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self._wrong(name, "a number")
        return value

    def positive(self, name: str, most: float = math.inf) -> float | None:
        """A number above 0, and not above `most`; None if empty."""
        value = self.number(name)
        if value is not None and value <= 0:
            raise self._wrong(name, "a number above 0")
        self._check_most(name, value, most)
        return value

    def whole(self, name: str, most: float = math.inf) -> int | None:
        """A whole number that is not negative, and not above `most`; None if empty."""
        value = self.number(name)
        if value is None:
            return None
        if value != int(value) or value < 0:
            raise self._wrong(name, "a whole number")
        self._check_most(name, value, most)
        return int(value)

    def flag(self, name: str) -> bool:
        """Whether the value is 1; 0 and empty say no."""
        if self.text(name) not in ("", "0", "1"):
            raise self._wrong(name, "0 or 1")
        return self.text(name) == "1"

    def _check_most(self, name: str, value: float | None, most: float) -> None:
        if value is not None and value > most:
            raise self._wrong(name, f"at most {most:,.0f}")

    def _wrong(self, name: str, needed: str) -> InputError:
        said = brief(self.text(name))
        return InputError(f"{self.place}: `{name}` is `{said}`; it must be {needed}.")
