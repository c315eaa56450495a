"""From one layout on a mesh to another: which collectives, of what size."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plancast.planners.costs import MeshCosts


@dataclass(frozen=True)
class Placement:
    """What one mesh axis does to a tensor: `replicate`, `shard` of a dim, or `partial`."""

    kind: str
    dim: int = -1
    halo: int = 0  # of a shard: elements along the dim beyond its own, both sides together

    @classmethod
    @functools.cache
    def parse(cls, text: str) -> Placement:
        """A placement as op rules say it.

        >>> Placement.parse("shard(2, halo 1+1)")
        Placement(kind='shard', dim=2, halo=2)
        """
        shard = re.fullmatch(r"shard\((\d+)(?:, halo (\d+)\+(\d+))?\)", text)
        if shard is not None:
            return cls("shard", int(shard[1]), int(shard[2] or 0) + int(shard[3] or 0))
        return cls(text.partition("(")[0])


REPLICATE = Placement("replicate")
Layout = tuple[Placement, ...]


@dataclass(frozen=True)
class Step:
    """One collective: kind of `costs.KINDS`, axis of the mesh, bytes as `MeshCosts` counts them."""

    kind: str
    axis: int
    size: float

    def cost(self, costs: MeshCosts) -> float:
        """In the unit of the prices."""
        return costs.communicate(self.kind, self.axis, self.size)


def shards(layout: Layout, mesh: tuple[int, ...]) -> int:
    """Parts that a tensor is cut into."""
    return math.prod(n for place, n in zip(layout, mesh, strict=True) if place.kind == "shard")


@functools.lru_cache(maxsize=1 << 16)
def steps(
    source: Layout,
    target: Layout,
    sizes: tuple[int, ...],
    element: float,
    mesh: tuple[int, ...],
    scatter: bool = True,
) -> tuple[Step, ...]:
    """The collectives of a relayout, axis after axis: what makes tensors smaller comes first.

    Args:
      source: where the tensor is.
      target: where it is read; no `partial`.
      sizes: of its dims, elements.
      element: bytes of an element.
      mesh: ranks of each axis.
      scatter: sums that are read in parts are reduce-scattered; else all-reduced and cut.
    """
    now = list(source)
    whole = math.prod(sizes) * element
    out = []

    def rank(axis: int) -> int:
        order = {
            ("replicate", "shard"): 0,
            ("partial", "shard"): 1,
            ("partial", "replicate"): 2,
            ("shard", "shard"): 3,
            ("shard", "replicate"): 4,
        }
        return order.get((now[axis].kind, target[axis].kind), 5)

    for axis in sorted(range(len(mesh)), key=rank):
        here, there = now[axis], target[axis]
        others = [place for other, place in enumerate(now) if other != axis]
        counts = [n for other, n in enumerate(mesh) if other != axis]
        size = whole / shards(tuple(others), tuple(counts))
        kind = _kind(here, there)
        if kind == "reduce_scatter" and not scatter:
            kind = "all_reduce"
        if mesh[axis] > 1 and kind:
            out.append(Step(kind, axis, size))
        if mesh[axis] > 1 and there.halo and (here.halo != there.halo or kind == "all_to_all"):
            edge = sizes[there.dim]
            out.append(Step("halo", axis, size * there.halo / max(edge, 1)))
        now[axis] = there
    return tuple(out)


def _kind(here: Placement, there: Placement) -> str:
    if here.kind == "partial":
        return {"replicate": "all_reduce", "shard": "reduce_scatter"}.get(there.kind, "")
    if here.kind == "shard":
        if there.kind == "replicate":
            return "all_gather"
        if there.kind == "shard" and there.dim != here.dim:
            return "all_to_all"
    return ""
