"""`plancast validate` over published measurements, where PLANCAST_SHARED_DATA names them."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest
from plancast.accuracy.validation.rows import read_rows
from plancast.accuracy.validation.run import validate
from plancast.accuracy.validation.targets import verdicts
from plancast.report.markdown import fill

SHARED = os.environ.get("PLANCAST_SHARED_DATA", "")
pytestmark = pytest.mark.skipif(
    not SHARED, reason="needs published measurements: PLANCAST_SHARED_DATA"
)
TRUTH = Path(SHARED) / "truth"
TEMPLATES = Path(__file__).resolve().parents[2] / "docs" / "templates"


def ids_in(*paths):
    """Ids of the rows of files, by a plain reader."""
    found = []
    for path in paths:
        with path.open(newline="") as file:
            found += [row["row_id"] for row in csv.DictReader(file)]
    return found


# Data grow: what is compared with files are the files, not how many rows they had once.
def test_every_file_is_read_or_named():
    rows, skipped = read_rows([TRUTH])
    others = {Path(s.path) for s in skipped}
    assert {path.name for path in others} >= {
        "collectives.csv",
        "layer_times_korthikanti_table4.csv",
        "machines.csv",
    }
    files = [path for path in sorted(TRUTH.glob("*.csv")) if path not in others]
    assert len(files) > len(others)
    assert [row.row_id for row in rows] == ids_in(*files)


def test_every_row_has_a_forecast_or_a_reason():
    files = [TRUTH / "korthikanti_table5.csv", TRUTH / "zero_bubble_public.csv"]
    board = validate(files)
    assert [result.row.row_id for result in board.results] == ids_in(*files)
    for result in board.results:
        assert (result.predicted is None) != (result.unsupported is None)


@pytest.fixture(scope="module")
def everything():
    return validate([TRUTH], learn=[3])


def test_the_page_on_accuracy_can_be_written(everything):
    text = fill((TEMPLATES / "accuracy.md").read_text(), everything, TEMPLATES)
    assert "{{" not in text
    for verdict in verdicts(everything):
        assert verdict.text in text
    assert all(source in text for source in everything.sources)


def test_pairs_of_plans_are_ordered_as_often_as_said(everything):
    pairs = everything.pairs
    count = sum(p.pairs for p in pairs)
    assert count > 1000
    stated, true = (
        sum(p.pairs * share for p, share in ((p, getattr(p, name)) for p in pairs)) / count
        for name in ("stated", "true")
    )
    assert true == pytest.approx(stated, abs=0.1)


def test_left_out_sources_are_covered(everything):
    assert everything.intervals is not None
    assert 0.75 < everything.intervals.coverage < 0.98
    # The slow tail: nothing makes a run faster than its kernels.
    assert everything.intervals.scales.slow_tail > 0.01


def test_korthikanti_is_within_ten_percent():
    board = validate([TRUTH / "korthikanti_table5.csv"])
    scores = board.sources["korthikanti_table5"]
    assert scores["rows"] == len(board.results)
    assert scores["mape"] < 0.10


@pytest.mark.parametrize("file", ["dle_resnet50", "dle_resnext101"])
def test_convolutional_nets_are_within_an_eighth(file):
    board = validate([TRUTH / f"{file}.csv"])
    scores = board.sources["deeplearningexamples"]
    assert scores["rows"] == len(board.results)
    assert scores["mape"] < 0.12
