"""What a framework's own recipe takes beside a plan that was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plancast.errors import InputError
from plancast.frameworks.megatron_model import multi_token
from plancast.recipes.choose import recipe
from plancast.recipes.table import framework
from plancast.strategy import Strategy
from plancast.strategy_words import without

if TYPE_CHECKING:
    from plancast.forecast import Forecast
    from plancast.launch_config import LaunchConfig
    from plancast.machine import Machine
    from plancast.model import Model

# Plans that differ by less take as long.
AS_FAST = 0.005


def recipe_plan(model: Model, machine: Machine, **run: Any) -> Forecast | None:
    """The forecast of a recipe's plan; none where there is no recipe, or the batch is not for it.

    Args:
      model: what is trained.
      machine: where.
      run: as `plancast.predict` takes it: `batch`, `dtype`, `profile`, ...
    """
    from plancast.planning import predict

    try:
        launch = recipe(model, machine, dtype=run.get("dtype"))
        return predict(model, machine, _for(model, launch), **run)
    except InputError:
        return None


def beside(plans: Sequence[Forecast], theirs: Forecast) -> str:
    """How a recipe's plan compares with those that were found, in words.

    Args:
      plans: the answer first, which may be the recipe's.
      theirs: of the recipe.
    """
    from plancast.textual import duration, percent

    best = plans[0]
    if best is theirs:
        what = f"this is the plan of {framework()}'s recipe"
        found = next((plan for plan in plans if plan is not theirs), None)
        if found is None:
            return what
        more = percent(found.iteration_time / theirs.iteration_time - 1)
        took = duration(found.iteration_time)
        return f"{what}; of the default space {found.strategy} takes {took}, {more} more"
    what = f"the plan of {framework()}'s recipe, {theirs.strategy},"
    if not theirs.fits:
        return f"{what} does not fit here"
    slower = theirs.iteration_time / best.iteration_time - 1
    if abs(slower) < AS_FAST:
        return f"{what} takes as long"
    than = f"{percent(abs(slower))} {'more' if slower > 0 else 'less'}"
    return f"{what} takes {duration(theirs.iteration_time)}, {than}"


def _for(model: Model, launch: LaunchConfig) -> Strategy:
    """The recipe's plan; how it deals layers counts modules of multi-token prediction."""
    plan = launch.strategy.short_form
    if multi_token(launch.model) != multi_token(model):
        plan = without(plan, "layout")
    return Strategy.parse(plan)
