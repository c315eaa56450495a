"""What failures and checkpoints leave of a run's time, in closed form.

A run repeats: train for an interval, stop for `stall` to save its state, and go on. What it
saved can be loaded `lag` after the stall ended. Interruptions come at random (exponentially) with
a mean of `mtbf`, during restarts too; each throws the run back to the newest state that can be
loaded, and costs `restart`. That is a renewal at every interruption, so the share of time that is
useful is exact:

    interval * E[checkpoints until an interruption] / E[time until the next one begins afresh]
  = interval * exp(-lag/mtbf) / (exp((interval + stall)/mtbf) - 1) / (mtbf * exp(restart/mtbf))

With lag = 0 it is Daly's formula (Future Generation Computer Systems 22, 2006).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

# Of mean times between failures without one: e^-700 is as good as never.
_NEVER = 700.0


@dataclass(frozen=True)
class Costs:
    """What one failure and one checkpoint cost, seconds; `mtbf` is of the whole run."""

    mtbf: float
    stall: float
    lag: float
    restart: float

    @property
    def never_fails(self) -> bool:
        """Whether nothing ever interrupts."""
        return math.isinf(self.mtbf)


@dataclass(frozen=True)
class Goodput:
    """Shares of a run's time: useful, saving, work done twice, restarting, waiting for a host.

    `interval_s` is training between two checkpoints. The shares sum to one.
    """

    interval_s: float
    useful: float
    saving: float
    repeated: float
    restarting: float
    waiting: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


def goodput(costs: Costs, interval: float, *, waiting: float = 0.0) -> Goodput:
    """The shares of a run that saves its state after every `interval` seconds of training.

    `waiting` is the share of time in which no host can take a failed one's place.

    >>> shares = goodput(Costs(mtbf=1e9, stall=10.0, lag=0.0, restart=0.0), 90.0)
    >>> round(shares.useful, 6), round(shares.saving, 6)
    (0.9, 0.1)
    """
    period = interval + costs.stall
    if costs.never_fails:
        useful = interval / period if period > 0 else 1.0
        return Goodput(interval, useful, 1 - useful, 0.0, 0.0)
    up = math.exp(-costs.restart / costs.mtbf)
    # Checkpoints that are made and can be loaded before the next interruption.
    saved = math.exp(-costs.lag / costs.mtbf) / math.expm1(min(_NEVER, period / costs.mtbf))
    rest = 1 - waiting
    useful = rest * up * interval * saved / costs.mtbf
    saving = rest * up * costs.stall * saved / costs.mtbf
    return Goodput(
        interval_s=interval,
        useful=useful,
        saving=saving,
        repeated=max(0.0, rest * up - useful - saving),
        restarting=rest * (1 - up),
        waiting=waiting,
    )


def best_interval(costs: Costs, least: float) -> float:
    """The interval that leaves most useful time, seconds; at least `least`.

    The derivative vanishes where (1 - interval/mtbf) exp((interval + stall)/mtbf) = 1.

    >>> costs = Costs(mtbf=10_000.0, stall=50.0, lag=0.0, restart=0.0)
    >>> round(best_interval(costs, 1.0)), round(young(costs)), round(daly(costs))
    (967, 1000, 967)
    """
    if costs.never_fails:
        return math.inf
    low, high = 0.0, costs.mtbf
    for _ in range(200):
        middle = (low + high) / 2
        x = middle / costs.mtbf
        # Near 1 it is so far below that its logarithm ends.
        if x < 1 and math.log1p(-x) + x + costs.stall / costs.mtbf > 0:
            low = middle
        else:
            high = middle
    return max(least, (low + high) / 2)


def young(costs: Costs) -> float:
    """Young's interval (1974): sqrt(2 stall mtbf), seconds."""
    return math.sqrt(2 * costs.stall * costs.mtbf)


def daly(costs: Costs) -> float:
    """Daly's interval (2006, of higher order), seconds."""
    ratio = costs.stall / (2 * costs.mtbf)
    if ratio >= 1:
        return costs.mtbf
    return young(costs) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - costs.stall


def waiting_share(spares: int, hosts_in_repair: float) -> float:
    """The share of time in which all spare hosts and one more are in repair: Erlang's loss
    formula, which holds whatever the distribution of repair times.

    Args:
      spares: hosts beside those that train.
      hosts_in_repair: failures that take a host away, in one repair time, while the run goes on.

    >>> waiting_share(0, 0.25), round(waiting_share(1, 0.25), 6)
    (0.2, 0.02439)
    """
    blocked = 1.0
    for number in range(1, spares + 2):
        blocked = hosts_in_repair * blocked / (number + hosts_in_repair * blocked)
    return blocked
