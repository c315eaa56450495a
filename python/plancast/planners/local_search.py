"""Local search over strategy trees, each scored by the executor."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from plancast.checked import checked
from plancast.errors import InputError
from plancast.planners.grid import best_of_grid
from plancast.planners.moves import Moves
from plancast.planners.plan import Plan
from plancast.planning import DEFAULT_PROFILE, predict
from plancast.progress import Progress, following
from plancast.session import Session
from plancast.strategy import Strategy

if TYPE_CHECKING:
    from plancast.forecast import Forecast
    from plancast.machine import Machine
    from plancast.model import Model

_FORECASTS = 400
# A plan this much slower is accepted with probability 1/e at the beginning, one a tenth of it
# at the end.
_WARMTH = 0.02


@checked
def local_search(
    model: Model,
    machine: Machine,
    *,
    batch: int,
    start: Strategy | str | None = None,
    forecasts: int = _FORECASTS,
    seed: int = 0,
    space: str = "",
    dtype: str = "bf16",
    profile: str = DEFAULT_PROFILE,
    session: Session | None = None,
    progress: Progress = None,
) -> Plan:
    """Changes one thing of a tree at a time and keeps what is faster, now and then what is slower.

    The walk is that of simulated annealing (as FlexFlow's over its space, MLSys'19); a change is
    one of `Moves`. Every tree is predicted in full; what trees share is remembered by the session.
    The result is the fastest tree met that fits, the first one included, so it is never worse than
    its start. The same seed gives the same plan.

    Args:
      model: what is trained.
      machine: where.
      batch: global batch, samples per step.
      start: a tree or its short form; by default the best plan of the grid.
      forecasts: how many trees are tried.
      seed: of the walk.
      space: of the grid, as `rank` takes it.
      dtype: matmul precision.
      profile: how the framework runs.
      session: shared memo of the forecasts.
      progress: called with trees tried and trees in all; by default a bar.

    Raises:
      InputError: the start does not fit, or is refused.

    >>> from plancast import Machine, Model
    >>> plan = local_search(Model.preset("alexnet"), Machine.preset("dgx-a100-80g:1x4"), batch=256,
    ...                     start="dp=4,mb=64", forecasts=20)
    >>> plan.iteration_time <= plan.details["start_seconds"]
    True
    """
    if forecasts < 1:
        raise InputError(f"{forecasts} forecasts; a search tries at least one tree.")
    memo = session or Session()
    asked: dict[str, Any] = {"batch": batch, "dtype": dtype, "profile": profile, "session": memo}
    if start is None:
        first = best_of_grid(model, machine, space=space, **asked).strategy
    else:
        first = Strategy.parse(start) if isinstance(start, str) else start.copy()

    def score(strategy: Strategy) -> Forecast:
        return predict(model, machine, strategy, memory_first=True, **asked)

    here, now = first.to_dict(), score(first)
    if not now.fits:
        raise InputError(
            f"`{first}` needs {now.peak_memory / 2**30:.3g} GiB of a device and there are "
            f"{now.memory_capacity / 2**30:.3g}; start from a plan that fits, such as that of "
            "another method."
        )
    begun = now.iteration_time
    best, fastest = first, now
    rng = random.Random(seed)
    moves = Moves(model, rng)
    refused = unfit = 0
    with following(progress, "trees") as tell:
        for number in range(forecasts):
            if tell is not None:
                tell(number, forecasts)
            changed = moves.change(here)
            try:
                strategy = Strategy.from_dict(changed)
                found = score(strategy)
            except InputError:
                refused += 1
                continue
            if not found.fits:
                unfit += 1
                continue
            warmth = _WARMTH * 0.1 ** (number / forecasts)
            slower = found.iteration_time / now.iteration_time - 1
            if slower <= 0 or rng.random() < math.exp(-slower / warmth):
                here, now = changed, found
            if found.iteration_time < fastest.iteration_time:
                best, fastest = strategy, found
    best, fastest = _tidied(best, fastest, first, score)
    return Plan(
        "local-search",
        best,
        fastest.iteration_time,
        "s",
        predict(model, machine, best, **asked),
        {
            "start": str(first),
            "start_seconds": begun,
            "forecasts": forecasts,
            "refused": refused,
            "unfit": unfit,
        },
    )


def _tidied(
    best: Strategy,
    fastest: Forecast,
    first: Strategy,
    score: Callable[[Strategy], Forecast],
) -> tuple[Strategy, Forecast]:
    """Without what changes nothing for the better: words of the plan, then nodes."""
    for path in [None, *(best.to_dict().get("nodes") or {})]:
        tree = best.to_dict()
        if path is None:
            tree["plan"] = first.short_form
        else:
            tree["nodes"] = {other: node for other, node in tree["nodes"].items() if other != path}
        try:
            without = Strategy.from_dict(tree)
            found = score(without)
        except InputError:
            continue
        if found.fits and found.iteration_time <= fastest.iteration_time:
            best, fastest = without, found
    return best, fastest
