"""A good plan in a second: a ranking of few candidates, then a closer look at the best."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from plancast.default_space import LARGE
from plancast.errors import InputError
from plancast.forecast import Forecast
from plancast.framework_limits import why_framework_cannot_run
from plancast.machine import Machine
from plancast.model import Model
from plancast.planning import rank
from plancast.ranking import Ranking
from plancast.simplicity import simplest_of_ties

Tell: TypeAlias = Callable[[int, int], object]
Ranked: TypeAlias = Callable[[str, Tell | None], Ranking]

FEW = 8  # plans of a space that are kept
_LOOKED_AT = 2  # of the first ranking
_FIXED = ("tp", "pp", "cp", "ep", "mb")


class NoPlanFitsError(InputError):
    """No candidate fits in memory; `ranking` is of those that need least."""

    def __init__(self, text: str, ranking: Ranking) -> None:
        super().__init__(text)
        self.ranking = ranking


def best_plan(
    model: Model,
    machine: Machine,
    *,
    batch: int,
    profile: str,
    progress: Tell | None = None,
    **how: Any,
) -> Forecast:
    """The fastest plan of a narrow space: parallel sizes first, then how stages are cut.

    The first pass has no interleaved stages, ZeRO-1 where the framework has it (without stages
    also 2 and 3), and few micro-batches; the second all chunk counts of the best
    sizes found. `pc.rank` tries everything.

    Args:
      model: what is trained.
      machine: where.
      batch: samples per step.
      profile: software profile.
      progress: of the first pass: called with plans done and in all.
      how: other arguments of `pc.rank`.

    Raises:
      NoPlanFitsError: none fits in memory.
    """

    def ranked(space: str, told: Tell | None) -> Ranking:
        return rank(
            model, machine, batch=batch, space=space, top=FEW, profile=profile, progress=told, **how
        )

    return good_plans(
        model, machine, batch=batch, profile=profile, ranked=ranked, progress=progress
    )[0]


def good_plans(
    model: Model,
    machine: Machine,
    *,
    batch: int,
    profile: str,
    ranked: Ranked,
    progress: Tell | None = None,
) -> list[Forecast]:
    """The plans that `best_plan` chooses from, the fastest first.

    Args:
      model: what is trained.
      machine: where.
      batch: samples per step.
      profile: software profile.
      ranked: ranks a space; called with it and with what is told how far that is.
      progress: of the first pass.

    Raises:
      NoPlanFitsError: none fits in memory.
    """
    zero, mb = _first_zero(profile), micro_batches(model)
    first = ranked(f"{zero}vpp=1,mb={mb}", progress)
    if not len(first):
        wider = ranked(least_space(model), None)
        if not len(wider):
            raise NoPlanFitsError(why_none(wider, model, machine, batch), wider)
        first = wider
    # Without stages, sharding more than the optimizer costs little and leaves room, and sharding
    # nothing is simplest.
    flat = ranked(f"pp=1,vpp=1,zero=0|2|3,mb={mb}", None)
    return fastest_first([*first, *flat, *_finer(first, zero, ranked)])


def fastest_first(plans: Iterable[Forecast]) -> list[Forecast]:
    """Each plan once, by time; of those that tie the simplest first."""
    once = {plan.strategy: plan for plan in plans}
    return simplest_of_ties(sorted(once.values(), key=lambda plan: plan.iteration_time))


def least_space(model: Model) -> str:
    """Of the plans that are tried those that need least memory."""
    return f"mb={micro_batches(model).split('|')[0]},vpp=1,recompute=full"


def _first_zero(profile: str) -> str:
    """The sharding of the first pass: the optimizer's, where the framework has that, else all."""
    has = (zero for zero in (1, 3) if not why_framework_cannot_run(profile, f"dp=8,zero={zero}"))
    zero = next(has, None)
    return "" if zero is None else f"zero={zero},"


def _finer(first: Ranking, zero: str, ranked: Ranked) -> list[Forecast]:
    """The best sizes of a ranking with stages that are cut in chunks."""
    plans: list[Forecast] = []
    for sizes in list(dict.fromkeys(_sizes(plan.strategy) for plan in first))[:_LOOKED_AT]:
        if "pp=1," not in sizes:
            plans += ranked(f"{zero}{sizes},vpp=*", None)
    return plans


def _sizes(strategy: str) -> str:
    """The parallel sizes and the micro-batch of a short form, as a space.

    >>> _sizes("dp=32,tp=4,sp,pp=8,zero=1,mb=1,recompute=none")
    'tp=4,pp=8,mb=1'
    """
    items = dict(item.partition("=")[::2] for item in strategy.split(","))
    sizes = {"tp": "1", "pp": "1", **{k: v for k, v in items.items() if k in _FIXED}}
    return ",".join(f"{key}={sizes[key]}" for key in _FIXED if key in sizes)


def micro_batches(model: Model) -> str:
    """Those that are tried: large ones of nets for vision, small ones of large models.

    >>> micro_batches(Model.preset("llama3-8b")), micro_batches(Model.preset("resnet50"))
    ('1|2|4', '8|32|128')
    """
    if model.seq <= 0:
        return "8|32|128"
    return "1|2|4" if model.parameters >= LARGE else "1|4|16"


def why_none(ranking: Ranking, model: Model, machine: Machine, batch: int) -> str:
    """What to say where a ranking has no plan."""
    text = f"no plan of `{model.name}` at a batch of {batch:,} fits on {machine}."
    nearest = ranking.nearest
    if nearest is not None:
        return f"{text} Nearest is {nearest['strategy']}: {nearest['advice']}"
    reasons = sorted(ranking.excluded.items(), key=lambda item: -item[1])[:2]
    why = "; ".join(f"{count:,} plans: {reason}" for reason, count in reasons)
    return f"{text} {why}. Take other hosts or another batch." if why else text
