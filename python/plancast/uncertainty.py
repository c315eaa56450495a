"""How sure a comparison of two forecasts is.

A forecast's error is made of factors that other forecasts share (kernels of a GPU, a link,
a software profile) and of its own; each scale is that of a Student's t with four degrees of
freedom of ln(measured / forecast), as in planner/uncertainty/uncertainty.h.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

# 95 % of Student's t with four degrees of freedom.
NINETY_FIVE_PERCENT = 2.131847


class ErrorStructure(Protocol):
    """What errors hang on: seconds of the iteration and relative scales."""

    def factors(self) -> Mapping[str, tuple[float, float]]:
        """Of each shared factor, the seconds that hang on it and its relative scale."""

    @property
    def own_variance_s2(self) -> float:
        """Square of the scale that is shared with nothing."""


def student_below(t: float) -> float:
    """The probability that Student's t with four degrees of freedom is below `t`.

    >>> student_below(0.0), round(student_below(NINETY_FIVE_PERCENT), 4)
    (0.5, 0.95)
    """
    square = 1 + t * t / 4
    return 0.5 + 0.375 * t / math.sqrt(square) * (1 - t * t / (12 * square))


def difference_scale(a: ErrorStructure, b: ErrorStructure) -> float:
    """The scale of the difference of two iteration times, seconds; shared errors cancel.

    A factor that `x` seconds of one and `y` seconds of the other hang on counts with
    `x - y`.
    """
    mine, theirs = a.factors(), b.factors()
    variance = a.own_variance_s2 + b.own_variance_s2
    for name in {*mine, *theirs}:
        my_seconds, my_scale = mine.get(name, (0.0, 0.0))
        their_seconds, their_scale = theirs.get(name, (0.0, 0.0))
        variance += ((my_seconds - their_seconds) * max(my_scale, their_scale)) ** 2
    return math.sqrt(variance)


def faster_probability(seconds: float, scale: float) -> float:
    """The probability that a plan is faster that is forecast `seconds` slower.

    >>> faster_probability(0.0, 1.0), faster_probability(-1.0, 0.0)
    (0.5, 1.0)
    """
    if scale > 0:
        return student_below(-seconds / scale)
    return 0.5 if seconds == 0 else float(seconds < 0)
