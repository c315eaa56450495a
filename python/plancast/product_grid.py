"""Grids of ranks for distributed matrix products."""

from __future__ import annotations

from dataclasses import dataclass

from plancast import _core
from plancast.checked import checked


@dataclass(frozen=True)
class ProductGrid:
    """Ranks along the three dims of `C[m,n] += A[m,k] * B[k,n]`, and what follows, in elements.

    `surface` is what a rank touches of A, B and C; `moved` what of it is not its own share of them;
    `held` what it holds at once, going over its block in `steps` slices along k. Where ranks have
    unlike parts these are of the one with the most, whose work is `busiest` times the mean.
    """

    rows: int
    columns: int
    layers: int
    surface: float
    moved: float
    steps: int
    held: float
    busiest: float


@checked
def product_grids(
    *,
    m: int,
    n: int,
    k: int,
    ranks: int,
    memory: float | None = None,
    most_idle: int = 0,
    block: int | None = None,
) -> list[ProductGrid]:
    """The grids of a matrix product that fit, those first whose ranks touch the least (COSMA).

    Args:
      m: rows of C.
      n: columns of C.
      k: what is summed over.
      ranks: how many there are.
      memory: elements that a rank may hold; None: any number.
      most_idle: ranks that may have nothing to do.
      block: elements of a block of each dim, where blocks are dealt out in turn (ScaLAPACK); None:
        every rank has one.

    >>> best = product_grids(m=8192, n=8192, k=8192, ranks=40)[0]
    >>> sorted((best.rows, best.columns, best.layers))
    [2, 4, 5]
    """
    grids = _core.product_grids(m, n, k, ranks, memory, most_idle, block)
    return [ProductGrid(*grid) for grid in grids]
