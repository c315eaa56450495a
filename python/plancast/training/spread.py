"""How sure the time of a whole run is, from the error structures of its forecasts.

x = ln(actual / forecast) is as often above 0 as below; its size is |t| times a scale, t of
Student with four degrees of freedom: `core` below, hypot(core, tail) above (docs/uncertainty.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plancast.forecast import Forecast
from plancast.uncertainty import NINETY_FIVE_PERCENT, student_below


@dataclass(frozen=True)
class Spread:
    """Scales of the logarithm of a time around its forecast: both sides, and the slow one."""

    core: float
    tail: float

    def interval(self, median: float) -> tuple[float, float]:
        """Central 90 % around a forecast, in its unit."""
        slow = math.hypot(self.core, self.tail)
        return (
            median * math.exp(-NINETY_FIVE_PERCENT * self.core),
            median * math.exp(NINETY_FIVE_PERCENT * slow),
        )

    def probability_below(self, ratio: float) -> float:
        """That the actual time is at most `ratio` times the forecast one.

        >>> Spread(0.1, 0.1).probability_below(1.0)
        0.5
        """
        if ratio <= 0:
            return 0.0
        x = math.log(ratio)
        scale = self.core if x < 0 else math.hypot(self.core, self.tail)
        if scale <= 0:
            return 0.5 if x == 0 else float(x > 0)
        return student_below(x / scale)

    def ratio_at(self, probability: float) -> float:
        """The ratio to the forecast that the actual time stays below with a probability.

        >>> spread = Spread(0.1, 0.2)
        >>> round(spread.probability_below(spread.ratio_at(0.9)), 6)
        0.9
        """
        low, high = -60.0, 60.0
        for _ in range(200):
            middle = (low + high) / 2
            if self.probability_below(math.exp(middle)) < probability:
                low = middle
            else:
                high = middle
        return math.exp((low + high) / 2)


def spread_of(parts: Sequence[tuple[float, Forecast]]) -> Spread:
    """The spread of the summed time of `steps` of each forecast.

    Errors that forecasts share (kernels, links, software) add up; so does the own error of
    one plan in several phases; plans' own errors are independent of each other's. What makes a
    run slow by bad luck is the run's, so tails are averaged over its time.
    """
    total = sum(steps * forecast.iteration_time for steps, forecast in parts)
    if total <= 0:
        return Spread(0.0, 0.0)
    seconds: dict[str, float] = {}
    scales: dict[str, float] = {}
    own: dict[tuple[str, str], float] = {}
    tail = 0.0
    for steps, forecast in parts:
        for name, (share, scale) in forecast.factors().items():
            seconds[name] = seconds.get(name, 0.0) + steps * share
            scales[name] = max(scales.get(name, 0.0), scale)
        plan = (forecast.strategy, forecast.profile)
        own[plan] = own.get(plan, 0.0) + steps * math.sqrt(forecast.own_variance_s2)
        tail += steps * forecast.iteration_time / total * _tail(forecast)
    variance = sum((seconds[name] * scales[name]) ** 2 for name in seconds)
    variance += sum(error**2 for error in own.values())
    return Spread(math.sqrt(variance) / total, tail)


def _tail(forecast: Forecast) -> float:
    """The scale on the slow side only."""
    time, (low, high) = forecast.iteration_time, forecast.interval
    if not 0 < low <= time <= high:
        return 0.0
    core = math.log(time / low) / NINETY_FIVE_PERCENT
    slow = math.log(high / time) / NINETY_FIVE_PERCENT
    return math.sqrt(max(0.0, slow**2 - core**2))
