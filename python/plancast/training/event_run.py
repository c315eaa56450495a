"""A run event by event: checkpoints, failures, hosts that leave and come back.

Independent of the closed form (goodput.py), which it is tested against.
"""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import dataclass

from plancast.training.goodput import Costs


@dataclass(frozen=True)
class Outcome:
    """One simulated run: wall time and useful work in seconds, and what happened."""

    wall_s: float
    work_s: float
    failures: int
    checkpoints: int
    waited_s: float

    @property
    def useful(self) -> float:
        """The share of time that was useful."""
        return self.work_s / self.wall_s if self.wall_s > 0 else 1.0


class EventRun:
    """A run that trains, saves, fails, waits for hosts and restarts.

    Args:
      costs: of failures and checkpoints.
      interval: seconds of training between checkpoints.
      spares: hosts that stand by; None: failed hosts are replaced at once.
      repair: seconds until a failed host is back.
      replaced: share of failures that take a host away.
    """

    def __init__(
        self,
        costs: Costs,
        interval: float,
        *,
        spares: int | None = None,
        repair: float = 0.0,
        replaced: float = 1.0,
    ) -> None:
        self._costs = costs
        self._interval = interval
        self._spares = spares
        self._repair = repair
        self._replaced = replaced

    def run(self, work: float, seed: int, *, most_events: int = 20_000_000) -> Outcome:
        """Runs until `work` seconds of training are done; equal for equal seeds."""
        chance = random.Random(seed)
        costs = self._costs
        now = done = waited = 0.0  # done: work that a restart would find
        failures = checkpoints = 0
        away: list[float] = []  # when hosts come back
        next_failure = self._draw(chance)  # seconds of running from now
        for _ in range(most_events):
            # One life of the job: it trains from `done` until it fails or is through.
            life = position = 0.0  # seconds since it began; work since `done`
            saved: list[tuple[float, float]] = []  # when it can be loaded, and what is in it
            while True:
                stretch = min(self._interval, work - done - position)
                finished = stretch >= work - done - position - 1e-9
                if life + stretch > next_failure:
                    break
                life, position = life + stretch, position + stretch
                if finished:
                    return Outcome(now + life, work, failures, checkpoints, waited)
                if life + costs.stall > next_failure:
                    break
                life += costs.stall
                checkpoints += 1
                saved.append((life + costs.lag, position))
            failures += 1
            found = max((what for when, what in saved if when <= next_failure), default=0.0)
            done += found
            now += next_failure
            waited_for = self._lose_host(now, away, chance)
            now, waited = now + waited_for, waited + waited_for
            # Restarts fail too, and begin again.
            next_failure = self._draw(chance)
            while next_failure < costs.restart:
                failures += 1
                now += next_failure
                waited_for = self._lose_host(now, away, chance)
                now, waited = now + waited_for, waited + waited_for
                next_failure = self._draw(chance)
            now += costs.restart
            next_failure -= costs.restart
        return Outcome(now, done, failures, checkpoints, waited)

    def _draw(self, chance: random.Random) -> float:
        mtbf = self._costs.mtbf
        return math.inf if math.isinf(mtbf) else chance.expovariate(1 / mtbf)

    def _lose_host(self, now: float, away: list[float], chance: random.Random) -> float:
        """Takes a host away; gives the seconds until there are enough again."""
        if self._spares is None or chance.random() >= self._replaced:
            return 0.0
        while away and away[0] <= now:
            heapq.heappop(away)
        heapq.heappush(away, now + self._repair)
        if len(away) <= self._spares:
            return 0.0
        return heapq.heappop(away) - now


@dataclass(frozen=True)
class Simulated:
    """Several runs with seeds in a row: useful shares, and wall times, sorted, seconds."""

    useful: float
    wall_s: tuple[float, ...]
    failures: float
    seed: int

    def quantile(self, share: float) -> float:
        """Wall time that this share of the runs stays below, seconds."""
        return self.wall_s[min(len(self.wall_s) - 1, int(share * len(self.wall_s)))]


def simulate(run: EventRun, work: float, *, runs: int, seed: int) -> Simulated:
    """Simulates `runs` runs of `work` seconds of training."""
    outcomes = [run.run(work, seed * 1_000_003 + number) for number in range(runs)]
    walls = sorted(outcome.wall_s for outcome in outcomes)
    total = sum(walls)
    return Simulated(
        useful=sum(outcome.work_s for outcome in outcomes) / total if total > 0 else 1.0,
        wall_s=tuple(walls),
        failures=sum(outcome.failures for outcome in outcomes) / len(outcomes),
        seed=seed,
    )
