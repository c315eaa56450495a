"""Standard output and standard error as the commands see them."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

from plancast.textual import shown


class Stream:
    """A stream for people: shows control characters escaped, and outlives its reader.

    What is written after the reader has gone (`| head`) goes nowhere. `plain` is the same
    stream for text that is escaped already and has the colours of a terminal.
    """

    def __init__(self, inner: Any, *, escape: bool = True) -> None:
        self._inner = inner
        self._escape = escape

    @property
    def plain(self) -> Stream:
        """The same without escaping."""
        return Stream(self._inner, escape=False)

    def write(self, text: str) -> int:
        """Writes all of it."""
        with self._outlived():
            self._inner.write(shown(text) if self._escape else text)
        return len(text)

    def flush(self) -> None:
        """Hands on what was written."""
        with self._outlived():
            self._inner.flush()

    def drop(self) -> None:
        """Sends all that is written from now on nowhere."""
        with contextlib.suppress(OSError):  # no file stands behind it
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._inner.fileno())

    @contextlib.contextmanager
    def _outlived(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            self.drop()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@contextlib.contextmanager
def escaped() -> Iterator[None]:
    """Within it, standard output and error are `Stream`s that take every character."""
    _mend()
    out, error = Stream(sys.stdout), Stream(sys.stderr)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            yield
        finally:
            for stream in (out, error):
                try:
                    stream.flush()
                except OSError:  # has been said, or cannot be
                    stream.drop()


def _mend() -> None:
    """Makes the standard streams take every character, and be there at all."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller, `>&-`
            nowhere = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, os.fdopen(nowhere, "w", encoding="utf-8"))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
