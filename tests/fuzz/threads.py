"""Threads that share one session: each answer is that of a thread that is alone.

    python -m tests.fuzz.threads --count 2000 --seed 1 --shard 0/2

A case draws the questions of one to three random sessions (tests.fuzz.random_session): forecasts,
what they tell besides, random iterations, rankings and searches with a store, each with one to
eight threads of the core. It gets their answers alone, then asks from two to eight threads at once.
Some cases press Ctrl-C during a ranking and ask again, or fork while the others compute.
docs/reliability.md tells how to run it under ThreadSanitizer.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import random
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import plancast as pc

from tests.fuzz import children
from tests.fuzz.plans import apart, figures_of
from tests.fuzz.random_session import draw, imports, simpler
from tests.fuzz.session_laws import MOST_TASKS, SAMPLES, tasks_of
from tests.fuzz.sessions import MOST_PARAMETERS, Session

MOST_THREADS = 8
QUESTIONS = 8  # for each session
# Of a child that was forked, soon enough for the test to tell; one that waits for a lost lock
# waits for ever.
HANGS_S = 1200 if children.SANITIZED else 120

# A question with the memo that it is asked with, and its answer.
Ask = Callable[[pc.Session], Any]


def _answered(seed: int) -> tuple[Session, pc.Forecast] | None:
    """A random session whose plan, or a simpler one, is forecast."""
    drawn = draw(seed)
    asked = Session(drawn)
    for strategy in [drawn.strategy, *simpler(drawn)]:
        drawn.strategy = strategy
        with contextlib.suppress(pc.InputError):
            return asked, asked.ask()
    return None


def _figures(asked: Session, **options: Any) -> Ask:
    return lambda memo: figures_of(asked.ask(session=memo, **options))


def _told(forecast: pc.Forecast) -> Any:
    """What a forecast says when it is asked again and again."""
    memory = [vars(one) if hasattr(one, "__dict__") else str(one) for one in forecast.memory]
    return [figures_of(forecast), memory, forecast.notes, str(forecast.explain())]


def _ranked(ranking: pc.Ranking) -> Any:
    return [(str(plan.strategy), figures_of(plan)) for plan in ranking]


def _ranks(asked: Session, **options: Any) -> Ask:
    return lambda memo: _ranked(asked.rank(session=memo, **options))


def _or_words(ask: Ask) -> Ask:
    """A refusal is an answer, too."""

    def either(memo: pc.Session) -> Any:
        try:
            return ask(memo)
        except pc.InputError as error:
            return str(error)

    return either


def _searched(asked: Session, memo: pc.Session, **options: Any) -> Any:
    """A ranking with a store, whose plans threads of Python look at."""
    with tempfile.TemporaryDirectory() as folder:
        return _ranked(asked.rank(session=memo, store=Path(folder) / "store.db", **options))


def _questions(asked: Session, forecast: pc.Forecast, rng: random.Random) -> list[Ask]:
    """Of one random session."""
    told: list[Ask] = [
        _figures(asked),
        lambda memo: _told(asked.ask(session=memo)),
        lambda _: _told(forecast),  # of one that all share
        _figures(asked, shortcuts=False),
    ]
    tasks = tasks_of(forecast)
    if tasks > MOST_TASKS:
        del told[-1]
    else:
        told.append(lambda memo: len(asked.ask(session=memo, timeline=True).timeline()))
    if tasks * forecast.devices <= 100 * MOST_TASKS:
        seed, threads = rng.randrange(1 << 64), rng.randint(1, MOST_THREADS)
        jitter = rng.choice((0.0, 0.1))
        drawn = pc.Randomness(
            samples=SAMPLES, workers=threads, seed=seed, jitter=jitter,
            stragglers=None if jitter else "30%:0.5",
        )  # fmt: skip

        def chance(memo: pc.Session) -> Any:
            distribution = asked.ask(session=memo, randomness=drawn).distribution
            assert distribution is not None
            return distribution.to_dict()

        told.append(chance)
    if asked.model.parameters < MOST_PARAMETERS:
        for exhaustive, top in ((True, None), (False, 3)):
            told += [
                _ranks(asked, exhaustive=exhaustive, top=top, workers=workers)
                for workers in rng.sample(range(1, MOST_THREADS + 1), 2)
            ]
        threads = rng.randint(1, MOST_THREADS)
        told.append(lambda memo: _searched(asked, memo, workers=threads))
    return [_or_words(ask) for ask in told]


def _interrupted(ask: Ask, memo: pc.Session, after_s: float) -> None:
    """Asks, and presses Ctrl-C meanwhile or afterwards."""
    timer = threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        ask(memo)
        timer.join()
        time.sleep(1)  # until it comes, if no finalizer of Python's met and dropped it
    except KeyboardInterrupt:
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)


def _forked(ask: Ask, memo: pc.Session, expected: Any) -> str:
    """What a child says with the memo of threads that compute. It starts no thread of its own,
    which ThreadSanitizer cannot bear."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            code = 1 if apart(expected, ask(memo)) else 0
        finally:
            os._exit(code)
    limit = time.monotonic() + HANGS_S
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > limit:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "a child that was forked while threads compute hangs"
        time.sleep(0.002)
    code = os.waitstatus_to_exitcode(ended[1])
    return f"a child that was forked while threads compute ends with {code}" if code else ""


def fault_of(seed: int) -> str | None:
    """What is wrong with a case, nothing, or None where all of its plans are refused."""
    rng = random.Random(f"threads {seed}")
    warnings.simplefilter("ignore")
    sessions = [found for i in range(rng.randint(1, 3)) if (found := _answered(8 * seed + i))]
    if not sessions:
        return None
    asks = [ask for asked, forecast in sessions for ask in _questions(asked, forecast, rng)]
    asks = rng.sample(asks, min(len(asks), QUESTIONS * len(sessions)))
    fresh: Callable[[], pc.Session] = pc.Session
    if rng.random() < 0.3:  # measured kernels, which are read when they are first asked for
        records = pc.Records(str(imports() / "kernels.db"))
        fresh = functools.partial(pc.Session, records=records)
    expected = [ask(fresh()) for ask in asks]
    memo = fresh()
    if rng.random() < 0.3:
        _interrupted(rng.choice(asks), memo, rng.choice((0, 0.003, 0.03, 0.1)) * rng.random())
    work = list(range(len(asks))) * 2
    rng.shuffle(work)
    forks, plain = rng.random() < 0.2, _figures(sessions[0][0])
    alone, word = plain(fresh()), ""
    with ThreadPoolExecutor(rng.randint(2, MOST_THREADS)) as pool:
        under_way = [(at, pool.submit(asks[at], memo)) for at in work]
        if forks:
            word = _forked(plain, memo, alone)
        for at, one in under_way:
            if differs := apart(expected[at], one.result()):
                word = word or f"question {at} by threads: {differs}"
    plans = sum(len(found) if isinstance(found, list) else 1 for found in expected)
    return f"+{plans * 3} {word}"


def main() -> int:
    """Runs a shard of so many cases."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=200, help="cases of all shards")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first")
    parser.add_argument("--shard", default="0/1", help="I/N: every Nth case from the Ith on")
    options = parser.parse_args()
    first, _, step = options.shard.partition("/")
    seeds = list(range(options.seed + int(first), options.seed + options.count, int(step)))
    return children.run_all(seeds, fault_of, lambda seed: f"threads {seed}")


if __name__ == "__main__":
    sys.exit(main())
