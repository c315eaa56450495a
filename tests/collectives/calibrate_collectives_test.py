"""The least squares behind collectives/data/protocols.textproto."""

import math
import random

import pytest
from plancast import calibrate_collectives
from plancast.calibration import collectives


def test_ring_by_hand() -> None:
    """8 devices at 300 GB/s: 14 hops of 2.6 us and 1.75 of the bytes, at 90 %."""
    cost = collectives.Cost("nvlink3", "ring", "Simple", (), 10, 2, 0, 0.9)
    row = collectives.Row("nvlink3", "all_reduce", 8, 270e6, 1)
    assert collectives.node_time(cost, row) == pytest.approx(10 + 14 * 2.6 + 1.75 * 270e6 / 270e3)


def test_fill_is_the_geometric_mean_of_hops_and_transfer() -> None:
    cost = collectives.Cost("nvlink3", "ring", "Simple", (), 0, 0.4, 2, 1)
    row = collectives.Row("nvlink3", "all_gather", 2, 600e3, 1)
    assert collectives.node_time(cost, row) == pytest.approx(1 + 1 + 2 * math.sqrt(1 * 1))


def test_fit_finds_what_made_the_rows() -> None:
    truth = [
        collectives.Cost("nvlink4", "ring", "LL", (), 6, 0.5, 0.5, 0.3),
        collectives.Cost("nvlink4", "ring", "Simple", (), 15, 1.5, 1.0, 0.85, local=0.2),
    ]
    rng = random.Random(1)
    rows = []
    for members in (2, 4, 8):
        for exponent in range(9, 31):
            row = collectives.Row("nvlink4", "all_reduce", members, 2.0**exponent, 1)
            row.time = min(collectives.node_time(cost, row) for cost in truth)
            row.time *= rng.uniform(0.99, 1.01)
            rows.append(row)
    fitted = calibrate_collectives.ring_costs("nvlink4", (), 0)
    collectives.fit(fitted, rows, collectives.node_time, lambda row: (0, 1))
    for row in rows:
        time = min(collectives.node_time(cost, row) for cost in fitted)
        assert time == pytest.approx(row.time, rel=0.08)
    assert fitted[1].sigma < 0.04
    assert fitted[1].efficiency == pytest.approx(0.85, rel=0.1)


def test_parameters_stay_in_their_bounds() -> None:
    row = collectives.Row("nvlink4", "all_reduce", 8, 1e9, 1)  # far too fast
    fitted = calibrate_collectives.ring_costs("nvlink4", (), 0)
    collectives.fit(fitted, [row], collectives.node_time, lambda row: (0, 1))
    for cost in fitted:
        assert 0 < cost.efficiency <= 1
        assert cost.base > 0
