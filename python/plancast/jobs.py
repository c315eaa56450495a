"""Several training jobs on one machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from plancast import _core, arguments
from plancast.errors import InputError
from plancast.forecast import Forecast
from plancast.machine import Machine
from plancast.model import Model
from plancast.planning import DEFAULT_PROFILE, check_nouns, tree_of
from plancast.session import Session
from plancast.strategy import Strategy


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


def _fit_advice(request: _Request, machine: _core.Machine, session: _core.Session) -> str:
    _, model, strategy, batch, dtype, profile, placement, _ = request
    return _core.fit_advice(
        model,
        _core.job_machine(machine, placement),
        strategy,
        session,
        batch=batch,
        dtype=dtype,
        profile=profile,
        precision={},
        datasheet=False,
    )


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
    core = (session or Session())._core
    requests = []
    jobs = list(jobs)
    for job in jobs:
        how = 'TrainingJob(name="a", model=model, strategy="tp=8", placement="hosts 0-3")'
        arguments.instance(job, TrainingJob, "job", how)
        check_nouns(job.model, machine, session)
        requests.append(
            (
                arguments.word(job.name, "name"),
                job.model._core,
                tree_of(job.strategy).copy()._core,
                arguments.batch(job.batch),
                arguments.dtype(job.dtype),
                arguments.word(job.profile, "profile"),
                arguments.word(job.placement, "placement"),
                arguments.number(job.arrival, "arrival"),
            )
        )
    if not requests:
        raise InputError("there are no jobs. Give at least one TrainingJob.")
    results = _core.predict_jobs(requests, machine._core, core)
    return [
        JobForecast(
            row.name,
            row.arrival_s,
            Forecast(
                row.forecast,
                {"dtype": arguments.dtype(job.dtype)},
                advise=partial(_fit_advice, request, machine._core, core),
            ),
            row.alone_s,
            tuple(row.shares_links_with),
        )
        for row, request, job in zip(results, requests, jobs, strict=True)
    ]
