"""Random iterations of a run: what they take more on average than one without noise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from plancast.errors import InputError
from plancast.machine import Machine
from plancast.model import Model
from plancast.planning import predict
from plancast.randomness import Randomness
from plancast.training.phases import Settled
from plancast.training.training_run import Jitter, PhaseRun


def jittered(
    model: Model,
    machine: Machine,
    phase: Settled,
    run: PhaseRun,
    randomness: Randomness,
    how: dict[str, Any],
) -> PhaseRun:
    """The phase whose steps take what random iterations of its plan do on average."""
    try:
        forecast = predict(
            phase.model(model), machine, run.forecast.plan, batch=phase.batch, dtype=phase.dtype,
            randomness=randomness, **how,
        )  # fmt: skip
    except InputError as error:
        raise InputError(f"random iterations of `{phase.name}`: {error}") from None
    found = forecast.distribution
    assert found is not None
    return replace(
        run,
        jitter=Jitter(
            factor=found.mean_s / forecast.iteration_time,
            deviation=found.stddev_s / forecast.iteration_time,
            samples=len(found.samples_s),
            seed=randomness.seed,
        ),
    )
