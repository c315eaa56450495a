"""Where a profiled run and its forecast differ: kernel by kernel, collective by collective."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from plancast import arguments
from plancast.checked import checked
from plancast.errors import InputError
from plancast.immutable import Immutable
from plancast.run_traces.forecasts import forecast_iteration
from plancast.run_traces.kineto import RankTrace, is_kineto, read_kineto, typical
from plancast.run_traces.nccl import nccl_rows
from plancast.run_traces.rows import Row, named, same_size
from plancast.run_traces.work import Iteration, Kernel, median
from plancast.shown import Shown, Tabular

if TYPE_CHECKING:
    from rich.console import RenderableType

    from plancast.forecast import Forecast


# Kernels that end a product of several pieces (cuBLAS).
_SUMS = ("splitkreduce", "epilogue::impl")


@checked
@dataclass(frozen=True, repr=False)
class RunComparison(Immutable, Shown, Tabular):
    """A profiled run beside its forecast; made by `compare_run`.

    Times are seconds of an iteration, medians over those of the trace; of the forecast they are
    as simulated (`Forecast.simulated_time`). NCCL's own traces know collectives alone.
    """

    forecast: Forecast
    source: str
    iterations: int
    run_s: float | None
    classes: tuple[Row, ...]
    products: tuple[Row, ...]  # of the forecast's, where the run has as many, in order
    collectives: tuple[Row, ...]
    exposed: Row | None
    idle: Row | None

    def rows(self) -> tuple[Row, ...]:
        """All that can be compared, those first where most time is lost or won."""
        parts = [part for part in (self.exposed, self.idle) if part is not None]
        rows = [*self.classes, *self.collectives, *parts]
        return tuple(sorted(rows, key=lambda row: -abs(row.longer_s)))

    def records(self) -> list[dict[str, object]]:
        """The same as flat rows."""
        return [{"kind": row.kind, **row.to_dict()} for row in self.rows()]

    def to_dict(self) -> dict[str, object]:
        """The fields of `plancast learn --trace FILE --json`."""
        return {
            "source": self.source,
            "iterations": self.iterations,
            "iteration_s": self.run_s,
            "forecast_s": self.forecast.iteration_time,
            "simulated_s": self.forecast.simulated_time,
            **{
                name: [row.to_dict() for row in rows]
                for name, rows in (
                    ("classes", self.classes),
                    ("products", self.products),
                    ("collectives", self.collectives),
                )
            },
            "exposed": None if self.exposed is None else self.exposed.to_dict(),
            "idle": None if self.idle is None else self.idle.to_dict(),
        }

    def __repr__(self) -> str:
        return f"<RunComparison of {self.source}: {self.iterations} iterations>"

    def __rich__(self) -> RenderableType:
        from plancast.report.run_trace import comparison_tables

        return comparison_tables(self)


@checked
def compare_run(forecast: Forecast, traces: str | Path | Sequence[str | Path]) -> RunComparison:
    """Puts a profiled run beside its forecast.

    Args:
      forecast: of the plan that was run, with `timeline=True`.
      traces: what PyTorch's profiler wrote of one rank, or of several of the same run: of a
        collective the last rank to arrive counts then, for the others wait. Or what NCCL's
        profiler wrote.

    Raises:
      InputError: a file that is no such trace, or one of another number of ranks.
    """
    from plancast.forecast import Forecast

    arguments.instance(forecast, Forecast, "forecast", "predict(model, machine, strategy)")
    paths = [traces] if isinstance(traces, (str, Path)) else list(traces)
    if not paths:
        raise InputError("there is no trace to compare with. Give what the profiler wrote.")
    if len(paths) == 1 and not is_kineto(paths[0]):
        return _of_nccl(forecast, paths[0])
    read = [read_kineto(path) for path in paths]
    for trace in read:
        if trace.world is not None and trace.world != forecast.devices:
            raise InputError(
                f"{trace.path}: it is of a run on {trace.world} ranks, and the plan has "
                f"{forecast.devices} devices. Give the plan that was run."
            )
    return compare_iterations(forecast, read[0], typical(read))


def _of_nccl(forecast: Forecast, path: str | Path) -> RunComparison:
    from plancast.communication.traces import NcclTrace

    rows = nccl_rows(forecast, NcclTrace.open(path))
    return RunComparison(forecast, str(path), 0, None, (), (), tuple(rows), None, None)


def compare_iterations(
    forecast: Forecast, trace: RankTrace, steps: Sequence[Iteration]
) -> RunComparison:
    """The same of a trace that was read."""
    expected = forecast_iteration(forecast, trace.rank or 0)
    collectives = _collectives(expected, steps)
    exposed = median([step.exposed_s for step in steps])
    idle = median([step.idle_s for step in steps])
    return RunComparison(
        forecast=forecast,
        source=trace.path,
        iterations=len(steps),
        run_s=median([step.seconds for step in steps]),
        classes=tuple(_rows(expected, steps, lambda k: None if k.is_collective else k.kind)),
        products=tuple(_products(expected, steps)),
        collectives=tuple(collectives),
        exposed=Row("exposed", "communication not hidden", 0, 0, expected.exposed_s, exposed),
        idle=Row("idle", "nothing runs", 0, 0, expected.idle_s, idle),
    )


def _rows(
    expected: Iteration,
    steps: Sequence[Iteration],
    key: Callable[[Kernel], Hashable | None],
    name: Callable[[Kernel], str] = lambda kernel: kernel.kind,
) -> list[Row]:
    """One row for each key, those that take longest first; kernels without a key are left out."""
    own, *runs = (_grouped(iteration.kernels, key) for iteration in (expected, *steps))
    rows = [
        _row(name, own.get(each, []), [run.get(each, []) for run in runs])
        for each in dict.fromkeys([*own, *(each for run in runs for each in run)])
    ]
    return sorted(rows, key=lambda row: -max(row.forecast_s or 0, row.run_s or 0))


def _grouped(
    kernels: Iterable[Kernel], key: Callable[[Kernel], Hashable | None]
) -> dict[Hashable, list[Kernel]]:
    found: dict[Hashable, list[Kernel]] = defaultdict(list)
    for kernel in kernels:
        if (each := key(kernel)) is not None:
            found[each].append(kernel)
    return found


def _row(
    name: Callable[[Kernel], str], own: Sequence[Kernel], runs: Sequence[Sequence[Kernel]]
) -> Row:
    one = next(kernel for kernels in (own, *runs) for kernel in kernels)
    factors: dict[str, float] = defaultdict(float)
    sigmas: dict[str, float] = {}
    for kernel in own:
        if kernel.factor:
            factors[kernel.factor] += kernel.seconds
            sigmas[kernel.factor] = max(sigmas.get(kernel.factor, 0.0), kernel.sigma)
    count = round(median([len(run) for run in runs]))
    return Row(
        one.kind,
        name(one),
        len(own),
        count,
        sum(kernel.seconds for kernel in own) if own else None,
        median([sum(kernel.seconds for kernel in run) for run in runs]) if count else None,
        one.is_collective,
        tuple((each, seconds, sigmas[each]) for each, seconds in sorted(factors.items())),
    )


def _products(expected: Iteration, steps: Sequence[Iteration]) -> list[Row]:
    """Products by name, where the run has as many of them and so has them in the same order."""
    own, *runs = (_whole_products(iteration) for iteration in (expected, *steps))
    runs = [run for run in runs if len(run) == len(own)]
    places = _grouped(own, lambda kernel: kernel.name)
    where: dict[int, Hashable] = {id(kernel): kernel.name for kernel in own}
    for run in runs:
        where.update((id(kernel), other.name) for kernel, other in zip(run, own, strict=True))
    rows = [
        _row(
            lambda kernel: str(where[id(kernel)]),
            kernels,
            [[k for k in run if where[id(k)] == name] for run in runs],
        )
        for name, kernels in places.items()
        if runs
    ]
    return sorted(rows, key=lambda row: -abs(row.longer_s))


def _whole_products(iteration: Iteration) -> list[Kernel]:
    """With those that sum the pieces of the one before them."""
    found: list[Kernel] = []
    for kernel in iteration.kernels:
        if kernel.kind != "product":
            continue
        if found and any(word in kernel.name.lower() for word in _SUMS):
            found[-1] = replace(found[-1], end_s=found[-1].end_s + kernel.seconds)
        else:
            found.append(kernel)
    return found


def _collectives(expected: Iteration, steps: Sequence[Iteration]) -> list[Row]:
    """By kind, ranks and size; by kind alone where the run does not say more."""
    everything = [k for i in (expected, *steps) for k in i.kernels if k.is_collective]
    silent = {k.kind for k in everything if k.size is None or not k.ranks}
    sizes: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
    for kernel in everything:
        known = sizes[kernel.kind, kernel.ranks]
        size = kernel.size or 0
        known.setdefault(size, next((k for k in known.values() if same_size(k, size)), size))

    def key(kernel: Kernel) -> Hashable | None:
        if not kernel.is_collective:
            return None
        if kernel.kind in silent:
            return kernel.kind
        return kernel.kind, kernel.ranks, sizes[kernel.kind, kernel.ranks][kernel.size or 0]

    def name(kernel: Kernel) -> str:
        if kernel.kind in silent:
            return kernel.kind
        return named(kernel.kind, kernel.size or 0, kernel.ranks)

    return _rows(expected, steps, key, name)
