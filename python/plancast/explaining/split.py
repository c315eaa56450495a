"""Differences of products, split among their factors so that the shares sum exactly."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import permutations
from math import factorial
from typing import TypeVar

_Key = TypeVar("_Key")


def shares(mine: Mapping[str, Fraction], theirs: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """What each factor adds to (product of mine) - (product of theirs).

    The factors go from theirs to mine one after another; a factor's share is its mean over all
    orders (Shapley), so swapping both sides changes the signs alone.

    >>> shares({"a": Fraction(3), "b": Fraction(4)}, {"a": Fraction(1), "b": Fraction(2)})
    {'a': Fraction(6, 1), 'b': Fraction(4, 1)}
    """
    names = list(mine)
    out = dict.fromkeys(names, Fraction(0))
    for order in permutations(names):
        now = dict(theirs)
        before = _product(now)
        for name in order:
            now[name] = mine[name]
            after = _product(now)
            out[name] += after - before
            before = after
    return {name: value / factorial(len(names)) for name, value in out.items()}


def whole(parts: Mapping[_Key, Fraction], total: int) -> dict[_Key, int]:
    """The parts in whole numbers that sum to `total`, which the parts sum to within rounding.

    What rounding leaves goes to the largest part, so changing all signs changes signs alone.

    >>> whole({"a": Fraction(5, 2), "b": Fraction(5, 2), "c": Fraction(1, 3)}, 5)
    {'a': 3, 'b': 2, 'c': 0}
    """
    out = {key: round(value) for key, value in parts.items()}
    left = total - sum(out.values())
    if left and out:
        largest = max(parts, key=lambda key: abs(parts[key]))
        out[largest] += left
    return out


def _product(factors: Mapping[str, Fraction]) -> Fraction:
    result = Fraction(1)
    for value in factors.values():
        result *= value
    return result
