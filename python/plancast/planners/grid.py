"""The best plan of the grid that `rank` tries, as a plan like those of the other planners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plancast.checked import checked
from plancast.errors import InputError
from plancast.planners.plan import Plan
from plancast.planning import DEFAULT_PROFILE, rank
from plancast.strategy import Strategy

if TYPE_CHECKING:
    from plancast.machine import Machine
    from plancast.model import Model
    from plancast.session import Session


@checked
def best_of_grid(
    model: Model,
    machine: Machine,
    *,
    batch: int,
    space: str = "",
    dtype: str = "bf16",
    profile: str = DEFAULT_PROFILE,
    session: Session | None = None,
) -> Plan:
    """The fastest plan that fits, of all that `rank` tries.

    Args:
      model: what is trained.
      machine: where.
      batch: global batch, samples per step.
      space: which plans, as `rank` takes it; by default `rank`'s own, of nets without sequences
        with all micro-batches.
      dtype: matmul precision.
      profile: how the framework runs.
      session: shared memo of the forecasts.

    Raises:
      InputError: no plan of the space fits.
    """
    if not space and model.seq == 0:
        space = "mb=*"
    ranking = rank(
        model,
        machine,
        batch=batch,
        space=space,
        top=1,
        dtype=dtype,
        profile=profile,
        session=session,
    )
    if not len(ranking):
        most = max(ranking.excluded.items(), key=lambda item: item[1], default=("no plan", 0))
        raise InputError(
            f"no plan of the space fits on {machine}; of most, {most[1]}, it says: {most[0]}. Take "
            "more devices or another --space, or a method that cuts single ops."
        )
    best = ranking[0]
    details = {"evaluated": ranking.evaluated, "space": ranking.space}
    return Plan("grid", Strategy.parse(best.strategy), best.iteration_time, "s", best, details)
