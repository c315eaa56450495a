"""Learning from runs of one's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from plancast import arguments
from plancast.checked import checked
from plancast.errors import InputError
from plancast.forecast import Forecast
from plancast.learned import Evidence, Learned

_LONGEST_S = 1e7  # of an iteration


@checked
def learn(
    runs: str | Path | Iterable[str | Path | tuple[Forecast, float]],
    *,
    earlier: Learned | None = None,
) -> Learned:
    """What measured runs tell of forecasts (docs/learning.md).

    Args:
      runs: CSV files of runs with the columns of `plancast validate`, or pairs of a forecast and
        the seconds that an iteration took.
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
    evidence = list(_of_files(files)) if files else []
    pairs: Sequence[tuple[Forecast, float]] = [
        run for run in given if not isinstance(run, (str, Path))
    ]
    evidence += [_of_pair(i, *pair) for i, pair in enumerate(pairs)]
    if not evidence:
        raise InputError(
            "there are no runs to learn from. Give a CSV with the columns of `plancast validate`, "
            "or pairs of a forecast and its measured seconds."
        )
    learned = Learned(tuple(evidence))
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


def _of_files(paths: Sequence[str | Path]) -> Iterable[Evidence]:
    from plancast.accuracy.validation.run import validate

    board = validate(paths)
    without = [r for r in board.results if r.evidence is None]
    if without and len(without) == len(board.results):
        first = without[0]
        reason = first.unsupported or "it has no measured time"
        raise InputError(
            f"none of {len(without)} rows tells anything; `{first.row.row_id}`: {reason}."
        )
    return (r.evidence for r in board.results if r.evidence is not None)
