"""Predicting one measured row."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from plancast.accuracy.validation.architecture import UnsupportedError
from plancast.accuracy.validation.epoch import epoch_share
from plancast.accuracy.validation.flops import UnknownFormulaError, measured_seconds
from plancast.accuracy.validation.jobs import Candidate, RowJob, prepare
from plancast.accuracy.validation.residuals import ErrorTerms, Residual, terms_of
from plancast.accuracy.validation.rows import Row
from plancast.accuracy.validation.timed import timed_share
from plancast.errors import InputError
from plancast.forecast import Forecast
from plancast.learned import Evidence
from plancast.learned_memory import MemoryEvidence
from plancast.machine import Machine
from plancast.planning import predict
from plancast.session import Session
from plancast.strategy import Strategy


@dataclass(frozen=True)
class RowResult:
    """A row beside its forecast; `unsupported` says why there is none."""

    row: Row
    measured: float | None = None
    predicted: float | None = None
    interval: tuple[float, float] | None = None
    fits: bool | None = None
    predicted_peak_mem_gb: float | None = None
    chosen: dict[str, str] | None = None
    unsupported: str | None = None
    # Seconds the row would take at 100 % MFU of the model's FLOPs.
    ideal_s: float | None = None
    # The same of all FLOPs that it executes, recomputation included.
    executed_s: float | None = None
    breakdown: dict[str, float] | None = None
    strategy: str = ""  # in canonical form, with what was chosen
    devices: int = 0
    parameters: int = 0
    # The forecast without any calibration, if asked for.
    uncalibrated: float | None = None
    # The forecast with the changes of a what-if, if asked for.
    changed: float | None = None
    warnings: tuple[str, ...] = ()
    terms: ErrorTerms | None = None
    # ln(predicted / simulated): what runs of the software take beyond its kernels.
    level: float = 0.0
    # What a run tells who learns from it (plancast/learned.py); of rows with a time.
    evidence: Evidence | None = None
    # The same of memory (plancast/learned_memory.py).
    memory_evidence: MemoryEvidence | None = None

    @property
    def residual(self) -> Residual | None:
        """What the row says of the errors of forecasts."""
        if not self.measured or not self.predicted or self.terms is None:
            return None
        value = math.log(self.measured / self.predicted) + self.level
        return Residual(self.row.row_id, self.row.source, value, self.terms)

    @property
    def error(self) -> float | None:
        """predicted / measured - 1."""
        if self.measured is None or self.predicted is None:
            return None
        return self.predicted / self.measured - 1

    @property
    def memory_error(self) -> float | None:
        """predicted / printed peak memory - 1, of rows that ran."""
        if self.predicted_peak_mem_gb is None or not self.row.peak_mem_gb or self.row.oom:
            return None
        return self.predicted_peak_mem_gb / self.row.peak_mem_gb - 1

    @property
    def prints_allocated(self) -> bool:
        """The row's memory is that of the framework's tensors or segments, not the device's."""
        meaning = _meaning(self.row)
        return meaning.startswith("GB") or "allocated" in meaning or "reserved" in meaning

    def to_dict(self) -> dict[str, Any]:
        """The entry of `validate --json`."""
        return {
            "row_id": self.row.row_id,
            "measured": self.measured,
            "predicted": self.predicted,
            "error": self.error,
            "interval": list(self.interval) if self.interval else None,
            "fits": self.fits,
            "predicted_peak_mem_gb": self.predicted_peak_mem_gb,
            "chosen": self.chosen or {},
            "unsupported": self.unsupported,
        }


def predict_row(
    row: Row,
    machine: Machine | str,
    session: Session,
    *,
    uncalibrated: bool = False,
    what_if: str = "",
) -> RowResult:
    """The forecast of one row; a machine that is text is the reason why there is none.

    With `uncalibrated` also what data sheets alone say of the same plan, with `what_if`
    what the simulation says with these changes.
    """
    try:
        if isinstance(machine, str):
            raise UnsupportedError(machine)
        job = prepare(row)
        forecast, candidate, chosen = _best(job, machine, session)
        measured = measured_seconds(
            row, job.model.parameters, machine.devices, forecast._core.peak_flops_per_gpu
        )
        share = _share(job, candidate, machine, session, forecast)
        nominal = None
        if uncalibrated:
            nominal = _timed(job, candidate, machine, session, datasheet=True)
    except (UnsupportedError, UnknownFormulaError) as error:
        return RowResult(row, measured=row.iter_time_s, unsupported=str(error))
    except InputError as error:
        return RowResult(row, measured=row.iter_time_s, unsupported=str(error))
    # A change that cannot be made is no reason to leave a row out.
    changed = None
    if what_if:
        changed = _timed(job, candidate, machine, session, what_if=what_if)
    return RowResult(
        row,
        measured=measured,
        predicted=forecast.iteration_time * share,
        interval=(forecast.interval[0] * share, forecast.interval[1] * share),
        fits=forecast.fits,
        predicted_peak_mem_gb=_memory_gib(row, forecast),
        chosen={**forecast.chosen, **job.chosen, **chosen},
        ideal_s=_at_peak(forecast, forecast._core.model_flops),
        executed_s=_at_peak(forecast, forecast._core.hardware_flops),
        breakdown=forecast.breakdown(),
        strategy=forecast.strategy,
        devices=forecast.devices,
        parameters=job.model.parameters,
        uncalibrated=nominal,
        changed=changed,
        warnings=tuple(forecast.warnings),
        terms=terms_of(forecast, machine.gpu),
        level=math.log1p(forecast.beyond_simulated),
        evidence=(
            Evidence.of(row.row_id, machine.gpu, forecast, measured / share) if measured else None
        ),
        memory_evidence=_memory_evidence(row, machine.gpu, forecast),
    )


