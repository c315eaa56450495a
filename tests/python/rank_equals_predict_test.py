"""A plan has the same forecast whatever plans came before it."""

from __future__ import annotations

import os
import random

import plancast as pc
import pytest

SEED = int(os.environ.get("PLANCAST_TEST_SEED", "20261122"))

# Encoder and decoder, experts, dense, convolutions with batch statistics, images.
MODELS = ["t5-base", "deepseek-v2-lite", "gpt2", "resnet50", "vit-b-16"]


def figures(forecast: pc.Forecast) -> tuple:
    return (
        forecast.strategy,
        forecast.iteration_time,
        tuple(forecast.breakdown().items()),
        forecast.peak_memory,
        forecast.hfu,
    )


def fresh(model: pc.Model, machine: pc.Machine, strategy: str) -> tuple:
    """As it is where nothing came before."""
    return figures(pc.predict(model, machine, strategy, batch=64, session=pc.Session()))


@pytest.mark.parametrize("name", MODELS)
def test_plans_ranked_in_turn_are_as_if_each_were_the_first(name):
    print(f"PLANCAST_TEST_SEED={SEED}")
    rng = random.Random(f"{SEED} {name}")
    model, machine = pc.Model.preset(name), pc.Machine.preset("dgx-h100:1")
    session = pc.Session()
    plans: list[pc.Forecast] = []
    # The largest and the smallest number of data-parallel ranks are there whatever is drawn.
    for mb in rng.sample([1, 2, 4, 8], 2):
        space = f"tp=1|{rng.choice([2, 4])},mb={mb},recompute={rng.choice(['none', 'full'])}"
        ranked = pc.rank(model, machine, batch=64, space=space, session=session, workers=1)
        plans += rng.sample(list(ranked), min(12, len(ranked)))
    assert plans
    for plan in plans:
        assert figures(plan) == fresh(model, machine, plan.strategy)


@pytest.mark.parametrize("name", MODELS)
def test_plans_forecast_in_turn_share_nothing_that_differs(name):
    print(f"PLANCAST_TEST_SEED={SEED}")
    rng = random.Random(f"{SEED} {name}")
    model, machine = pc.Model.preset(name), pc.Machine.preset("dgx-h100:1")
    session = pc.Session()
    splits = ["dp=8", "dp=4,pp=2", "dp=2,pp=4", "dp=4,tp=2", "dp=2,tp=2,pp=2", "dp=2,tp=4", "pp=8"]
    rng.shuffle(splits)
    compared = 0
    for split in splits:
        strategy = f"{split},mb=2,zero={rng.choice([0, 1])}"
        try:
            forecast = pc.predict(model, machine, strategy, batch=64, session=session)
        except pc.InputError:  # such as heads that do not divide
            continue
        assert figures(forecast) == fresh(model, machine, strategy)
        compared += 1
    assert compared >= 3
