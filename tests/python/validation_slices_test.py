"""Scores by property, and pairs of plans."""

from __future__ import annotations

from pathlib import Path

import pytest
from plancast.accuracy.validation.pairs import stated_probabilities
from plancast.accuracy.validation.predict_row import RowResult
from plancast.accuracy.validation.residuals import ErrorTerms
from plancast.accuracy.validation.rows import read_rows
from plancast.accuracy.validation.slices import by_property, slices
from plancast.accuracy.validation.uncertainty import Scales

EXAMPLES = Path(__file__).parents[2] / "examples" / "validation"
SCALES = Scales(0.05, 0.1, 0.05, 0.1)


@pytest.fixture(scope="module")
def row():
    return read_rows([EXAMPLES])[0][0]


def result(row, measured, predicted, strategy="dp=1,tp=8,mb=2", parameters=7_000_000_000):
    terms = ErrorTerms("p", False, "gpu", {"gpu/gemm": (1.0, 0.5)}, 0.0)
    return RowResult(
        row,
        measured=measured,
        predicted=predicted,
        strategy=strategy,
        parameters=parameters,
        terms=terms,
    )


def test_rows_are_sorted_by_number_not_by_letter(row):
    results = [result(row, 1.0, 1.1, f"tp={tp},mb=1") for tp in (16, 2, 8)]
    results.append(result(row, 1.0, 0.9, "mb=1"))
    parts = by_property(results, "tp")
    assert list(parts) == ["1", "2", "8", "16"]
    assert parts["1"]["bias"] == pytest.approx(-0.1)
    assert parts["16"]["mape"] == pytest.approx(0.1)


def test_sizes_go_up_and_hold_every_row(row):
    sizes = (600e9, 0.1e9, 3e9, 13e9, 70e9)
    results = [result(row, 1.0, 1.0, parameters=size) for size in sizes]
    parts = slices(results)["size"]
    assert list(parts) == ["< 1B", "1B to 5B", "5B to 20B", "20B to 100B", "> 100B"]
    for scores in slices(results).values():
        assert sum(part["rows"] for part in scores.values()) == len(results)


def test_rows_without_a_measurement_are_in_no_part(row):
    assert by_property([result(row, None, 1.0)], "tp") == {}


def test_pairs_count_once_and_errors_that_they_share_cancel(row):
    # Kernels are off by a half, all plans alike: only plan and difference remain.
    plans = [result(row, t, t * 1.5) for t in (1.0, 1.05, 2.0)]
    found = stated_probabilities([plans], SCALES)
    assert sum(p.pairs for p in found) == 3
    near, far = found[0], found[-1]
    assert near.low < 0.9 and near.true == 1
    assert far.low >= 0.8 and far.true == 1
    for p in found:
        assert p.low <= p.stated <= p.high


def test_a_wrong_order_counts_as_wrong_and_a_tie_as_half(row):
    wrong = [result(row, 1.0, 3.0), result(row, 3.0, 1.0)]
    assert stated_probabilities([wrong], SCALES)[0].true == 0
    tie = [result(row, 1.0, 1.0), result(row, 2.0, 1.0)]
    (stated,) = stated_probabilities([tie], SCALES)
    assert (stated.stated, stated.true) == (0.5, 0.5)


def test_plans_of_different_jobs_are_no_pairs(row):
    groups = [[result(row, 1.0, 1.0)], [result(row, 2.0, 2.0)]]
    assert stated_probabilities(groups, SCALES) == []
