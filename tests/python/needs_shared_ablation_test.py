"""PROTEUS-3: forecasts of measured runs are worse without sharing and without interference."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from plancast.accuracy.validation.run import validate
from plancast.session import Session

SHARED = os.environ.get("PLANCAST_SHARED_DATA", "")
pytestmark = pytest.mark.skipif(
    not SHARED, reason="needs published measurements: PLANCAST_SHARED_DATA"
)


@pytest.mark.parametrize("part", ["sharing", "interference"])
def test_errors_grow_without(part):
    """In all, and in every source; around each source's median they do not shrink."""
    # Of the simulation: levels of software were learned with both parts in it.
    plain = Session(prior=False)
    changed = validate([Path(SHARED) / "truth"], what_if=f"{part}=free", session=plain).changed
    scores = changed["all rows"]
    assert scores["altered"] > 100
    assert scores["mape"] > scores["as_is"]
    del changed["all rows"]
    assert all(source["mape"] > source["as_is"] - 1e-6 for source in changed.values())
    # The last over sources that are simulated within 20 %: BigScience's runs on V100s, up to
    # three times as slow as simulated, would outweigh all others. Interference alone changes it by
    # a part in ten thousand, either way (docs/proteus.md).
    within = [source for source in changed.values() if source["as_is"] < 0.2]
    spread = sum(source["rows"] * source["spread"] for source in within)
    assert spread > 0.999 * sum(source["rows"] * source["spread_as_is"] for source in within)
