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
    """Both as they are, and with a factor of its own taken out of each source."""
    # Of the simulation: levels of software were learned with both parts in it.
    plain = Session(prior=False)
    changed = validate([Path(SHARED) / "truth"], what_if=f"{part}=free", session=plain).changed
    scores = changed["all rows"]
    assert scores["altered"] > 100
    assert scores["mape"] > scores["as_is"]
    assert scores["spread"] > scores["spread_as_is"]
