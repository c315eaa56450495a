"""Cases that are numbers, in a child process, so that one that ends it is reported, too."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable

SECONDS = 120  # of CPU, for one case
# Sanitizers are preloaded; they take much of the address space and many times as long.
SANITIZED = "LD_PRELOAD" in os.environ
MEMORY = 6 << 30  # bytes, of the child
_AT_ONCE = 50

# What is wrong with the case of a number, nothing, or None if it is refused.
Fault = Callable[[int], "str | None"]


def _child(seeds: list[int], done: int, write: int, fault_of: Fault) -> None:
    """Tries cases from the one number `done` on; says one line for each."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with os.fdopen(write, "w") as out:
        for seed in seeds[done:]:
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS * (10 if SANITIZED else 1))
            try:
                said = fault_of(seed)
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            line = "-" if said is None else said.replace("\n", " ")[:900]
            out.write(line + "\n")
            out.flush()


def run(
    seeds: list[int],
    fault_of: Fault,
    show: Callable[[int], object],
    report: Callable[[str], None],
) -> Counter[str]:
    """Tries the cases of numbers and reports faults; counts `good`, `refused` and `bad` ones.

    A word that begins with `+N ` says that the case held in N plans; `plans` counts these.
    """
    outcomes: Counter[str] = Counter()
    done = 0
    while done < len(seeds):
        read, write = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.close(read)
            try:
                _child(seeds, done, write, fault_of)
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read) as lines:
            for line in lines:
                said = line.rstrip("\n")
                if said.startswith("+"):
                    count, _, said = said[1:].partition(" ")
                    outcomes["plans"] += int(count)
                outcomes["refused" if said == "-" else "bad" if said else "good"] += 1
                if said not in ("", "-"):
                    report(f"case {seeds[done]}: {said}\n  {show(seeds[done])}")
                done += 1
        status = os.waitpid(child, 0)[1]
        if done < len(seeds):
            report(f"case {seeds[done]} ended the process ({status})\n  {show(seeds[done])}")
            outcomes["bad"] += 1
            done += 1
    return outcomes


def run_all(seeds: list[int], fault_of: Fault, show: Callable[[int], object]) -> int:
    """The same for very many, with a line of progress now and then; an exit code."""
    begin = time.monotonic()
    outcomes: Counter[str] = Counter()
    for at in range(0, len(seeds), _AT_ONCE):
        some = seeds[at : at + _AT_ONCE]
        outcomes += run(some, fault_of, show, lambda word: print(word, flush=True))
        seconds, used = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"{at + len(some)} cases: {dict(outcomes)} in {seconds:.0f} s, "
            f"{used.ru_utime + used.ru_stime:.0f} s of CPU",
            flush=True,
        )
    return 1 if outcomes["bad"] else 0
