"""Several training jobs on one machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from plancast import _core, arguments
from plancast.checked import checked
from plancast.errors import InputError
from plancast.forecast import Forecast
from plancast.machine import Machine
from plancast.model import Model
from plancast.planning import DEFAULT_PROFILE, check_nouns
from plancast.question import core_of
from plancast.session import Session
from plancast.strategy import Strategy


@checked
@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """A job and where and when it runs.

    Args:
      name: what reports call it.
      model: what is trained.
      strategy: a tree, or its short form.
      placement: `hosts 0-3`, `hosts 0-3 gpus 0-3`, `gpus 0-3` (of every host) or
        `devices 0-15,32`, counted from 0.
      arrival: when it begins, seconds after the first.
      batch: global batch, samples per step; absent: dp * mb * accum.
      dtype: matmul precision.
      profile: how its framework runs.
    """

    name: str
    model: Model
    strategy: Strategy | str
    placement: str
    arrival: float = 0.0
    batch: int | None = None
    dtype: str = "bf16"
    profile: str = DEFAULT_PROFILE


@dataclass(frozen=True)
class JobForecast:
    """One iteration of a job beside others.

    `forecast` counts time from the job's arrival; `alone` is its iteration time with
    the machine to itself, seconds; `shares_links_with` names the jobs that it may meet.
    """

    name: str
    arrival: float
    forecast: Forecast
    alone: float
    shares_links_with: tuple[str, ...]

    @property
    def slowdown(self) -> float:
        """How many times as long as alone the iteration takes."""
        return self.forecast.iteration_time / self.alone if self.alone > 0 else 1.0

    def to_dict(self) -> dict[str, Any]:
        """The fields of a prediction, and those of a job."""
        return {
            "name": self.name,
            "arrival_s": self.arrival,
            "alone_s": self.alone,
            "slowdown": self.slowdown,
            "shares_links_with": list(self.shares_links_with),
            **self.forecast.to_dict(),
        }


# What `_core.predict_jobs` takes of a job.
_Request = tuple[str, _core.Model, _core.Strategy, int | None, str, str, str, float]


@dataclass(frozen=True)
class _JobQuestion:
    """Which of several jobs a forecast is of."""

    jobs: tuple[TrainingJob, ...]
    index: int
    machine: Machine
    session: Session

    def answer(self) -> _core.Forecast:
        """The forecast, made anew beside the others."""
        requests = [_request(job, self.machine, self.session) for job in self.jobs]
        rows = _core.predict_jobs(requests, self.machine._core, self.session._core)
        return rows[self.index].forecast

    def advise(self) -> str:
        """What would fit, if the plan does not."""
        request = _request(self.jobs[self.index], self.machine, self.session)
        _, model, strategy, batch, dtype, profile, placement, _ = request
        return _core.fit_advice(
            model,
            _core.job_machine(self.machine._core, placement),
            strategy,
            self.session._core,
            batch=batch,
            dtype=dtype,
            profile=profile,
            precision={},
            datasheet=False,
        )


def _request(job: TrainingJob, machine: Machine, session: Session | None) -> _Request:
    how = 'TrainingJob(name="a", model=model, strategy="tp=8", placement="hosts 0-3")'
    arguments.instance(job, TrainingJob, "job", how)
    check_nouns(job.model, machine, session)
    return (
        arguments.word(job.name, "name"),
        job.model._core,
        core_of(job.strategy).copy(),
        arguments.batch(job.batch),
        arguments.dtype(job.dtype),
        arguments.profile(job.profile, machine.gpu),
        arguments.word(job.placement, "placement"),
        arguments.number(job.arrival, "arrival"),
    )


@checked
def predict_jobs(
    jobs: Iterable[TrainingJob], machine: Machine, *, session: Session | None = None
) -> list[JobForecast]:
    """Predicts one iteration of each job, all together on one machine.

    Jobs keep to their devices and share links: interfaces of a host, uplinks, host
    bridges. Jobs that cannot meet on a link do not change each other by a digit.

    >>> model = Model.preset("llama3-8b")
    >>> one, two = predict_jobs(
    ...     [
    ...         TrainingJob(name="one", model=model, strategy="tp=4,zero=1,mb=1",
    ...                     placement="gpus 0-3", batch=16),
    ...         TrainingJob(name="two", model=model, strategy="tp=4,zero=1,mb=1",
    ...                     placement="gpus 4-7", batch=16),
    ...     ],
    ...     Machine.preset("dgx-a100-80g", hosts=2))
    >>> one.slowdown >= 1.0, one.forecast.devices
    (True, 8)
    """
    asked = tuple(jobs)
    requests = [_request(job, machine, session) for job in asked]
    if not requests:
        raise InputError("there are no jobs. Give at least one TrainingJob.")
    # What is asked of a tree later is what it said now.
    asked = tuple(
        job if isinstance(job.strategy, str) else replace(job, strategy=job.strategy.copy())
        for job in asked
    )
    memo = session or Session()
    results = _core.predict_jobs(requests, machine._core, memo._core)
    return [
        JobForecast(
            row.name,
            row.arrival_s,
            Forecast(
                row.forecast,
                {"dtype": arguments.dtype(job.dtype)},
                question=_JobQuestion(asked, index, machine, memo),
            ),
            row.alone_s,
            tuple(row.shares_links_with),
        )
        for index, (row, job) in enumerate(zip(results, asked, strict=True))
    ]
