"""Proteus's rule for buckets of gradients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MB = 10**6
Reduction = tuple[str, frozenset[int], str, int, int]  # kind, group, parameter, bytes, depth
Bucket = tuple[str, int, list[str]]


def in_buckets(
    reductions: Iterable[Reduction], created: Sequence[str], limits: Sequence[int]
) -> dict[frozenset[int], list[Bucket]]:
    """(kind, bytes, parameters) of the buckets of each group, in order.

    Reductions go by depth in the backward graph, at equal depth what was created later
    first, into the open bucket of their kind and group. It closes when it holds more than
    the limit; the first bucket that closes has the first of `limits`, whatever its group,
    and the last limit is that of all further ones.
    """
    at = {name: number for number, name in enumerate(created)}
    done: dict[frozenset[int], list[Bucket]] = {}
    held: dict[tuple[str, frozenset[int]], tuple[int, list[str]]] = {}
    closed = 0
    for kind, group, name, size, _ in sorted(reductions, key=lambda r: (r[4], -at[r[2]])):
        before, names = held.get((kind, group), (0, []))
        held[kind, group] = (before + size, [*names, name])
        if before + size > limits[min(closed, len(limits) - 1)]:
            done.setdefault(group, []).append((kind, *held.pop((kind, group))))
            closed += 1
    for (kind, group), bucket in held.items():
        done.setdefault(group, []).append((kind, *bucket))
    return done
