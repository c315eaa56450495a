"""Plans whose difference lies inside the errors of their forecasts, and which of them to take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from plancast.simplicity import complexity
from plancast.uncertainty import NINETY_FIVE_PERCENT, ErrorStructure, difference_scale

if TYPE_CHECKING:
    import numpy as np

# Draws of the errors of all plans, from a fixed seed: probabilities are within 0.01.
_DRAWS = 20_000
_DEGREES = 4  # of freedom, of Student's t
# Plans that are looked at: a plan further down that could be best is no news.
_MOST = 50
# Of the likeliest's probability: with less a plan is not preferred for being simple.
_LEAST_CHANCE = 0.1


class TimedPlan(ErrorStructure, Protocol):
    """What ties are made of: a `Forecast`."""

    @property
    def iteration_time(self) -> float:
        """Seconds."""

    @property
    def strategy(self) -> str:
        """Short form."""

    @property
    def chosen(self) -> dict[str, str]:
        """With all that it leaves open."""


@dataclass(frozen=True)
class Tie:
    """A plan that may be the best, the one at `position` by time (0: forecast to be fastest)."""

    position: int
    strategy: str
    probability: float  # that it is the best of those that tie
    complexity: tuple[int, ...]


def ties(plans: Sequence[TimedPlan]) -> list[Tie]:
    """The plans that tie with the fastest, the simplest first.

    A plan ties if 0 lies in the central 90 % of its difference from the fastest, errors that both
    share (kernels of a GPU, a link, a software) cancelled. One alone: there is no tie. Plans with
    less than a tenth of the likeliest's probability come after the others.

    Args:
      plans: forecasts of one job, the fastest first, as a `Ranking` has them.
    """
    considered = list(plans[:_MOST])
    if not considered:
        return []
    best = considered[0]
    tied = [
        index
        for index, plan in enumerate(considered)
        if plan.iteration_time - best.iteration_time
        <= NINETY_FIVE_PERCENT * difference_scale(best, plan)
    ]
    probabilities = best_probabilities([considered[index] for index in tied])
    found = [
        Tie(index, considered[index].strategy, probability, complexity(considered[index]))
        for index, probability in zip(tied, probabilities, strict=True)
    ]
    least = _LEAST_CHANCE * max(probabilities)
    return sorted(found, key=lambda t: (t.probability < least, t.complexity, t.position))


def best_probabilities(plans: Sequence[TimedPlan]) -> list[float]:
    """The probability of each that it is the fastest of them; they sum to one.

    Errors are drawn as the model of uncertainty has them: a normal variable for each factor that
    plans share and one for each plan of its own, all over the root of one chi square with four
    degrees of freedom, so that each plan's error is Student's t.
    """
    import numpy as np

    if len(plans) < 2:
        return [1.0] * len(plans)
    factors = [plan.factors() for plan in plans]
    names = sorted({name for own in factors for name in own})
    # What hangs on a factor counts with the largest scale, as between two plans.
    scales = [max(own[name][1] for own in factors if name in own) for name in names]
    loads = np.array(
        [[own.get(n, (0.0, 0.0))[0] * s for n, s in zip(names, scales, strict=True)]
         for own in factors]
    )  # fmt: skip
    own = np.sqrt(np.array([plan.own_variance_s2 for plan in plans]))
    times = np.array([plan.iteration_time for plan in plans])
    draw = np.random.default_rng(0)
    shared = draw.standard_normal((_DRAWS, len(names)))
    alone = draw.standard_normal((_DRAWS, len(plans)))
    width = np.sqrt(_DEGREES / draw.chisquare(_DEGREES, (_DRAWS, 1)))
    errors = _both_signs((shared @ loads.T + alone * own) * width)
    winners = np.argmin(times + errors, axis=1)
    return [float(share) for share in np.bincount(winners, minlength=len(plans)) / len(winners)]


def _both_signs(errors: np.ndarray) -> np.ndarray:
    import numpy as np

    return np.concatenate([errors, -errors])
