"""The best sizes for a machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from plancast import arguments
from plancast.errors import InputError
from plancast.gradient_traffic.traffic import GradientTraffic

KNOBS = ("bucket", "partition", "credit")
_MIB = 1 << 20
# Twice the one before, about, from where each call costs most to where nothing overlaps.
_LADDER = (0.25, 0.5, 1, 2, 5, 10, 25, 50, 100, 200, 400)
_ROUNDS = 8
# Of all gradients: smaller pieces than in this many cost calls and time to simulate alone.
_MOST_PIECES = 4096


@dataclass(frozen=True)
class Tuning:
    """What was tried: each traffic with the time of an iteration, seconds."""

    default: GradientTraffic
    best: GradientTraffic
    tried: tuple[tuple[GradientTraffic, float], ...]

    @property
    def default_time(self) -> float:
        """Of an iteration before."""
        return dict(self.tried)[self.default]

    @property
    def best_time(self) -> float:
        """Of an iteration with the best that was tried."""
        return dict(self.tried)[self.best]

    @property
    def loss(self) -> float:
        """What an iteration takes more with what it was before, as a share of the best."""
        return self.default_time / self.best_time - 1

    def along(self, knob: str) -> list[tuple[int, float]]:
        """Values of one knob with the others at their best: bytes, seconds."""
        rows = {
            getattr(traffic, knob): time
            for traffic, time in self.tried
            if replace(
                traffic,
                first_bucket=self.best.first_bucket,
                **{knob: getattr(self.best, knob)},
            )
            == self.best
        }
        return sorted(rows.items())

    def in_seconds(self, second: float) -> Tuning:
        """The same, of times in a unit of `second` seconds."""
        return replace(self, tried=tuple((one, time * second) for one, time in self.tried))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "default": str(self.default),
            "default_time_s": self.default_time,
            "best": str(self.best),
            "best_time_s": self.best_time,
            "loss_of_default": self.loss,
            "tried": [{"traffic": str(one), "time_s": time} for one, time in self.tried],
        }


def knobs_of(text: Sequence[str] | str) -> tuple[str, ...]:
    """The knobs that `bucket,partition` names.

    >>> knobs_of("bucket, credit")
    ('bucket', 'credit')
    """
    words = text.split(",") if isinstance(text, str) else list(text)
    names = [word.strip() for word in words if word.strip()]
    for name in names:
        if name not in KNOBS:
            raise InputError(
                f"no knob `{name}` to tune; they are {arguments.listed(KNOBS)}."
                f"{arguments.offer(name, KNOBS)}"
            )
    return tuple(dict.fromkeys(names))


def tune(
    time_of: Callable[[GradientTraffic], float],
    default: GradientTraffic,
    knobs: Sequence[str],
    gradient_bytes: int,
) -> Tuning:
    """Tries one knob after the other, again and again until none makes it faster.

    The default is among what is tried, so the best is never worse.
    """
    known: dict[GradientTraffic, float] = {}

    def time(traffic: GradientTraffic) -> float:
        if traffic not in known:
            known[traffic] = time_of(traffic)
        return known[traffic]

    best = default
    time(best)
    for _ in range(_ROUNDS):
        before = best
        for knob in knobs:
            for value in _values(knob, gradient_bytes):
                one = _with(best, knob, value, default)
                if time(one) < time(best):
                    best = one
        if best == before:
            break
    return Tuning(default, best, tuple(known.items()))


def _with(
    traffic: GradientTraffic, knob: str, value: int, default: GradientTraffic
) -> GradientTraffic:
    told: dict[str, Any] = {knob: value}
    one = replace(traffic, **told)
    return replace(one, first_bucket=default.first_bucket if one.bucket == default.bucket else 0)


def ladder(gradient_bytes: int) -> list[int]:
    """Sizes that are tried, smaller than all gradients together.

    >>> [size >> 20 for size in ladder(30 << 20)][2:]
    [1, 2, 5, 10, 25]
    """
    least = gradient_bytes / _MOST_PIECES
    return [round(step * _MIB) for step in _LADDER if least < step * _MIB < gradient_bytes]


def _values(knob: str, gradient_bytes: int) -> list[int]:
    sizes = ladder(gradient_bytes)
    if knob == "bucket":
        return [0, *sizes, gradient_bytes]
    if knob == "partition":
        return [0, *sizes]
    # 0, one to each server, is a default that stays where it is best.
    return [1, *sizes]
