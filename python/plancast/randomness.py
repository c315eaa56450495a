"""Jitter and stragglers: asked for in words, answered as a distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plancast import arguments
from plancast.errors import InputError

DEFAULT_SAMPLES = 50
DEFAULT_SEED = 0

# jitter, stragglers' probability and speed, samples, seed, threads.
Drawn = tuple[float, float, float, int, int, int]


@dataclass(frozen=True)
class Distribution:
    """Iteration times over random iterations, seconds; equal for equal seeds."""

    seed: int
    jitter: float
    straggler_probability: float
    straggler_speed: float
    mean_s: float
    stddev_s: float
    p5_s: float
    p50_s: float
    p95_s: float
    samples_s: list[float]

    def to_dict(self) -> dict[str, Any]:
        """What `predict --json` prints under `distribution`."""
        return dict(vars(self))

    def __str__(self) -> str:
        from plancast.textual import duration

        return (
            f"{duration(self.mean_s)} ± {duration(self.stddev_s)} "
            f"(5 % {duration(self.p5_s)}, median {duration(self.p50_s)}, "
            f"95 % {duration(self.p95_s)}; {len(self.samples_s)} samples, seed {self.seed})"
        )


def parse_stragglers(text: str) -> tuple[float, float]:
    """`PROBABILITY:SPEED` as two shares: how likely a device is slow, and its speed then.

    >>> parse_stragglers("1%:0.9")
    (0.01, 0.9)
    """
    probability, colon, speed = arguments.word(text, "stragglers").partition(":")
    try:
        if not colon:
            raise ValueError
        return _share(probability), _share(speed)
    except ValueError:
        raise InputError(
            f"`{text}` says nothing of stragglers. Write PROBABILITY:SPEED, such as `1%:0.9`: "
            "one device in a hundred runs at 90 % of its speed."
        ) from None


def asked(
    jitter: float,
    stragglers: str | tuple[float, float] | None,
    samples: int | None,
    seed: int | None,
    workers: int,
) -> Drawn | None:
    """What to draw, or None where nothing is random.

    >>> asked(0.02, "1%:0.9", None, 7, 1)
    (0.02, 0.01, 0.9, 50, 7, 1)
    >>> asked(0, None, None, None, 1) is None
    True
    """
    if not jitter and stragglers is None:
        if samples is None and seed is None:
            return None
        raise InputError(
            "`samples` and `seed` need something random. Give `jitter`, `stragglers` or both."
        )
    probability, speed = (0.0, 1.0)
    if isinstance(stragglers, str):
        probability, speed = parse_stragglers(stragglers)
    elif stragglers is not None:
        probability, speed = stragglers
    count = DEFAULT_SAMPLES if samples is None else samples
    if not arguments.is_whole(count) or not 1 <= count <= 1_000_000:
        raise InputError(f"`samples` is {count}; give 1 to 1,000,000.")
    chosen = DEFAULT_SEED if seed is None else seed
    if not arguments.is_whole(chosen) or not 0 <= chosen < 2**64:
        raise InputError(f"`seed` is {chosen}; give a whole number from 0 to 2^64 - 1.")
    if not arguments.is_whole(workers) or not 1 <= workers <= 1024:
        raise InputError(f"`workers` is {workers}; give 1 to 1024 threads.")
    sigma = arguments.number(jitter, "jitter")
    return sigma, float(probability), float(speed), int(count), int(chosen), int(workers)


def _share(text: str) -> float:
    if text.endswith("%"):
        return float(text[:-1]) / 100
    return float(text)
