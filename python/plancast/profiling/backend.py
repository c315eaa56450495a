"""What times kernels: a GPU, or a recorded run of one."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from plancast.records.kernel import Kernel


class UnmeasurableError(Exception):
    """This backend cannot time that kernel; the message says why."""


class Timing(NamedTuple):
    """Seconds of one kernel: the median of `repetitions`, the least and the most."""

    seconds: float
    seconds_min: float
    seconds_max: float
    repetitions: int
    how: str  # `graph`: replays of a CUDA graph; `event`: CUDA events around calls


class Backend(Protocol):
    """Times one kernel at a time."""

    @property
    def gpu(self) -> str:
        """Name of the catalogue's GPU, such as `H100-SXM-80GB`."""

    @property
    def library(self) -> str:
        """Whose kernels."""

    @property
    def version(self) -> str:
        """The library's version."""

    @property
    def source(self) -> str:
        """Where the timings come from, for people."""

    @property
    def date(self) -> str:
        """YYYY-MM-DD."""

    def measure(self, kernel: Kernel) -> Timing:
        """Times a kernel. Raises UnmeasurableError."""
