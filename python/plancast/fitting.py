"""Whether plans fit into memory, without simulating their time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from plancast import _core, arguments, precision
from plancast.checked import checked
from plancast.planning import DEFAULT_PROFILE, check_nouns
from plancast.session import Session
from plancast.strategy import Strategy

if TYPE_CHECKING:
    from plancast.machine import Machine
    from plancast.model import Model
    from plancast.precision import Types


@dataclass(frozen=True)
class Fit:
    """The verdict on one plan.

    `device` and `capacity` are bytes: what the fullest device (of pipeline stage `stage`)
    takes, communicators and driver context included, and what it has. A plan that no
    machine could run is `refused` in a sentence, and does not fit.
    """

    strategy: str
    fits: bool
    device: int = 0
    capacity: int = 0
    stage: int = -1
    refused: str | None = None

    def __bool__(self) -> bool:
        return self.fits


@checked
def fits(
    model: Model,
    machine: Machine,
    *strategies: Strategy | str,
    batch: int | None = None,
    dtype: str = "bf16",
    profile: str = DEFAULT_PROFILE,
    session: Session | None = None,
    **types: Unpack[Types],
) -> list[Fit]:
    """Says of each strategy whether it fits, and how much memory it takes.

    The same bytes as `predict(...)` gives, for a fraction of its time: nothing is simulated,
    and no graph is made except for plans that come near the capacity, and for trees with
    directives on nodes or stages listed by nodes.

    Args:
      model: what is trained.
      machine: where.
      strategies: short forms or trees.
      batch: global batch, samples per step; absent: dp * mb * accum of each.
      dtype: matmul precision.
      profile: how the framework runs.
      session: shared memo; a fresh one by default.
      types: of what is stored and sent, as for `predict`.

    >>> import plancast as pc
    >>> small, large = pc.fits(
    ...     pc.Model.preset("gpt3-175b"), pc.Machine.preset("dgx-a100-80g", hosts=8),
    ...     "tp=8,pp=8,mb=1,recompute=full", "tp=8,pp=2,mb=1", batch=64)
    >>> small.fits, large.fits
    (True, False)
    """
    check_nouns(model, machine, session)
    plans = [_checked(strategy) for strategy in strategies]
    verdicts = _core.fits(
        model._core,
        machine._core,
        (session or Session())._core,
        batch=arguments.batch(batch),
        plans=[_as_plan(strategy) for strategy in plans],
        dtype=arguments.dtype(dtype),
        profile=arguments.profile(profile, machine.gpu),
        precision=precision.asked(types),
    )
    texts = [s if isinstance(s, str) else s.short_form for s in plans]
    return [
        Fit(text, False, refused=verdict) if isinstance(verdict, str) else Fit(text, *verdict)
        for text, verdict in zip(texts, verdicts, strict=True)
    ]


def _checked(strategy: Strategy | str) -> Strategy | str:
    if not isinstance(strategy, str):
        arguments.instance(strategy, Strategy, "strategy", '"tp=8,pp=4,mb=1"')
    return strategy


def _as_plan(strategy: Strategy | str) -> str | _core.Strategy:
    """The short form where it says all."""
    if isinstance(strategy, str):
        return strategy
    more = any(said for key, said in strategy.to_dict().items() if key != "plan")
    return strategy._core if more else strategy.short_form
