"""`plancast validate` over published measurements, where PLANCAST_SHARED_DATA names them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from plancast.validation.rows import read_rows
from plancast.validation.run import validate

SHARED = os.environ.get("PLANCAST_SHARED_DATA", "")
pytestmark = pytest.mark.skipif(
    not SHARED, reason="needs published measurements: PLANCAST_SHARED_DATA"
)
TRUTH = Path(SHARED) / "truth"


def test_every_file_is_read_or_named():
    rows, skipped = read_rows([TRUTH])
    assert len(rows) == 909
    assert {Path(s.path).name for s in skipped} == {
        "collectives.csv",
        "layer_times_korthikanti_table4.csv",
        "machines.csv",
    }


def test_every_row_has_a_forecast_or_a_reason():
    board = validate([TRUTH / "korthikanti_table5.csv", TRUTH / "zero_bubble_public.csv"])
    assert len(board.results) == 33
    for result in board.results:
        assert (result.predicted is None) != (result.unsupported is None)


def test_korthikanti_is_within_ten_percent():
    board = validate([TRUTH / "korthikanti_table5.csv"])
    scores = board.sources["korthikanti_table5"]
    assert scores["rows"] == 9
    assert scores["mape"] < 0.10


@pytest.mark.parametrize(("file", "rows"), [("dle_resnet50", 52), ("dle_resnext101", 24)])
def test_convolutional_nets_are_within_an_eighth(file, rows):
    board = validate([TRUTH / f"{file}.csv"])
    scores = board.sources["deeplearningexamples"]
    assert scores["rows"] == rows
    assert scores["mape"] < 0.12
