"""Runs the cases of one target in a process of its own, which a case may end.

    python -m tests.fuzz.worker TARGET FIRST COUNT FOLDER

Before a case its number is written to FOLDER/case, afterwards its outcome to standard
output. The case is ended by a signal when it has had its CPU seconds, and refused memory
beyond its bound. A reader has a second and 256 MiB; a forecast or a command more.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import traceback
from pathlib import Path

from tests.fuzz.children import SANITIZED

CPU_SECONDS = 30
MEMORY_BYTES = 6 << 30  # of address space, some 1 GiB of which are libraries
READER_SECONDS = 1.0 * float(os.environ.get("READER_SLACK", "1"))
SLOWER = 10 if SANITIZED else 1
READER_BYTES = 256 << 20  # beside what the process has
_ANEW = 1000  # cases after which that is looked up again


def prepare() -> None:
    """Bounds of the process; what the core says of foreign bytes is not shown."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    os.environ["PLANCAST_TRACEBACK"] = "1"


def attempt(target: str, seed: int, folder: Path) -> bool:
    """Runs one case; whether its input was not refused."""
    from tests.fuzz import commands, readers, targets, trees

    rng = random.Random(f"{target} {seed}")
    if target in readers.NAMES:
        return readers.attempt(rng, target, folder / "files")
    if target == "trees":
        return trees.attempt(rng, folder / "files")
    if target in commands.COMMANDS:
        return commands.attempt(rng, target, folder / "files")
    name, write = targets.WRITERS[target]
    path = folder / name
    write(rng, path)
    return targets.attempt(path, forecast=rng.random() < 0.3)


def _size() -> int:
    """Bytes of this process's address space."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _bound_memory(number: int) -> None:
    """A reader's bound, from what the process has by now."""
    if number % _ANEW == 1:  # the first case loads libraries
        resource.setrlimit(resource.RLIMIT_AS, (_size() + READER_BYTES, MEMORY_BYTES))


def main(target: str, first: int, count: int, folder: Path) -> int:
    """Runs cases `first`, `first` + 1, ... until one is wrong."""
    prepare()
    (folder / "files").mkdir(exist_ok=True)
    case = folder / "case"
    reader = target.startswith("reader: ")
    for number, seed in enumerate(range(first, first + count)):
        case.write_text(str(seed))
        if reader and not SANITIZED:
            _bound_memory(number)
        bound = READER_SECONDS if reader and number > 0 else CPU_SECONDS
        signal.setitimer(signal.ITIMER_PROF, bound * SLOWER)
        try:
            read = attempt(target, seed, folder)
        except BaseException:
            signal.setitimer(signal.ITIMER_PROF, 0)
            traceback.print_exc()
            return 1
        signal.setitimer(signal.ITIMER_PROF, 0)
        print("read" if read else "refused", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])))
