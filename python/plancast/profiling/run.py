"""Measures kernels into a store, resumable after any one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from plancast.profiling.backend import Backend, UnmeasurableError
from plancast.records.kernel import Kernel
from plancast.records.store import Records


@dataclass
class Profiled:
    """What became of the kernels."""

    measured: int = 0
    known: int = 0  # in the store before, by that GPU, library and version
    seconds: float = 0.0  # that the measured ones ran, repetitions included
    unmeasurable: Counter[str] = field(default_factory=Counter)  # by reason


def profile(
    kernels: Sequence[Kernel],
    backend: Backend,
    records: Records,
    *,
    again: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Profiled:
    """Times kernels on `backend` and keeps each in `records` as soon as it is timed.

    Kernels that the store has of that GPU, library and version are not measured again unless
    `again`; so a run that was cut short is resumed by running it again.
    """
    result = Profiled()
    for done, kernel in enumerate(kernels):
        if progress is not None:
            progress(done, len(kernels))
        where = {"gpu": backend.gpu, "library": backend.library, "version": backend.version}
        if not again and records.query(kernel, **where) is not None:
            result.known += 1
            continue
        try:
            timing = backend.measure(kernel)
        except UnmeasurableError as reason:
            result.unmeasurable[str(reason)] += 1
            continue
        records.add(
            kernel,
            **where,
            seconds=timing.seconds,
            seconds_min=timing.seconds_min,
            seconds_max=timing.seconds_max,
            repetitions=timing.repetitions,
            source=backend.source,
            timing=timing.how,
            date=backend.date,
        )
        result.measured += 1
        result.seconds += timing.seconds * timing.repetitions
    return result
