"""What a case may take: CPU time, after which a signal ends its process, and memory.

A reader has a second and 256 MiB beside what its process has; a forecast or a command more.
"""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

from tests.fuzz.children import SANITIZED

CPU_SECONDS = 30
MEMORY_BYTES = 6 << 30  # of address space, some 1 GiB of which are libraries
READER_SECONDS = 1.0 * float(os.environ.get("READER_SLACK", "1"))
READER_BYTES = 256 << 20
SLOWER = 10 if SANITIZED else 1


def prepare() -> None:
    """Bounds of a process; who takes too long is ended without a core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _memory(MEMORY_BYTES)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)


def of_a_reader(*, look: bool) -> None:
    """Begins a case that reads; `look`: what the process has is looked up again."""
    if look:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        _memory(pages * resource.getpagesize() + READER_BYTES)
    _seconds(READER_SECONDS)


def of_a_command() -> None:
    """Begins a case that forecasts or runs a command, or goes on to that from reading."""
    _memory(MEMORY_BYTES)
    _seconds(CPU_SECONDS)


def over() -> None:
    """A case is over."""
    signal.setitimer(signal.ITIMER_PROF, 0)


def _memory(most: int) -> None:
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (min(most, MEMORY_BYTES), MEMORY_BYTES))


def _seconds(most: float) -> None:
    signal.setitimer(signal.ITIMER_PROF, most * SLOWER)
