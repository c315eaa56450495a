"""A progress bar on stderr, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Bar:
    """Is called with (done, total); does nothing where stderr is no terminal."""

    def __init__(
        self,
        update: Callable[[int, int], object] | None = None,
        describe: Callable[[str], object] | None = None,
    ) -> None:
        self._update = update
        self._describe = describe

    def __call__(self, done: int, total: int) -> None:
        """So much is done."""
        if self._update is not None:
            self._update(done, total)

    def found(self, strategy: str, value: float, bound: float) -> None:
        """The best plan of a ranking so far takes `value`, what is left at least `bound`."""
        if self._describe is None:
            return
        text = f"plans, best {value:.4g}"
        self._describe(text + (f", others at least {bound:.4g}" if bound > 0 else ""))


@contextmanager
def progress_bar(what: str) -> Iterator[Bar]:
    """Shows a bar until it is left."""
    if not sys.stderr.isatty():
        yield Bar()
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
        yield Bar(
            lambda done, total: progress.update(task, completed=done, total=total),
            lambda text: progress.update(task, description=shown(text)),
        )
