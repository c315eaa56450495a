"""Fuzzes the readers of model files; seeds are fixed, so that a failure comes again.

    python -m tests.fuzz.run --runs 100000 [--target pt2] [--first SEED]

Every file must be read or refused with an InputError, within a few seconds. A case
that is neither stays in the folder that is printed.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import FrameType

from tests.fuzz.targets import WRITERS, attempt

SECONDS = 20


class HangError(Exception):
    """A case took too long."""


def _hang(number: int, frame: FrameType | None) -> None:
    raise HangError(f"still not done after {SECONDS} s")


def run(target: str, seeds: range, folder: Path) -> Counter[str]:
    """Runs one target with each seed; raises what a case raises."""
    name, write = WRITERS[target]
    outcomes: Counter[str] = Counter()
    signal.signal(signal.SIGALRM, _hang)
    for seed in seeds:
        path = folder / name
        rng = random.Random(f"{target} {seed}")
        write(rng, path)
        signal.alarm(SECONDS)
        try:
            read = attempt(path, forecast=rng.random() < 0.3)
        except BaseException as error:
            error.add_note(f"target {target}, seed {seed}, file {path}")
            raise
        finally:
            signal.alarm(0)
        outcomes["read" if read else "refused"] += 1
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000, help="cases of each target")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--target", choices=sorted(WRITERS), action="append")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="plancast-fuzz-"))
    print(f"cases in {folder}", file=sys.stderr)
    for target in options.target or sorted(WRITERS):
        begin = time.monotonic()
        seeds = range(options.first, options.first + options.runs)
        outcomes = run(target, seeds, folder)
        print(f"{target}: {dict(outcomes)} in {time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