def _timed(
    job: RowJob, candidate: Candidate, machine: Machine, session: Session, **how: Any
) -> float:
    """Seconds of what the row timed, predicted in another way."""
    forecast = _predict(job, candidate, machine, session, **how)
    return forecast.iteration_time * _share(job, candidate, machine, session, forecast, **how)


def _share(
    job: RowJob,
    candidate: Candidate,
    machine: Machine,
    session: Session,
    forecast: Forecast,
    **how: Any,
) -> float:
    """What the row timed, as a multiple of the forecast's iteration."""

    def again(strategy: Strategy, batch: int) -> Forecast:
        other = replace(candidate, strategy=strategy)
        return _predict(job, other, machine, session, batch=batch, **how)

    of_epoch = epoch_share(job.row, candidate.strategy, forecast, again)
    return timed_share(job.row, forecast) * of_epoch


def _memory_evidence(row: Row, gpu: str, forecast: Forecast) -> MemoryEvidence | None:
    if not forecast.memory:
        return None
    if row.oom:
        return MemoryEvidence.of(row.row_id, gpu, forecast, None)
    if not row.peak_mem_gb:
        return MemoryEvidence.of_fitting(row.row_id, gpu, forecast)
    unit = _memory_unit(row)
    expected = _memory_gib(row, forecast)
    assert expected is not None
    return MemoryEvidence.of(row.row_id, gpu, forecast, row.peak_mem_gb * unit, of=expected * unit)


def _best(
    job: RowJob, machine: Machine, session: Session
) -> tuple[Forecast, Candidate, dict[str, str]]:
    """The forecast of what the row says, with the unknown keys chosen.

    Recomputation: the first of none, selective, full that fits; the
    micro-batch: the fastest that then fits. If nothing fits, the smallest
    memory stands for the row.
    """
    if len(job.candidates) == 1:
        only = job.candidates[0]
        return _predict(job, only, machine, session), only, {}
    fitting: list[tuple[Forecast, Candidate]] = []
    failures: list[InputError] = []
    smallest: tuple[Forecast, Candidate] | None = None
    done: set[int | None] = set()
    for candidate in job.candidates:
        if candidate.micro_batch in done:
            continue
        try:
            forecast = _predict(job, candidate, machine, session, memory_first=True)
        except InputError as error:
            failures.append(error)
            continue
        if forecast.fits:
            fitting.append((forecast, candidate))
            done.add(candidate.micro_batch)
        elif smallest is None or forecast.peak_memory < smallest[0].peak_memory:
            smallest = (forecast, candidate)
    if fitting:
        forecast, candidate = min(fitting, key=lambda entry: entry[0].iteration_time)
    elif smallest is not None:
        candidate = smallest[1]
        forecast = _predict(job, candidate, machine, session)
    else:
        raise failures[0]
    chosen = {}
    if candidate.micro_batch is not None:
        chosen["mb"] = f"{candidate.micro_batch} (unknown: fastest that fits)"
    if forecast.profile != job.profile:
        chosen["profile"] = f"{forecast.profile} (`{job.profile}` on {machine.gpu})"
    if candidate.recompute is not None:
        chosen["recompute"] = f"{candidate.recompute} (unknown: first that fits)"
    return forecast, candidate, chosen


def _predict(
    job: RowJob,
    candidate: Candidate,
    machine: Machine,
    session: Session,
    *,
    batch: int | None = None,
    memory_first: bool = False,
    datasheet: bool = False,
    what_if: str = "",
) -> Forecast:
    return predict(
        job.model,
        machine,
        candidate.strategy,
        batch=job.row.global_batch if batch is None else batch,
        dtype=job.dtype,
        profile=job.profile,
        session=session,
        cuda_graphs=job.cuda_graphs,
        memory_first=memory_first,
        datasheet=datasheet,
        what_if=what_if,
        **job.types,
    )


def _at_peak(forecast: Forecast, flops: float) -> float | None:
    rate = forecast._core.peak_flops_per_gpu * forecast.devices
    return flops / rate if rate > 0 else None


def _meaning(row: Row) -> str:
    return row.assumption("mem") or row.assumption("mem_unit") or ""


def _memory_unit(row: Row) -> float:
    return 1e9 if _meaning(row).startswith("GB") else float(1 << 30)


def _memory_gib(row: Row, forecast: Forecast) -> float | None:
    """Peak memory in the meaning of the row's `mem=` token, GiB (GB where it says GB)."""
    if not forecast.memory:
        return None
    meaning, unit = _meaning(row), _memory_unit(row)
    if "allocated" in meaning or meaning.startswith("GB"):
        return max(entry.allocated for entry in forecast.memory) / unit
    if "reserved" in meaning:
        # What the framework reads of its allocator: with free blocks, stream by stream.
        return forecast.memory.placement().reserved / unit
    return max(entry.device for entry in forecast.memory) / unit
