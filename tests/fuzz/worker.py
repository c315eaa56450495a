"""Runs the cases of one target in a process of its own, which a case may end.

    python -m tests.fuzz.worker TARGET FIRST COUNT FOLDER

Before a case its number is written to FOLDER/case, afterwards its outcome to standard
output. The case is ended by a signal when it has had its CPU seconds, and refused memory
beyond its bound.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import traceback
from pathlib import Path

CPU_SECONDS = 30
MEMORY_BYTES = 6 << 30  # of address space, some 1 GiB of which are libraries


def prepare() -> None:
    """Bounds of the process; what the core says of foreign bytes is not shown."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    os.environ["PLANCAST_TRACEBACK"] = "1"


def attempt(target: str, seed: int, folder: Path) -> bool:
    """Runs one case; whether its input was not refused."""
    from tests.fuzz import commands, targets, trees

    rng = random.Random(f"{target} {seed}")
    if target == "trees":
        return trees.attempt(rng, folder / "files")
    if target in commands.COMMANDS:
        return commands.attempt(rng, target, folder / "files")
    name, write = targets.WRITERS[target]
    path = folder / name
    write(rng, path)
    return targets.attempt(path, forecast=rng.random() < 0.3)


def main(target: str, first: int, count: int, folder: Path) -> int:
    """Runs cases `first`, `first` + 1, ... until one is wrong."""
    prepare()
    (folder / "files").mkdir(exist_ok=True)
    case = folder / "case"
    for seed in range(first, first + count):
        case.write_text(str(seed))
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
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
