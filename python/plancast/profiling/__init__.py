"""Measuring the kernels that plans need."""

from plancast.profiling.backend import Backend, Timing, UnmeasurableError
from plancast.profiling.run import Profiled, profile

__all__ = ["Backend", "Profiled", "Timing", "UnmeasurableError", "profile"]
