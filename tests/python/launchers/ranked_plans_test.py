"""What a ranking lists is what the framework of its profile can be told to run."""

from __future__ import annotations

import plancast as pc
import pytest
from plancast.frameworks.formats import FRAMEWORKS

# Each profile with the framework that it is of, the first that can be switched to it.
LAUNCHABLE = {
    profile: name
    for name, framework in reversed(FRAMEWORKS.items())
    for profile in framework.profiles
}.items()
MODEL = pc.Model.preset("llama3-8b", seq=1024)
MIXTURE = pc.Model.preset("mixtral-8x7b", seq=512)
SMALL = pc.Model.preset("gpt2")  # whole on a GPU


def ranked(model: pc.Model, profile: str, space: str, hosts: int = 1) -> list[pc.Forecast]:
    machine = pc.Machine.preset("dgx-h100", hosts=hosts)
    return list(pc.rank(model, machine, batch=32, space=space, profile=profile))


@pytest.mark.parametrize(("profile", "framework"), LAUNCHABLE)
def test_every_ranked_plan_has_an_argument_file(profile, framework):
    model = SMALL if profile == "ddp" else MODEL
    plans = ranked(model, profile, "mb=1|2,vpp=1|2")
    assert plans
    for plan in plans:
        assert plan.launch_config(framework, model=model)


@pytest.mark.parametrize("profile", ["torchtitan", "megatron-core"])
def test_plans_with_experts_have_one_too(profile):
    plans = ranked(MIXTURE, profile, "tp=1|2,pp=1|2,vpp=1,mb=1,recompute=full", hosts=4)
    assert any("ep=" in plan.strategy for plan in plans)
    for plan in plans:
        assert plan.launch_config(profile, model=MIXTURE)


@pytest.mark.parametrize(("profile", "framework"), LAUNCHABLE)
def test_what_is_left_out_has_no_argument_file(profile, framework):
    """Profiles and writers of argument files know the same of their frameworks."""
    if profile == "ddp":
        pytest.skip("the file of a sharded plan is FSDP's")
    for keys in ("zero=1", "zero=2", "zero=3", "tp=2,pp=2", "recompute=selective", "tp=2,sp"):
        strategy = pc.Strategy.parse(f"dp=2,mb=1,{keys}")
        if not pc.why_framework_cannot_run(profile, strategy):
            continue
        with pytest.raises(pc.InputError, match="cannot run"):
            strategy.launch_config(framework, model=MODEL, profile=profile)
