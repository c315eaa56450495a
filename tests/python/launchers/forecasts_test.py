"""Argument files of forecasts and rankings."""

from __future__ import annotations

import plancast as pc
import pytest


@pytest.fixture(scope="module")
def model():
    return pc.Model.from_config(
        name="m", layers=10, hidden=512, heads=8, ffn=2048, vocab=1000, seq=256
    )


@pytest.fixture(scope="module")
def machine():
    return pc.Machine.preset("dgx-h100", hosts=2)


def test_a_forecast_writes_what_it_chose(model, machine):
    forecast = pc.predict(model, machine, "tp=2,pp=4,zero=1,mb=1", batch=32, dtype="fp8")
    launch = pc.launchers.read(forecast.launch_config("megatron-core", model=model))
    assert launch.strategy.short_form == "dp=2,tp=2,pp=4,zero=1,mb=1,accum=16"
    assert (launch.dtype, launch.batch, launch.gpus) == ("fp8", 32, 16)
    # 10 layers on 4 stages: what the forecast chose is what Megatron is told.
    text = forecast.launch_config("megatron-core", model=model)
    assert "--pipeline-model-parallel-layout" in text
    again = launch.predict(machine)
    assert again.chosen["layout"] == forecast.chosen["layout"]
    assert again.iteration_time == pytest.approx(forecast.iteration_time, rel=1e-9)


def test_defaults_of_another_profile_are_said(model, machine):
    forecast = pc.predict(model, machine, "tp=2,zero=1,mb=1", batch=32, profile="megatron-bridge")
    text = forecast.launch_config("megatron-core")
    assert "--overlap-grad-reduce" in text
    assert "--overlap-param-gather" in text


def test_deepspeeds_switch_follows_the_stage(model, machine):
    for profile, wanted in (("fsdp", ",overlap=grad"), ("deepspeed", "")):
        forecast = pc.predict(model, machine, "zero=1,mb=1", batch=32, profile=profile)
        launch = pc.launchers.read(forecast.launch_config("deepspeed"))
        assert f"accum=2{wanted}" in launch.strategy.short_form


def test_ranked_plans_have_files(model, machine):
    ranking = pc.rank(model, machine, batch=32, space="tp=1|2,pp=1,vpp=1,mb=1,zero=1")
    for plan in ranking:
        text = plan.launch_config("megatron-core", model=model)
        read = pc.launchers.read(text)
        again = read.predict(machine, profile=plan.profile)
        assert again.iteration_time == pytest.approx(plan.iteration_time, rel=1e-9)


def test_nodes_of_a_tree_are_not_dropped(model, machine):
    tree = pc.Strategy.parse("tp=2,mb=1")
    tree["head.logits"].split(tp=[])
    forecast = pc.predict(model, machine, tree, batch=32)
    with pytest.raises(pc.InputError, match=r"`head\.logits`"):
        forecast.launch_config("megatron")


def test_what_the_caller_says_goes_first(model, machine):
    forecast = pc.predict(model, machine, "zero=1,mb=1", batch=32)
    launch = pc.launchers.read(forecast.launch_config("megatron-core", dtype="fp16"))
    assert launch.dtype == "fp16"


@pytest.mark.parametrize(
    ("profile", "plan", "batch", "many"),
    [
        ("megatron-core", "dp=2,pp=4,vpp=2,mb=1", 6, "3 micro-batches"),
        ("megatron-core", "dp=2,pp=4,vpp=2,mb=1", 2, "1 micro-batch "),
        ("torchtitan", "dp=2,pp=4,mb=1", 6, "3 micro-batches"),
        ("torchtitan", "dp=2,pp=4,vpp=2,mb=1", 18, "9 micro-batches"),
        ("torchtitan", "dp=2,pp=4,vpp=2,schedule=dualpipev,mb=1", 8, "4 micro-batches"),
    ],
)
def test_schedules_are_refused_numbers_of_micro_batches_that_they_do_not_take(
    profile, plan, batch, many
):
    model, machine = pc.Model.preset("llama3-8b"), pc.Machine.preset("dgx-h100")
    forecast = pc.predict(model, machine, plan, batch=batch, profile=profile)
    with pytest.raises(pc.InputError, match=f"each rank has {many}.*Nearest: another batch"):
        forecast.launch_config(profile)
    good = pc.predict(model, machine, plan, batch=16, profile=profile)
    assert good.launch_config(profile)
    assert pc.why_framework_cannot_run(profile, plan) == ""
    assert pc.why_framework_cannot_run(profile, plan, micro_batches=batch // 2)
    assert pc.why_framework_cannot_run(profile, plan, micro_batches=8) == ""


@pytest.mark.parametrize(("batch", "group"), [(16, None), (8, None), (12, 6), (10, 5), (26, 7)])
def test_interleaved_groups_of_other_sizes_than_pp_are_said(batch, group):
    model, machine = pc.Model.preset("llama3-8b"), pc.Machine.preset("dgx-h100")
    forecast = pc.predict(model, machine, "dp=2,pp=4,vpp=2,mb=1", batch=batch)
    text = forecast.launch_config("megatron-core")
    flag = "--microbatch-group-size-per-virtual-pipeline-stage"
    assert (f"{flag} {group}\n" in text) if group else (flag not in text)
    launch = pc.launchers.read(text, "megatron-core", gpus=8)
    assert not [word for word in launch.unsupported if "group-size" in word]
    if group:
        other = pc.launchers.read(text.replace(f"{flag} {group}", f"{flag} {group + 1}"), gpus=8)
        assert any("group-size" in word and f"takes {group} " in word for word in other.unsupported)
