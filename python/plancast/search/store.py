"""A file of what is known of the plans of one search."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from plancast import files
from plancast.checked import checked
from plancast.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

_FORMAT = "plancast search 1"
_WAIT_S = 10.0  # for another process that writes
_COLUMNS = ("plan", "strategy", "bound", "value", "reason")
_SCHEMA = (
    "CREATE TABLE search (name TEXT PRIMARY KEY, said TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE plans (plan INTEGER PRIMARY KEY, strategy TEXT NOT NULL, bound REAL, "
    "value REAL, reason TEXT)",
)


class Known(NamedTuple):
    """Of one plan: the least its value can be, its value, or why it has none."""

    bound: float | None = None
    value: float | None = None
    reason: str | None = None

    def with_(self, more: Known) -> Known:
        """What is known once more was learned."""
        return Known(
            more.bound if self.bound is None else self.bound,
            more.value if self.value is None else self.value,
            more.reason if self.reason is None else self.reason,
        )


Found = tuple[int, str, Known]  # number and short form of a plan, what was learned of it


@checked
class SearchStore:
    """What a search has found (SQLite), readable at any time beside the search.

    One row a plan that was looked at, in the order of the space: `strategy`, `bound` (the least
    that the objective can be), `value` (of the objective, simulated), `reason` (why it is none).
    Plans have no row that the bound of another one has put out of the question.
    What was committed survives the end of every process that takes part.
    """

    def __init__(self, path: str | Path) -> None:
        """Opens a store that is there, for reading."""
        self._path = str(path)
        if not files.is_file(path):
            raise InputError(f"there is no store `{path}`.")
        with self._worded():
            self._base = sqlite3.connect(self._path, timeout=_WAIT_S)
            self._check()

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self._path)

    @property
    def search(self) -> dict[str, str]:
        """What the search is about."""
        with self._worded():
            said = self._base.execute("SELECT name, said FROM search ORDER BY name").fetchall()
        return {name: text for name, text in said if name != "format"}

    def records(self) -> list[dict[str, Any]]:
        """The rows, in the order of the space."""
        with self._worded():
            rows = self._base.execute(f"SELECT {', '.join(_COLUMNS)} FROM plans ORDER BY plan")
            return [dict(zip(_COLUMNS, row, strict=True)) for row in rows]

    def to_frame(self) -> pd.DataFrame:
        """The rows as a data frame."""
        import pandas as pd

        return pd.DataFrame.from_records(self.records(), columns=_COLUMNS)

    def write(self, path: str | Path) -> None:
        """Writes the rows as `.csv`, `.csv.gz` or `.parquet`."""
        files.write_table(path, _COLUMNS, self.records())

    def close(self) -> None:
        """Ends the use of the file, and tidies it up if nobody else has it open."""
        self._base.close()

    def __len__(self) -> int:
        """Plans that were looked at."""
        with self._worded():
            return int(self._base.execute("SELECT count(*) FROM plans").fetchone()[0])

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"SearchStore({self._path!r})"

    def _check(self) -> None:
        tables = "SELECT count(*) FROM sqlite_master WHERE name IN ('search', 'plans')"
        said = None
        if self._base.execute(tables).fetchone()[0] == 2:
            said = self._base.execute("SELECT said FROM search WHERE name = 'format'").fetchone()
        if said is None or said[0] != _FORMAT:
            raise InputError(
                f"`{self._path}` is no store of a search; give one that `plancast rank --store` "
                "wrote, or a new name."
            )

    @contextmanager
    def _worded(self) -> Iterator[None]:
        """Says in words what keeps the store from being read or written."""
        try:
            yield
        except sqlite3.Error as error:
            raise InputError(_words(self._path, error)) from None
        except UnicodeDecodeError:  # SQLite's own message shows the bytes
            raise InputError(_damaged(self._path, "what tables it has cannot be read")) from None


class WritableStore(SearchStore):
    """The store of a search under way."""

    @classmethod
    def for_search(
        cls, path: str | Path | None, identity: Mapping[str, str], *, resume: bool
    ) -> WritableStore:
        """The store of a search, for writing: a new one, or with `resume` the one that is there.

        Without a path it is in memory.

        Raises:
          InputError: it is there and `resume` is not asked for, or is that of another search.
        """
        self = object.__new__(cls)
        self._path = ":memory:" if path is None else str(path)
        new = True
        if path is not None:
            files.check_writable(path)
            # What a process left that ended before its first commit is as good as nothing.
            new = not files.is_there(path) or os.path.getsize(path) == 0
            if not new and not resume:
                raise InputError(
                    f"`{path}` is there. To go on with its search resume it (--resume), or name "
                    "a new file."
                )
        with self._worded():
            self._base = sqlite3.connect(self._path, timeout=_WAIT_S)
            self._base.execute("PRAGMA journal_mode=WAL")
            # Of what was committed nothing is lost when processes are killed; when power fails,
            # the last commits may be.
            self._base.execute("PRAGMA synchronous=NORMAL")
            with self._transaction():
                tables = self._base.execute("SELECT count(*) FROM sqlite_master").fetchone()
                if tables[0] == 0:
                    self._begin(identity)
            self._check()
            self._check_same(identity)
        return self

    def known(self) -> dict[int, Known]:
        """By number of the plan."""
        with self._worded():
            rows = self._base.execute("SELECT plan, bound, value, reason FROM plans")
            return {plan: Known(*what) for plan, *what in rows}

    def add_bounds(self, found: Iterable[Found]) -> None:
        """Commits bounds, or reasons, or both; of plans that have a bound nothing changes."""
        self._add(
            "INSERT INTO plans (plan, strategy, bound, reason) VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET bound = excluded.bound WHERE bound IS NULL",
            ((plan, text, known.bound, known.reason) for plan, text, known in found),
        )

    def add_values(self, found: Iterable[Found]) -> None:
        """Commits simulated values, or reasons; of plans that have one nothing changes."""
        self._add(
            "INSERT INTO plans (plan, strategy, value, reason) VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET value = excluded.value, reason = excluded.reason "
            "WHERE value IS NULL AND reason IS NULL",
            ((plan, text, known.value, known.reason) for plan, text, known in found),
        )

    def _begin(self, identity: Mapping[str, str]) -> None:
        for statement in _SCHEMA:
            self._base.execute(statement)
        said = {"format": _FORMAT, **identity}
        self._base.executemany("INSERT INTO search VALUES (?, ?)", said.items())

    def _check_same(self, identity: Mapping[str, str]) -> None:
        before = self.search
        for name, now in identity.items():
            if before.get(name) != now:
                raise InputError(
                    f"`{self._path}` is of another search: its {name} is "
                    f"`{before.get(name, '')}`, now `{now}`. Ask as before, or name a new file."
                )

    def _add(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        with self._worded(), self._transaction():
            self._base.executemany(statement, rows)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of it, or nothing; takes the lock first, so that nobody waits in the middle."""
        self._base.execute("BEGIN IMMEDIATE")
        with self._base:
            yield


def _words(path: str, error: sqlite3.Error) -> str:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_NOTADB"):
        return (
            f"`{path}` is no store of a search: the file is not a database. Give one that "
            "`plancast rank --store` wrote, or a new name."
        )
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"`{path}` is being written by another process. Try again once it ends."
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return (
            f"`{path}` cannot be written: {error}. What was committed before is kept; go on with "
            "--resume once that is mended."
        )
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")):
        return f"`{path}` cannot be opened: {error}. Give a file in a folder that you can write."
    return _damaged(path, str(error))


def _damaged(path: str, how: str) -> str:
    return f"`{path}` is damaged: {how}. Take a copy of it, or search into a new file."
