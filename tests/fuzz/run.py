"""Fuzzes readers and commands; seeds are fixed, so that a failure comes again.

    python -m tests.fuzz.run --runs 100000 [--target pt2] [--first SEED] [--seconds 600]

Every input must be read or refused with an InputError, soon, in bounded memory and with
figures that are finite and not negative. Cases run in processes of their own: one that
crashes, hangs or raises is recorded with its input, and the run goes on behind it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.commands import COMMANDS
from tests.fuzz.readers import NAMES
from tests.fuzz.targets import WRITERS

TARGETS = [*sorted(WRITERS), *NAMES, *sorted(COMMANDS), "trees"]
# A case waits for something, such as a pipe, where it has had no CPU for so long.
WALL_SECONDS = 900
_PER_PROCESS = 2000
_PER_PROCESS_OF_READERS = 50_000  # which take less than a millisecond
WORKER = ("-m", "tests.fuzz.worker")


@dataclass
class Finding:
    """A case that was neither read nor refused."""

    target: str
    seed: int
    what: str
    kept: Path

    def __str__(self) -> str:
        return f"target `{self.target}`, seed {self.seed}, input {self.kept}: {self.what.strip()}"


@dataclass
class Result:
    """What became of the cases of one target."""

    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0


def run(target: str, seeds: range, folder: Path, *, until: float | None = None) -> Result:
    """Runs one target with each seed, or until that time of `time.monotonic`."""
    result = Result()
    begin = time.monotonic()
    place = folder / target.replace(": ", "-").replace(" ", "-")
    place.mkdir(parents=True, exist_ok=True)
    seed = seeds.start
    while seed < seeds.stop and (until is None or time.monotonic() < until):
        most = _PER_PROCESS_OF_READERS if target in (*NAMES, *WRITERS) else _PER_PROCESS
        count = min(most, seeds.stop - seed)
        outcomes, wrong = _process(target, seed, count, place, until)
        result.outcomes.update(outcomes)
        seed += sum(outcomes.values())
        if wrong:
            kept = folder / f"{place.name}-{seed}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(place, kept, ignore=lambda *_: ["pipe"])
            result.findings.append(Finding(target, seed, wrong, kept))
            seed += 1
    result.seconds = time.monotonic() - begin
    return result


def _process(
    target: str, first: int, count: int, place: Path, until: float | None
) -> tuple[Counter[str], str]:
    """Outcomes of the cases before the first that was wrong, and what was wrong with it."""
    command = [
        sys.executable,
        *WORKER,
        target,
        str(first),
        str(count),
        str(place),
    ]
    said, complaint = place / "said", place / "complaint"
    # The sources that this process has, in Bazel's tree or out of it.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with said.open("wb") as out, complaint.open("wb") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
        stopped = ""
        while not stopped:
            try:
                process.wait(1)
                break
            except subprocess.TimeoutExpired:
                stopped = _overdue(place / "case", until)
        if stopped:
            process.send_signal(signal.SIGKILL)
            process.wait()
    outcomes = Counter(said.read_text().split())
    if stopped == "over" or process.returncode == 0:
        return outcomes, ""
    if stopped:
        return outcomes, stopped
    if process.returncode == -signal.SIGPROF:
        return outcomes, "a hang: it had the CPU seconds of a case and was not done"
    words = complaint.read_text(errors="replace")[-4000:]
    if process.returncode < 0:
        return outcomes, f"a crash: {signal.Signals(-process.returncode).name}\n{words}"
    return outcomes, words


def _overdue(case: Path, until: float | None) -> str:
    if until is not None and time.monotonic() > until:
        return "over"
    try:
        waited = time.time() - case.stat().st_mtime
    except FileNotFoundError:
        return ""
    return f"stuck for {waited:.0f} s" if waited > WALL_SECONDS else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000, help="cases of each target")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seconds", type=float, help="stop each target after so many")
    parser.add_argument("--target", choices=TARGETS, action="append")
    parser.add_argument("--folder", type=Path, help="for inputs; default: a new one")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="plancast-fuzz-"))
    print(f"cases in {folder}, seeds from {options.first}", file=sys.stderr)
    failed = False
    for target in options.target or TARGETS:
        seeds = range(options.first, options.first + options.runs)
        until = None if options.seconds is None else time.monotonic() + options.seconds
        result = run(target, seeds, folder, until=until)
        print(f"{target}: {dict(result.outcomes)} in {result.seconds:.0f} s", flush=True)
        for finding in result.findings:
            failed = True
            print(f"FOUND {finding}\n", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
