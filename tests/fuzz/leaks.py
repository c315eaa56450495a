"""Resident memory of forecasts without end: of one session, and of sessions that come and go.

    python -m tests.fuzz.leaks --forecasts 50000 --sessions 1000

No two questions are alike. Memory after a fifth of the work is compared with that at the end; it
may grow by 5 %.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable

import plancast as pc

MORE = 0.05
_PAGE = os.sysconf("SC_PAGE_SIZE")
PLANS = (
    "dp=8,mb=1", "dp=4,tp=2,mb=1", "dp=4,tp=2,sp,mb=1,zero=1", "dp=2,pp=4,mb=1,recompute=full",
    "dp=8,mb=2,zero=3", "dp=2,tp=2,pp=2,vpp=2,mb=1", "dp=8,mb=1,zero=2,recompute=selective",
)  # fmt: skip


def resident() -> int:
    """Bytes of this process that are in memory."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * _PAGE


def forecast(number: int, session: pc.Session) -> None:
    """One of 50,176 questions."""
    number, plan = divmod(number, len(PLANS))
    number, length = divmod(number, 8)
    number, micro_batches = divmod(number, 64)
    model = pc.Model.preset("gpt2", seq=64 * (1 + length))
    machine = pc.Machine.preset("dgx-h100", hosts=1)
    words = f"{PLANS[plan]},bucket={1 + number % 14}MB"
    pc.predict(model, machine, words, batch=16 * (1 + micro_batches), session=session)


def grown(work: Callable[[int], None], count: int) -> tuple[int, int]:
    """Resident bytes after a fifth of the work and after all of it."""
    early = 0
    for number in range(count):
        work(number)
        if number + 1 == max(1, count // 5):
            early = resident()
    return early, resident()


def in_one_session(count: int) -> tuple[int, int]:
    """Of so many forecasts in one session."""
    session = pc.Session()
    return grown(lambda number: forecast(number, session), count)


def across_sessions(count: int, each: int = 10) -> tuple[int, int]:
    """Of so many sessions with some forecasts each."""

    def work(number: int) -> None:
        session = pc.Session()
        for question in range(each):
            forecast(number * each + question, session)

    return grown(work, count)


def main() -> int:
    """Says how much memory there is early and late; 1 if it grew."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--forecasts", type=int, default=50_000)
    parser.add_argument("--sessions", type=int, default=1000)
    options = parser.parse_args()
    worst = 0.0
    for what, (early, late) in (
        (f"{options.forecasts} forecasts in one session", in_one_session(options.forecasts)),
        (f"{options.sessions} sessions", across_sessions(options.sessions)),
    ):
        worst = max(worst, late / early - 1)
        print(f"{what}: {early >> 20} MiB early, {late >> 20} MiB late", flush=True)
    return int(worst > MORE)


if __name__ == "__main__":
    sys.exit(main())
