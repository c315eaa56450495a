"""Some random plans of all presets, with shortcuts as without; `tests.fuzz.plans` runs more."""

from __future__ import annotations

from tests.fuzz.plans import draw, run


def test_random_plans_give_every_figure_with_shortcuts_as_without():
    faults: list[str] = []
    outcomes = run(list(range(1000, 1100)), faults.append)
    assert not faults, "\n".join(faults)
    assert outcomes["good"] > 50


def test_a_number_always_draws_the_same_plan():
    assert str(draw(7)) == str(draw(7))
    assert len({str(draw(seed)) for seed in range(50)}) == 50
