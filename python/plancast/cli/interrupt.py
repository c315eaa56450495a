"""Ctrl-C while the core computes, when Python's own handler would have to wait for it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# How long the main thread may take to stop by itself, seconds.
_GRACE = 1.0


@contextmanager
def stops_at_once(grace: float = _GRACE) -> Iterator[None]:
    """Within it, Ctrl-C ends the process with status 130 even if the main thread is busy."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals belong to the main thread
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    over = threading.Event()

    def watch() -> None:
        while number := os.read(reader, 1):
            if number[0] == signal.SIGINT and not over.wait(grace):
                os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, b"plancast: stopped\n")
                os._exit(130)
        os.close(reader)

    # Python writes the number of each signal there, from the handler in C.
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watcher = threading.Thread(target=watch, daemon=True)
    try:
        # Where the system gives no thread, Ctrl-C waits for the core.
        with contextlib.suppress(RuntimeError):
            watcher.start()
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        os.close(writer)
