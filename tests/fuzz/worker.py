"""Runs the cases of one target in a process of its own, which a case may end.

    python -m tests.fuzz.worker TARGET FIRST COUNT FOLDER

Before a case its number is written to FOLDER/case, afterwards its outcome to standard
output. tests/fuzz/bounds.py has what a case may take.
"""

from __future__ import annotations

import os
import random
import sys
import traceback
from pathlib import Path

from tests.fuzz import bounds

_ANEW = 1000  # cases after which it is looked up what the process has


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


def main(target: str, first: int, count: int, folder: Path) -> int:
    """Runs cases `first`, `first` + 1, ... until one is wrong."""
    from tests.fuzz import readers, targets

    bounds.prepare()
    os.environ["PLANCAST_TRACEBACK"] = "1"
    (folder / "files").mkdir(exist_ok=True)
    case = folder / "case"
    reads = target in readers.NAMES or target in targets.WRITERS
    for number, seed in enumerate(range(first, first + count)):
        case.write_text(str(seed))
        if reads and number > 0:  # the first case loads libraries
            bounds.of_a_reader(look=number % _ANEW == 1 or target in targets.WRITERS)
        else:
            bounds.of_a_command()
        try:
            read = attempt(target, seed, folder)
        except BaseException:
            bounds.over()
            traceback.print_exc()
            return 1
        bounds.over()
        print("read" if read else "refused", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])))
