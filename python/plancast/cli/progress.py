"""A progress bar for commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from plancast.progress import following


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], object]]:
    """Gives a function of (done, total); shows nothing where stderr is no terminal."""
    with following(None, what) as tell:
        yield tell or (lambda done, total: None)
