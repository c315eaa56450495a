"""One table of a validation, as plain cells for any page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ScoreTable:
    """A table: its first column is text, the others are numbers unless in `words`."""

    key: str
    title: str
    note: str
    head: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    words: tuple[int, ...] = ()
