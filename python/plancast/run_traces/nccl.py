"""NCCL's own trace of a run beside its forecast: collectives alone, call by call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from plancast.communication.traces import NcclOperation, NcclTrace
from plancast.errors import InputError
from plancast.run_traces.forecasts import forecast_iteration
from plancast.run_traces.names import collective_of
from plancast.run_traces.rows import Row, named, same_size
from plancast.run_traces.work import Kernel

if TYPE_CHECKING:
    from plancast.forecast import Forecast

# NCCL counts what a rank gives or gets of these; forecasts count the whole.
_PER_RANK = ("all_gather", "reduce_scatter", "all_to_all")


def nccl_rows(forecast: Forecast, trace: NcclTrace) -> list[Row]:
    """Of each collective of the forecast that the trace has: a call's time, as often as forecast.

    Raises:
      InputError: the trace has no collective that the forecast has.
    """
    measured = [o for o in trace.operations if o.size_bytes and collective_of(o.name)]
    rows = list(_rows(forecast, measured))
    if not rows:
        said = sorted({f"{o.name} of {o.size_bytes:,} B" for o in measured})
        listed = ", ".join(said[:4]) + (" ..." if len(said) > 4 else "")
        raise InputError(
            f"{trace._path}: none of its collectives ({listed or 'it has none'}) is in the "
            "forecast. Give the plan that was run."
        )
    return sorted(rows, key=lambda row: -(row.forecast_s or 0.0))


def _rows(forecast: Forecast, measured: Iterable[NcclOperation]) -> Iterator[Row]:
    found: dict[tuple[str, int, int], list[Kernel]] = {}
    for kernel in forecast_iteration(forecast).kernels:
        if kernel.is_collective and kernel.size:
            found.setdefault((kernel.kind, kernel.size, kernel.ranks), []).append(kernel)
    for (kind, size, ranks), kernels in found.items():
        given = size / ranks if kind in _PER_RANK and ranks else size
        alike = [
            o
            for o in measured
            if collective_of(o.name) == kind and same_size(o.size_bytes or 0, given)
        ]
        if not alike:
            continue
        calls = sum(o.calls for o in alike)
        each = sum(o.calls * (o.kernel_s or o.median_s) for o in alike) / calls
        if each <= 0:
            continue
        own = sum(kernel.seconds for kernel in kernels)
        one = kernels[0]
        factors = ((one.factor, own, one.sigma),) if one.factor else ()
        name = named(kind, size, ranks)
        yield Row(kind, name, len(kernels), len(kernels), own, each * len(kernels), True, factors)
