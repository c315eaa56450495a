"""Learning from runs of one's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from plancast import arguments
from plancast.checked import checked
from plancast.errors import InputError
from plancast.forecast import Forecast
from plancast.learned import Evidence, Learned
from plancast.learned_memory import RAN, MemoryEvidence
from plancast.run_traces.compare import RunComparison
from plancast.run_traces.evidence import evidence_of

_LONGEST_S = 1e7  # of an iteration
_MOST_GIB = 1e6  # of a device


@checked
def learn(
    runs: str | Path | Iterable[str | Path | tuple[Forecast, float] | RunComparison] = (),
    *,
    memory: Iterable[tuple[Forecast, float | None]] = (),
    earlier: Learned | None = None,
) -> Learned:
    """What measured runs tell of forecasts (docs/learning.md).

    Args:
      runs: CSV files of runs with the columns of `plancast validate`, pairs of a forecast and
        the seconds that an iteration took, or profiled runs (`compare_run`).
      memory: pairs of a forecast and the GiB that its fullest device held; None where the run
        ran out of memory.
      earlier: what was learned before, to which the runs are added.

    Raises:
      InputError: a file that cannot be read, a run without time or without a forecast.

    >>> from plancast.machine import Machine
    >>> from plancast.model import Model
    >>> from plancast.planning import predict
    >>> from plancast.session import Session
    >>> model, machine = Model.preset("llama3-8b"), Machine.preset("dgx-h100")
    >>> forecast = predict(model, machine, "tp=2,mb=1", batch=16)
    >>> ours = learn([(forecast, 1.1 * forecast.iteration_time)])
    >>> again = predict(model, machine, "tp=2,mb=1", batch=16, session=Session(learned=ours))
    >>> 1.02 < again.iteration_time / forecast.iteration_time < 1.1
    True
    """
    given = [runs] if isinstance(runs, (str, Path)) else list(runs)
    files = [run for run in given if isinstance(run, (str, Path))]
    evidence, held = _of_files(files) if files else ([], [])
    pairs = [run for run in given if isinstance(run, tuple)]
    evidence += [_of_pair(i, *pair) for i, pair in enumerate(pairs)]
    profiled = [run for run in given if isinstance(run, RunComparison)]
    evidence += [each for run in profiled for each in evidence_of(run)]
    held += [_of_memory(i, *pair) for i, pair in enumerate(memory)]
    if not evidence and not held:
        raise InputError(
            "there are no runs to learn from. Give a CSV with the columns of `plancast validate`, "
            "or pairs of a forecast and its measured seconds."
        )
    learned = Learned(tuple(evidence), memory=tuple(held))
    return learned if earlier is None else earlier.merge(learned)


def _of_pair(index: int, forecast: Forecast, measured: float) -> Evidence:
    arguments.instance(forecast, Forecast, "forecast", "predict(model, machine, strategy)")
    if not 0 < measured < _LONGEST_S:
        raise InputError(
            f"run {index}: `{measured}` seconds; give what an iteration took, above 0."
        )
    if not forecast.iteration_time > 0:
        raise InputError(f"run {index}: its forecast has no time, for the plan does not fit.")
    run = f"{forecast.model} on {forecast.machine}, {forecast.strategy}, {measured:.6g} s"
    return Evidence.of(run, forecast.gpu, forecast, measured)


def _of_memory(index: int, forecast: Forecast, gib: float | None) -> MemoryEvidence:
    arguments.instance(forecast, Forecast, "forecast", "predict(model, machine, strategy)")
    if gib is not None and not 0 < gib < _MOST_GIB:
        raise InputError(f"run {index}: `{gib}` GiB; give what a device held, or None.")
    held = "out of memory" if gib is None else f"{gib:.6g} GiB"
    run = f"{forecast.model} on {forecast.machine}, {forecast.strategy}, {held}"
    size = None if gib is None else gib * (1 << 30)
    return MemoryEvidence.of(run, forecast.gpu, forecast, size)


def _of_files(paths: Sequence[str | Path]) -> tuple[list[Evidence], list[MemoryEvidence]]:
    from plancast.accuracy.validation.run import validate

    results = validate(paths).results
    evidence = [r.evidence for r in results if r.evidence is not None]
    held = [r.memory_evidence for r in results if r.memory_evidence is not None]
    if not evidence and not any(each.kind != RAN for each in held):
        first = results[0]
        reason = first.unsupported or "it has no measured time and no memory"
        raise InputError(
            f"none of {len(results)} rows tells anything; `{first.row.row_id}`: {reason}."
        )
    return evidence, held
