"""Some random sessions of users; `make soak` runs more."""

from __future__ import annotations

from collections import Counter

from tests.fuzz import children
from tests.fuzz.random_session import draw
from tests.fuzz.sessions import fault_of

CASES = 24


def test_random_sessions_keep_all_laws():
    faults: list[str] = []
    seeds = list(range(5000, 5000 + CASES))
    outcomes = children.run(seeds, lambda seed: fault_of(draw(seed)), draw, faults.append)
    assert not faults, "\n".join(faults)
    assert outcomes["good"] > CASES / 3
    assert outcomes["plans"] > 10 * CASES


def test_a_number_always_draws_the_same_session():
    assert str(draw(7)) == str(draw(7))
    assert len({str(draw(seed)) for seed in range(30)}) == 30


def test_every_kind_of_session_is_drawn():
    drawn = [draw(seed) for seed in range(120)]
    kinds = Counter(one.kind for one in drawn)
    assert set(kinds) == {"small", "layers", "zoo", "graph", "import", "catalogue"}
    assert {one.damage for one in drawn} == {"", "device", "link", "figures", "both"}
    assert any("sections" in one.machine for one in drawn)
    assert any(isinstance(one.strategy, str) for one in drawn)
    assert any(one.told for one in drawn)
