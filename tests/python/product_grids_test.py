"""Grids of ranks for matrix products, and the weak scaling that DISTAL reports of three systems."""

from __future__ import annotations

import plancast as pc
import pytest

# DISTAL's repository (dist-taco-v1, results/), GFLOP/s of a node by nodes 1, 2, 4, ..., 256. Sizes
# are about 8192 sqrt(nodes); ScaLAPACK has 4 ranks a node and blocks of 2,048.
WEAK = {
    "COSMA": (669.6, 673.8, 678.5, 682.2, 681.8, 685.7, 676.0, 685.4, 668.8),
    "CTF": (594.9, 531.1, 581.1, 477.8, 561.0, 456.6, 556.8, 399.6, 505.5),
    "ScaLAPACK": (501.1, 367.5, 496.4, 349.9, 494.0, 345.0, 485.9, 342.2, 478.7),
}
SIZES = (8192, 11584, 16384, 23170, 32768, 46340, 65536, 92680, 131072)
GRIDS = ((2, 2), (2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16), (16, 32), (32, 32))
NODES = tuple(2**power for power in range(9))


def test_grids():
    grids = pc.product_grids(m=8192, n=8192, k=8192, ranks=40)
    best = [grid for grid in grids if grid.surface < grids[0].surface * 1.0001]
    assert len(best) == 6
    assert {tuple(sorted((g.rows, g.columns, g.layers))) for g in best} == {(2, 4, 5)}
    assert grids[6].surface == pytest.approx(0.35 * 8192**2)


def _grid(system: str, point: int) -> pc.ProductGrid:
    """COSMA takes the grid that touches the least; the others are on one layer.

    ScaLAPACK deals out blocks in turn.
    """
    n, nodes = SIZES[point], NODES[point]
    ranks, block = (4 * nodes, 2048) if system == "ScaLAPACK" else (nodes, None)
    grids = pc.product_grids(m=n, n=n, k=n, ranks=ranks, block=block)
    return next(grid for grid in grids if system == "COSMA" or grid.layers == 1)


def _weak_scaling(system: str) -> list[float]:
    """GFLOP/s of a node, from the rows of one and four nodes alone.

    The time of a product is that of the busiest rank; COSMA hides what its grid moves behind it.
    """
    grids = [_grid(system, point) for point in range(9)]

    def work(point: int) -> float:  # of the busiest rank's node
        return grids[point].busiest * 2 * SIZES[point] ** 3 / NODES[point]

    measured = [2 * SIZES[p] ** 3 / NODES[p] / WEAK[system][p] for p in (0, 2)]  # seconds x 1e9
    # measured = work * a + moved * b at both points.
    (w0, m0), (w1, m1) = ((work(p), grids[p].moved) for p in (0, 2))
    of_moved = (measured[1] - measured[0] * w1 / w0) / (m1 - m0 * w1 / w0)
    of_moved = max(of_moved, 0.0)
    of_work = (measured[0] - of_moved * m0) / w0
    rates = []
    for point in range(9):
        product, sent = work(point) * of_work, grids[point].moved * of_moved
        time = max(product, sent) if system == "COSMA" else product + sent
        rates.append(2 * SIZES[point] ** 3 / NODES[point] / time)
    return rates


def test_weak_scaling_has_the_order_of_the_measured_systems():
    rates = {system: _weak_scaling(system) for system in WEAK}
    for point in range(9):
        assert rates["COSMA"][point] > rates["CTF"][point] > rates["ScaLAPACK"][point]
    for predicted, measured in zip(rates["COSMA"], WEAK["COSMA"], strict=True):
        assert predicted == pytest.approx(measured, rel=0.03)


def test_blocks_that_do_not_deal_out_evenly_make_the_sawtooth():
    for point, (rows, columns) in enumerate(GRIDS):
        grid = _grid("ScaLAPACK", point)
        assert (grid.rows, grid.columns) == (rows, columns)  # as in the log
        assert grid.busiest == pytest.approx(1.5 if rows != columns else 1, rel=3e-4)
    rates, measured = _weak_scaling("ScaLAPACK"), WEAK["ScaLAPACK"]
    for point in range(9):
        assert rates[point] == pytest.approx(measured[point], rel=0.1)

    def tooth(values) -> list[float]:  # of counts that are not square, against their neighbours
        return [2 * values[p] / (values[p - 1] + values[p + 1]) for p in (1, 3, 5, 7)]

    assert all(0.68 < ratio < 0.74 for ratio in tooth(measured))
    assert all(0.65 < ratio < 0.68 for ratio in tooth(rates))


def test_a_block_has_elements():
    with pytest.raises(pc.InputError, match="`block` is 0; it is 1 or more"):
        pc.product_grids(m=8, n=8, k=8, ranks=2, block=0)
