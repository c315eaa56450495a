"""What one device did in an iteration: kernels, collectives, and what was hidden behind what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Classes of kernels that are not bound by the memory's bandwidth.
COMPUTING = ("product", "attention", "attention.bwd", "convolution")
MESSAGE = "send_recv"


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel, or a collective, as it ran; seconds. `ranks` and `size` are of collectives.

    `size` counts bytes as the forecast does: the whole of what is gathered, scattered or reduced.
    None, and 0 ranks: not known.
    """

    kind: str  # a class of kernels, or a collective
    name: str
    start_s: float
    end_s: float
    is_collective: bool = False
    size: int | None = None
    ranks: int = 0
    factor: str = ""  # of the forecast's error and its scale, where it is a forecast's
    sigma: float = 0.0

    @property
    def seconds(self) -> float:
        """What it took."""
        return self.end_s - self.start_s


@dataclass(frozen=True)
class Iteration:
    """What a device did in an iteration that took so many seconds."""

    seconds: float
    kernels: tuple[Kernel, ...]  # by start

    @property
    def exposed_s(self) -> float:
        """While collectives ran and nothing else; messages of pipelines wait, and are left out."""
        return self._covered(collectives=True) - self._covered(collectives=False)

    @property
    def idle_s(self) -> float:
        """While nothing ran."""
        return max(self.seconds - self._covered(collectives=True), 0.0)

    def _covered(self, *, collectives: bool) -> float:
        return covered(
            (k.start_s, k.end_s)
            for k in self.kernels
            if not k.is_collective or (collectives and k.kind != MESSAGE)
        )


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Seconds that lie in one of the spans or in several.

    >>> covered([(0, 2), (1, 3), (5, 6)])
    4.0
    """
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        if end <= reached:
            continue
        total += end - max(start, reached)
        reached = end
    return total


def median(values: Sequence[float]) -> float:
    """The middle one, or the mean of both."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
