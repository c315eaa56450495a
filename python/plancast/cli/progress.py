"""A progress bar on stderr, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Gives a function of (done, total); shows nothing where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    from plancast.report.terminal import Terminal
    from plancast.textual import shown

    name = TextColumn("{task.description}", markup=False)
    columns = (name, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Terminal(file=getattr(sys.stderr, "plain", sys.stderr))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(shown(what), total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
