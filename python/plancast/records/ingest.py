"""Files of measured kernels into a store, resumable at any moment."""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from plancast import _core, csv_text, files
from plancast.errors import InputError
from plancast.records import columns

# Rows that are committed together.
BATCH = 500
# A hundred times the largest published table.
_MOST_BYTES = 256 << 20
# Files of a folder that are read, if there.
NAMES = ("gemm.csv", "attention.csv", "conv.csv", "elementwise.csv", "moe.csv")


@dataclass
class Ingested:
    """What became of the rows of one or several files."""

    rows: int = 0  # read
    added: int = 0  # new to the store
    known: int = 0  # in the store before
    unusable: Counter[str] = field(default_factory=Counter)  # left out, by reason

    def __add__(self, other: Ingested) -> Ingested:
        return Ingested(
            self.rows + other.rows,
            self.added + other.added,
            self.known + other.known,
            self.unusable + other.unusable,
        )


def files_of(path: Path) -> list[Path]:
    """The files that a path means: itself, or those of a folder."""
    if not files.is_folder(path):
        return [path]
    found = [path / name for name in NAMES if (path / name).is_file()]
    if not found:
        listed = ", ".join(f"`{name}`" for name in NAMES)
        raise InputError(f"`{path}` holds no files of measured kernels. Their names: {listed}.")
    return found


def ingest_file(
    store: _core.RecordStore,
    path: Path,
    *,
    date: str = "",
    progress: Callable[[int, int], object] | None = None,
) -> Ingested:
    """Reads one CSV file. Nothing is written if a row cannot be read.

    Rows that the store has from this file, or from a shorter version of it, are not read
    again: an ingest that was cut short is resumed by running it again.
    """
    contents = files.read_bytes(path, most=_MOST_BYTES)
    try:
        text = contents.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"`{path}` is not text: byte {error.start} is not UTF-8.") from None
    digest = hashlib.sha256(contents).hexdigest()
    done = _rows_done(store, path.name, contents)
    result = Ingested()
    batch = list(_measured(text, path, date, done, result))
    store.note_source(digest, path.name, len(contents))
    for start in range(0, len(batch), BATCH):
        if progress is not None:
            progress(start, len(batch))
        result.added += store.ingest(digest, batch[start : start + BATCH])
    result.known += len(batch) - result.added  # another process was faster
    return result


def _rows_done(store: _core.RecordStore, name: str, contents: bytes) -> set[int]:
    done: set[int] = set()
    for digest, source, size in store.sources():
        if source != name or size > len(contents):
            continue
        if hashlib.sha256(contents[:size]).hexdigest() == digest:
            done |= store.ingested_rows(digest)
    return done


def _measured(
    text: str, path: Path, date: str, done: set[int], result: Ingested
) -> Iterator[_core.MeasuredRow]:
    reader = csv.DictReader(csv_text.lines(text, f"`{path}`"))
    try:
        yield from _rows(reader, path, date, done, result)
    except csv.Error as error:
        raise InputError(f"`{path}` is not CSV after line {reader.line_num}: {error}.") from None


def _rows(
    reader: csv.DictReader[str], path: Path, date: str, done: set[int], result: Ingested
) -> Iterator[_core.MeasuredRow]:
    header = list(reader.fieldnames or [])
    for twice in (name for name, count in Counter(header).items() if count > 1):
        raise InputError(f"`{path}` has two columns `{twice}`; give each once.")
    table = columns.table_of(header, f"`{path}`")
    for number, row in enumerate(reader, start=1):
        result.rows += 1
        if number in done:
            result.known += 1
            continue
        try:
            if None in row or None in row.values():
                raise InputError(f"it does not have {len(header)} columns.")
            kernel, *where, sample = columns.measured(table, row, date)
        except columns.UnusableError as reason:
            result.unusable[str(reason)] += 1
            continue
        except InputError as error:
            raise InputError(f"`{path}` line {reader.line_num}: {error}") from None
        yield number, kernel.key, (where[0], where[1], where[2]), sample
