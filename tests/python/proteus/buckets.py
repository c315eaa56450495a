"""Proteus's rule for buckets of gradients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ours import Gradient

# Stage, group, place among the buckets of the group, kind, bytes, parameters in order.
Bucket = tuple[int, frozenset[int], int, str, int, tuple[str, ...]]


def in_buckets(
    gradients: Iterable[Gradient], created: Sequence[str], limits: Sequence[int]
) -> Counter[Bucket]:
    """The buckets of all reductions.

    In each stage they go by depth in the backward graph, at equal depth what was created
    later first, into the open bucket of their kind and group. It closes when it holds more
    than the limit: the first of a stage that closes has the first of `limits`, whatever its
    group, and the last limit is that of all further ones.
    """
    reduced = [one for one in gradients if len(one.group) > 1]
    found: Counter[Bucket] = Counter()
    for stage in {one.stage for one in reduced}:
        found.update(_of_stage([one for one in reduced if one.stage == stage], created, limits))
    return found


def _of_stage(
    gradients: list[Gradient], created: Sequence[str], limits: Sequence[int]
) -> Iterable[Bucket]:
    place = {name: number for number, name in enumerate(created)}
    done: list[Bucket] = []
    held: dict[tuple[str, frozenset[int]], list[Gradient]] = {}

    def close(kind: str, group: frozenset[int]) -> None:
        members = held.pop((kind, group))
        at = sum(1 for bucket in done if bucket[1:2] + bucket[3:4] == (group, kind))
        size, names = sum(one.bytes for one in members), tuple(one.parameter for one in members)
        done.append((members[0].stage, group, at, kind, size, names))

    for one in sorted(gradients, key=lambda g: (g.depth, -place[g.parameter])):
        members = held.setdefault((one.kind, one.group), [])
        members.append(one)
        if sum(m.bytes for m in members) > limits[min(len(done), len(limits) - 1)]:
            close(one.kind, one.group)
    for kind, group in list(held):
        close(kind, group)
    return done
