"""`plancast plan` where a framework ships a plan of its own: the better one is the answer."""

from __future__ import annotations

import plancast as pc
import pytest
from plancast.fullness import full
from plancast.recipes.beside import beside, recipe_plan

# Within which the simpler of two plans is the answer (plancast.plan_search).
TIE = 0.005


def asked(model: str, machine: str, dtype: str, **more: object) -> tuple[pc.Choice, pc.Forecast]:
    where = pc.Machine.open(machine)
    choice = pc.plan(pc.Model.preset(model), where, batch=256, dtype=dtype, **more)
    run = {"batch": 256, "dtype": dtype, "profile": "megatron-core"}
    theirs = recipe_plan(pc.Model.preset(model), where, **run)
    assert theirs is not None
    return choice, theirs


def words(choice: pc.Choice) -> list[str]:
    return [text for text in choice.said if "Megatron-Bridge's recipe" in text]


@pytest.mark.parametrize(
    ("model", "machine", "dtype"),
    [
        ("gpt-oss-120b", "gb200-nvl72:16", "bf16"),
        ("llama3-8b", "dgx-h100:1", "bf16"),
        ("llama3-70b", "dgx-h100:8", "fp8"),
    ],
)
def test_a_recipe_that_is_faster_is_the_answer(model: str, machine: str, dtype: str) -> None:
    choice, theirs = asked(model, machine, dtype)
    best = choice.best
    assert best is not None
    (said,) = words(choice)
    if best.strategy == theirs.strategy:
        assert best.iteration_time == theirs.iteration_time
        assert said.startswith("this is the plan of Megatron-Bridge's recipe; of the default space")
    else:
        assert theirs.strategy in said
        much_slower = theirs.iteration_time > best.iteration_time * (1 - TIE)
        assert much_slower or not theirs.fits or full(theirs)


def test_of_a_space_the_answer_is_of_that_space() -> None:
    choice, theirs = asked("gpt-oss-120b", "gb200-nvl72:16", "bf16", space="pp=2,ep=8,mb=1")
    assert choice.best is not None
    assert ",pp=2," in choice.best.strategy
    (said,) = words(choice)
    assert said == beside([choice.best], theirs)


def test_other_frameworks_have_none() -> None:
    machine = pc.Machine.open("dgx-h100:1")
    choice = pc.plan(pc.Model.preset("llama3-8b"), machine, batch=256, framework="torchtitan")
    assert not words(choice)
    assert recipe_plan(pc.Model.preset("gpt2"), machine, batch=256, profile="megatron-core") is None
