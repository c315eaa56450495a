"""Jitter and stragglers: asked for in words, answered as a distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plancast import arguments
from plancast.checked import checked
from plancast.errors import InputError

DEFAULT_SAMPLES = 50
DEFAULT_SEED = 0

# jitter, stragglers' probability and speed, samples, seed, threads.
Drawn = tuple[float, float, float, int, int, int]


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        return f"<Distribution {self}>"

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


@checked
@dataclass(frozen=True)
class Randomness:
    """What differs from iteration to iteration, and how many of them to simulate.

    Args:
      jitter: sigma of the logarithm of what every kernel and communication takes, on every
        device; simulates each device by itself.
      stragglers: `1%:0.9`, or (0.01, 0.9): each device runs, for an iteration, at 90 % of its
        speed with a probability of 1 %.
      samples: random iterations; they fill `Forecast.distribution`.
      seed: of the random numbers; equal seeds give equal digits.
      workers: threads that simulate samples.

    Raises InputError where nothing is random, or a number is out of range.

    >>> Randomness(jitter=0.02, stragglers="1%:0.9", seed=7).drawn()
    (0.02, 0.01, 0.9, 50, 7, 1)
    """

    jitter: float = 0.0
    stragglers: str | tuple[float, float] | None = None
    samples: int = DEFAULT_SAMPLES
    seed: int = DEFAULT_SEED
    workers: int = 1

    def __post_init__(self) -> None:
        if not self.jitter and self.stragglers is None:
            raise InputError(
                "`samples` and `seed` need something random. Give `jitter`, `stragglers` or both."
            )
        self.drawn()

    def drawn(self) -> Drawn:
        """The core's numbers."""
        probability, speed = (0.0, 1.0)
        if isinstance(self.stragglers, str):
            probability, speed = parse_stragglers(self.stragglers)
        elif self.stragglers is not None:
            probability, speed = self.stragglers
        if not arguments.is_whole(self.samples) or not 1 <= self.samples <= 1_000_000:
            raise InputError(f"`samples` is {self.samples}; give 1 to 1,000,000.")
        if not arguments.is_whole(self.seed) or not 0 <= self.seed < 2**64:
            raise InputError(f"`seed` is {self.seed}; give a whole number from 0 to 2^64 - 1.")
        if not arguments.is_whole(self.workers) or not 1 <= self.workers <= 1024:
            raise InputError(f"`workers` is {self.workers}; give 1 to 1024 threads.")
        sigma = arguments.number(self.jitter, "jitter")
        numbers = int(self.samples), int(self.seed), int(self.workers)
        return sigma, float(probability), float(speed), *numbers


def _share(text: str) -> float:
    if text.endswith("%"):
        return float(text[:-1]) / 100
    return float(text)
