"""How far long work is: what a caller asks to be told, or a bar where somebody looks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

Tell: TypeAlias = Callable[[int, int], object]
# Called with what is done and what there is; None: a bar, if somebody looks; False: nothing.
Progress: TypeAlias = Callable[[int, int], object] | bool | None

# Shorter work needs no bar, seconds.
_SOON = 0.5
# Seconds between two pictures in a notebook.
_OFTEN = 0.2
_WIDTH = 40
_followed: ContextVar[bool] = ContextVar("followed", default=False)


@contextmanager
def following(progress: Progress, what: str) -> Iterator[Tell | None]:
    """Gives the function to call with (done, total), or None where nobody is told.

    Work inside of work that is followed, or that is not to be, shows no bar of its own.

    >>> with following(False, "plans") as tell:
    ...     tell is None
    True
    """
    asked = progress is None or progress is True
    bar: _Bar | None = None
    tell: Tell | None = None
    if callable(progress):
        tell = progress
    elif asked and not _followed.get() and _looked_at():
        tell = bar = _Bar(what)
    token = _followed.set(True)
    try:
        yield tell
    finally:
        _followed.reset(token)
        if bar is not None:
            bar.close()


def _looked_at() -> bool:
    return _in_notebook() or (hasattr(sys.stderr, "isatty") and sys.stderr.isatty())


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


class _Bar:
    """A bar that appears once the work turns out to be long, and goes when it is done."""

    def __init__(self, what: str) -> None:
        self._what, self._best = what, ""
        self._begin = self._shown = time.perf_counter()
        self._view: Any = None
        self._task: Any = None

    def __call__(self, done: int, total: int) -> None:
        now = time.perf_counter()
        if now - self._begin < _SOON:
            return
        if _in_notebook():
            if self._view is None or now - self._shown >= _OFTEN or done == total:
                self._shown = now
                self._show(self._line(done, total, now))
            return
        if self._view is None:
            self._start()
        self._view.update(self._task, completed=done, total=total)

    def found(self, strategy: str, value: float, bound: float) -> None:
        """The best plan of a ranking so far takes `value`, what is left at least `bound`."""
        self._best = f", best {value:.4g}"
        if bound > 0:
            self._best += f", others at least {bound:.4g}"
        if self._task is not None:
            self._view.update(self._task, description=self._said())

    def _said(self) -> str:
        from plancast.textual import shown

        return shown(self._what + self._best)

    def _start(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Remaining

        from plancast.report.terminal import Terminal

        name = TextColumn("{task.description}", markup=False)
        console = Terminal(file=getattr(sys.stderr, "plain", sys.stderr))
        self._view = Progress(
            name, BarColumn(), MofNCompleteColumn(), Remaining(), console=console, transient=True
        )
        self._view.start()
        self._task = self._view.add_task(self._said(), total=None)

    def _line(self, done: int, total: int, now: float) -> str:
        from plancast.textual import bar, duration

        share = done / total if total else 0.0
        left = f", about {duration((now - self._begin) * (1 / share - 1))} left" if share else ""
        return f"{self._said()} {bar(share, _WIDTH):<{_WIDTH}} {done:,} of {total:,}{left}"

    def _show(self, line: str) -> None:
        shown = {"text/plain": line}
        if self._view is None:
            display = sys.modules["IPython"].display.display
            self._view = display(shown, raw=True, display_id=True)
        else:
            self._view.update(shown, raw=True)

    def close(self) -> None:
        """Takes it away."""
        if self._view is None:
            return
        if self._task is None:
            self._show("")
        else:
            self._view.stop()
