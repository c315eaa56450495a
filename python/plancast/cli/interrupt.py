"""Ctrl-C and requests to end, also while the core computes and Python's own handler must wait."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from plancast import output

# How long the main thread may take to stop by itself, seconds.
_GRACE = 0.5
# And if it is to print an answer first.
_ANSWER = 5.0
_answers = False
# How long whoever dropped a Ctrl-C takes to be done, seconds.
_DROPPED = 0.02
# What ends a process; Ctrl-C has a handler of Python's.
_ENDS = (signal.SIGTERM, signal.SIGHUP)


class Ended(KeyboardInterrupt):
    """A request to end the process, by the number of its signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def status_of(error: KeyboardInterrupt) -> int:
    """The exit status of a process that a signal ended, as shells have it.

    >>> status_of(KeyboardInterrupt()), status_of(Ended(15))
    (130, 143)
    """
    return 128 + (error.number if isinstance(error, Ended) else signal.SIGINT)


@contextmanager
def stops_at_once(grace: float = _GRACE) -> Iterator[None]:
    """Within it, Ctrl-C and SIGTERM end the process even if the main thread is busy.

    The exit status is 128 and the number of the signal; files under way are removed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals belong to the main thread
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    over = threading.Event()

    def watch() -> None:
        while number := os.read(reader, 1):
            patience = _ANSWER if _answers else grace
            if number[0] in (signal.SIGINT, *_ENDS) and not over.wait(patience):
                with output.ending():
                    stderr = sys.__stderr__.fileno() if sys.__stderr__ else 2
                    os.write(stderr, b"plancast: stopped\n")
                    os._exit(128 + number[0])
        os.close(reader)

    # Python writes the number of each signal there, from the handler in C.
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    # What the caller has us ignore, as `nohup` does, stays ignored.
    ends = [number for number in _ENDS if signal.getsignal(number) == signal.SIG_DFL]
    for number in ends:
        signal.signal(number, _raise_ended)
    watcher = threading.Thread(target=watch, daemon=True)
    before_hook, sys.unraisablehook = sys.unraisablehook, _raised_again(over)
    try:
        # Where the system gives no thread, Ctrl-C waits for the core.
        with contextlib.suppress(RuntimeError):
            watcher.start()
        yield
    finally:
        over.set()
        sys.unraisablehook = before_hook
        for number in ends:
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(before)
        os.close(writer)


@contextmanager
def answers_first() -> Iterator[None]:
    """From here on, Ctrl-C is given more time: what was found is still printed.

    If what is within it raises, that is over.
    """
    global _answers
    _answers = True
    try:
        yield
    except BaseException:
        _answers = False
        raise


class Held:
    """Whether Ctrl-C was pressed while it had to wait."""

    pressed = False

    def press(self, number: int, frame: FrameType | None) -> None:
        """The handler; whoever presses twice does not want to wait."""
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True


@contextmanager
def held() -> Iterator[Held]:
    """Within it, Ctrl-C waits once: what is being written is written whole."""
    waiting = Held()
    if threading.current_thread() is not threading.main_thread():
        yield waiting
        return
    before = signal.signal(signal.SIGINT, waiting.press)
    try:
        yield waiting
    finally:
        signal.signal(signal.SIGINT, before)


def _raised_again(over: threading.Event) -> Callable[[Any], None]:
    """A hook for what Python drops: it drops Ctrl-C, too, where that comes in a finaliser or a
    callback of the importer's. It is raised again a little later, where it is heard."""
    others, main = sys.unraisablehook, threading.main_thread().ident or 0

    def again(number: int) -> None:
        if not over.wait(_DROPPED):
            signal.pthread_kill(main, number)

    def hook(dropped: Any) -> None:
        error = dropped.exc_value
        if not isinstance(error, KeyboardInterrupt):
            others(dropped)
            return
        number = status_of(error) - 128
        # Where the system gives no thread, the watcher ends the process.
        with contextlib.suppress(RuntimeError):
            threading.Thread(target=again, args=(number,), daemon=True).start()

    return hook


def _raise_ended(number: int, frame: FrameType | None) -> None:
    raise Ended(number)
