"""Proteus's rule for buckets, on gradients made up."""

from __future__ import annotations

from collections import Counter

from buckets import in_buckets
from ours import Gradient


def test_the_rule_of_buckets():
    """More than the limit closes; the later made goes first; limits are shared by groups."""

    def gradient(name: str, group: tuple[int, ...], size: int, depth: int) -> Gradient:
        devices = frozenset(range(4))
        return Gradient(0, devices, "all_reduce", frozenset(group), name, size, depth)

    pair, other = (0, 2), (1, 3)
    gradients = [
        gradient("w", pair, 5, 1),
        gradient("b", pair, 6, 1),
        gradient("v", other, 11, 2),
        gradient("u", pair, 20, 3),
        gradient("alone", (1,), 50, 4),
    ]
    made = in_buckets(gradients, ["u", "v", "w", "b", "alone"], [10, 30])
    assert made == Counter(
        [
            (0, frozenset(pair), 0, "all_reduce", 11, ("b", "w")),
            (0, frozenset(other), 0, "all_reduce", 11, ("v",)),
            (0, frozenset(pair), 1, "all_reduce", 20, ("u",)),
        ]
    )
