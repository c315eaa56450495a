"""A run whose hosts come and go: it is planned anew for what is left, event by event.

Between events work flows at the forecast's rate; every `interval` of training it is saved. When
hosts of the job go, work since the last saved state is lost, unless the notice is long enough to
save it; when hosts come that make the job faster, it saves first. Either way it starts again in
`restart` and the time that the new hosts take to load the state.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from plancast.errors import InputError
from plancast.textual import counted
from plancast.training.availability import Availability

# What the seconds of a run are spent on.
_SPENT = ("training", "saving", "repeated", "restarting", "waiting")


@dataclass(frozen=True)
class Gear:
    """How the job runs on so many hosts: samples a second, and seconds to save and load."""

    hosts: int
    rate: float
    stall_s: float = 0.0
    lag_s: float = 0.0
    load_s: float = 0.0
    strategy: str = ""


@dataclass(frozen=True)
class Morphed:
    """What became of a run: seconds by what was done, samples, restarts.

    `training_s` is time whose work was kept, `repeated_s` time whose work was lost.
    """

    wall_s: float
    samples: float
    training_s: float
    saving_s: float
    repeated_s: float
    restarting_s: float
    waiting_s: float
    restarts: int
    lost_samples: float
    by_gear_s: dict[int, float]


def morph(
    trace: Availability,
    gear_of: Callable[[int], Gear | None],
    samples: float,
    *,
    interval: float,
    restart: float,
    notice: float = 0.0,
) -> Morphed:
    """Runs until so many samples are trained on.

    Args:
      trace: hosts over time.
      gear_of: the best way to run on so many hosts; None: the job has to wait.
      samples: work to do.
      interval: seconds of training between two saved states.
      restart: seconds of a start, without loading the state.
      notice: seconds between a warning and the loss of hosts.

    Raises:
      InputError: the trace ends with too few hosts to go on.
    """
    return _Run(trace, gear_of, samples, interval, restart, notice).result()


class _Run:
    def __init__(
        self,
        trace: Availability,
        gear_of: Callable[[int], Gear | None],
        samples: float,
        interval: float,
        restart: float,
        notice: float,
    ) -> None:
        self._events = list(zip(trace.times_s, trace.hosts, strict=True))
        self._gear_of = gear_of
        self._work = samples
        self._interval = interval
        self._restart = restart
        self._notice = notice
        self._now = self._done = 0.0
        self._index = 0  # of the event that is in force
        self._seconds = dict.fromkeys(_SPENT, 0.0)
        self._lost = 0.0
        self._restarts = -1  # the first start is part of the run's beginning
        self._by_gear: dict[int, float] = {}

    def result(self) -> Morphed:
        """Runs to the end."""
        while self._done < self._work * (1 - 1e-12):
            gear = self._gear_of(self._events[self._index][1])
            if gear is None:
                self._wait()
            elif self._start(gear):
                self._train(gear)
        seconds = {f"{name}_s": value for name, value in self._seconds.items()}
        return Morphed(
            wall_s=self._now,
            samples=self._work,
            restarts=max(0, self._restarts),
            lost_samples=self._lost,
            by_gear_s=dict(sorted(self._by_gear.items())),
            **seconds,
        )

    def _wait(self) -> None:
        """Until the next event: nothing fits on what there is."""
        if self._index + 1 == len(self._events):
            raise InputError(
                f"the trace ends with {counted(self._events[-1][1], 'host')}, too few for any "
                f"plan, and {self._done / self._work:.1%} of the work is done. Give a longer trace."
            )
        self._restarts = max(0, self._restarts)
        self._advance(self._events[self._index + 1][0], "waiting")
        self._index += 1

    def _start(self, gear: Gear) -> bool:
        """Whether the job got going before it lost hosts again."""
        self._restarts += 1
        if self._restarts == 0:
            return True
        ready = self._now + self._restart + gear.load_s
        while (following := self._next_time()) < ready:
            self._index += 1
            if self._events[self._index][1] < gear.hosts:
                self._advance(following, "restarting")
                return False
        self._advance(ready, "restarting")
        return True

    def _train(self, gear: Gear) -> None:
        """Until hosts of the job go, hosts come that make it faster, or it is through."""
        # What came while it started counts now.
        better = self._gear_of(self._events[self._index][1])
        stop, gains = (self._now, True) if _faster(better, gear) else self._what_stops(gear)
        save = gear.stall_s + gear.lag_s
        in_time = gains or (self._notice >= save and self._now <= stop - save)
        # With notice, saving begins early enough to be through when the hosts go.
        end = stop - save if in_time and not gains else stop
        begun, trained, stalled = self._now, 0.0, 0.0
        position = 0.0  # samples since the state that was loaded
        saved = [(begun, 0.0, 0.0)]  # when it can be loaded, samples, seconds of training
        while True:
            left = (self._work - self._done - position) / gear.rate
            stretch = min(self._interval, left, end - self._now)
            self._now += stretch
            trained += stretch
            position += stretch * gear.rate
            if stretch >= left:
                self._done = self._work
                self._add(gear, begun, trained, stalled)
                return
            if stretch < self._interval or self._now + gear.stall_s > end:
                break
            self._now += gear.stall_s
            stalled += gear.stall_s
            saved.append((self._now + gear.lag_s, position, trained))
        kept, kept_s = position, trained
        unsaved = position > saved[-1][1]
        if gains and unsaved and (loss := self._first_loss(gear)) < self._now + save:
            stop, in_time = loss, False  # hosts go before what they hold is saved
        if in_time:
            self._now += save if unsaved else 0.0
            stalled += save if unsaved else 0.0
        else:
            stalled += stop - self._now
            _, kept, kept_s = max(entry for entry in saved if entry[0] <= stop)
        self._now = max(self._now, stop)
        self._done += kept
        self._lost += position - kept
        self._add(gear, begun, kept_s, stalled)
        while self._next_time() <= self._now:
            self._index += 1

    def _what_stops(self, gear: Gear) -> tuple[float, bool]:
        """When hosts of the job go, or (True) when such come that make it faster."""
        for time, hosts in self._events[self._index + 1 :]:
            if hosts < gear.hosts:
                return time, False
            if _faster(self._gear_of(hosts), gear):
                return time, True
        return math.inf, False

    def _first_loss(self, gear: Gear) -> float:
        """When hosts of the job go next."""
        later = self._events[self._index + 1 :]
        return next((time for time, hosts in later if hosts < gear.hosts), math.inf)

    def _add(self, gear: Gear, begun: float, kept: float, stalled: float) -> None:
        self._seconds["training"] += kept
        self._seconds["saving"] += stalled
        self._seconds["repeated"] += max(0.0, self._now - begun - kept - stalled)
        self._by_gear[gear.hosts] = self._by_gear.get(gear.hosts, 0.0) + self._now - begun

    def _advance(self, until: float, what: str) -> None:
        self._seconds[what] += until - self._now
        self._now = until

    def _next_time(self) -> float:
        if self._index + 1 == len(self._events):
            return math.inf
        return self._events[self._index + 1][0]


def _faster(gear: Gear | None, than: Gear) -> bool:
    return gear is not None and gear.rate > than.rate * (1 + 1e-9)
