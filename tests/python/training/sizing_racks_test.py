"""Sizes on racks, of which many counts below a power of two have poor plans."""

from __future__ import annotations

import plancast as pc
import pytest

LARGE = {"tokens": "2T", "days": 30, "batch": 1024, "curve": False, "failures": None}


@pytest.fixture(scope="module")
def racks() -> tuple[pc.Sizing, pc.Session]:
    session = pc.Session()
    found = pc.size(pc.Model.preset("llama3-70b"), ["gb200-nvl72"], session=session, **LARGE)
    assert found.best is not None
    if found.cheaper is None:
        pytest.skip("the fewest hosts are the cheapest")
    return found, session


def test_where_more_hosts_cost_less_that_is_said(racks):
    found, _ = racks
    assert found.cheaper.hosts > found.best.hosts
    assert found.cheaper.run.usd < found.best.run.usd
    assert found.keeps(found.cheaper)


def test_more_hosts_that_cost_less_keep_a_budget_that_the_fewest_do_not(racks):
    """Few hosts have poor plans: their run costs more than that of more hosts."""
    fewest, session = racks
    asked = {**LARGE, "session": session}
    model = pc.Model.preset("llama3-70b")
    budget = (fewest.best.run.usd + fewest.cheaper.run.usd) / 2
    kept = pc.size(model, ["gb200-nvl72"], budget=budget, **asked)
    assert kept.best is not None
    assert kept.best.run.usd <= budget and kept.best.run.days <= 30
    assert kept.best.hosts > fewest.best.hosts
    poor = pc.size(model, ["gb200-nvl72"], budget=fewest.cheaper.run.usd / 2, **asked)
    assert poor.best is None
    # What is told as the cheapest is the cheapest that was tried.
    assert poor.options[0].run.usd <= fewest.cheaper.run.usd
