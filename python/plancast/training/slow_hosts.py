"""Hosts that turn slow and hold all others up, until they are noticed and replaced.

A run is as fast as its slowest host. With `rate` hosts turning slow a second, all together, and a
slow host costing a factor of the iteration time, the useful share of the time is

    evicted after `detect`, training on with another host after `outage`: a renewal,
      (1/rate + detect/factor) / (1/rate + detect + outage)
    never noticed, slow for `lasts` each, independent of each other:
      p + (1 - p)/factor,  p = exp(-rate * lasts), the chance that none is slow
"""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import dataclass
from typing import Any

from plancast import arguments
from plancast.checked import checked
from plancast.errors import InputError
from plancast.machine import Machine
from plancast.training import amounts


@checked
@dataclass(frozen=True, kw_only=True)
class SlowHosts:
    """How often hosts turn slow, how slow they are, and what is done about it.

    Args:
      host_hours: mean hours until one host turns slow.
      speed: share of their speed that its devices keep.
      detect: seconds until it is noticed, or text such as `30min`.
      evict: whether it is then replaced, with a checkpoint and a restart; else it stays slow.
      lasts: seconds that a host stays slow if nobody does anything.

    >>> SlowHosts.parse("host=5000h,speed=0.8,detect=30min").evict
    True
    """

    host_hours: float
    speed: float = 0.9
    detect: float | str = 3600.0
    evict: bool = True
    lasts: float | str = 86400.0

    def __post_init__(self) -> None:
        if not self.host_hours > 0:
            raise InputError(f"`host_hours` is {self.host_hours:g}; give mean hours, over 0.")
        if not 0 < self.speed <= 1:
            raise InputError(f"`speed` is {self.speed:g}; give a share over 0, at most 1.")
        for name in ("detect", "lasts"):
            length = amounts.seconds(getattr(self, name), name, zero=name == "detect")
            object.__setattr__(self, name, length)

    @classmethod
    def parse(cls, text: str) -> SlowHosts | None:
        """`none`, or `host=5000h,speed=0.9,detect=30min`; `keep` does not evict: `lasts=1day`."""
        if text.strip() == "none":
            return None
        said: dict[str, Any] = {}
        for part in (part.strip() for part in text.split(",")):
            key, equals, value = part.partition("=")
            known = ("host", "speed", "detect", "lasts", "keep")
            found: float | str | bool
            if part == "keep":
                key, found = "evict", False
            elif not equals or key not in known[:-1]:
                offer = arguments.offer(key, known)
                raise InputError(f"`{part[:40]}` says nothing of slow hosts.{offer}")
            elif key == "host":
                key, found = "host_hours", amounts.seconds(value, "host", unit="h") / 3600
            elif key == "speed":
                found = _share(value)
            else:
                found = value
            if key in said:
                raise InputError(f"`{part[:40]}`: said twice in `{text[:60]}`.")
            said[key] = found
        if "host_hours" not in said:
            raise InputError(
                f"`{text[:60]}` does not say how often hosts turn slow; give `host=5000h`."
            )
        return cls(**said)

    def what_if(self, machine: Machine) -> str:
        """One slow host as a change of `plancast.what_if`: all devices of the first."""
        first = machine.sections[0].gpus_per_host
        return ",".join(f"device:{device}={self.speed * 100:.10g}%" for device in range(first))


@dataclass(frozen=True)
class Slowed:
    """What slow hosts do to a run: the slow iteration over the usual one, the share of time that
    is as good as without them, and how many there are a second."""

    hosts: SlowHosts
    factor: float
    rate: float
    outage_s: float

    @property
    def useful(self) -> float:
        """The share of time that is useful."""
        detect, lasts = float(self.hosts.detect), float(self.hosts.lasts)
        if not self.hosts.evict:
            none = math.exp(-self.rate * lasts)
            return none + (1 - none) / self.factor
        well = 1 / self.rate
        return (well + detect / self.factor) / (well + detect + self.outage_s)

    def simulated(self, seconds: float, seed: int) -> float:
        """The same from a simulation of so many seconds, host by host; equal for equal seeds."""
        chance = random.Random(seed)
        now = work = 0.0
        slow: list[float] = []  # when hosts are well again
        following = chance.expovariate(self.rate)
        while now < seconds:
            if self.hosts.evict:
                now, work = following, work + following - now
                now, work = (
                    now + float(self.hosts.detect),
                    work + float(self.hosts.detect) / self.factor,
                )
                now += self.outage_s
                following = now + chance.expovariate(self.rate)
                continue
            until = min([following, *slow[:1]])
            work += (until - now) / (self.factor if slow else 1.0)
            now = until
            if slow and slow[0] <= now:
                heapq.heappop(slow)
            else:
                heapq.heappush(slow, now + float(self.hosts.lasts))
                following = now + chance.expovariate(self.rate)
        return work / now

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "host_hours": self.hosts.host_hours,
            "speed": self.hosts.speed,
            "evict": self.hosts.evict,
            "detect_s": float(self.hosts.detect),
            "lasts_s": float(self.hosts.lasts),
            "iteration_factor": self.factor,
            "between_s": 1 / self.rate,
            "outage_s": self.outage_s,
            "useful_share": self.useful,
        }


def _share(text: str) -> float:
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise InputError(f"`speed={text[:20]}`: give a share such as 0.9 or 90%.") from None
