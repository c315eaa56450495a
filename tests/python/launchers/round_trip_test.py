"""What is written is read again, of every plan that a framework can run."""

from __future__ import annotations

import random

import plancast as pc
import pytest
from random_plans import DRAW, anything


@pytest.mark.parametrize("framework", DRAW)
@pytest.mark.parametrize("seed", range(120))
def test_read_of_written_is_the_plan(framework, seed):
    plan = DRAW[framework](random.Random(f"{framework} {seed}"))
    text = plan.launch_config(framework)
    assert pc.launchers.read(text, framework).strategy == plan, text


@pytest.mark.parametrize("framework", DRAW)
def test_any_plan_is_refused_or_written_the_same_twice(framework):
    written = 0
    for seed in range(2000):
        plan = anything(random.Random(f"anything {seed}"))
        try:
            text = plan.launch_config(framework)
        except pc.InputError as error:
            assert "Nearest: " in str(error) or "Give " in str(error)
            continue
        again = pc.launchers.read(text, framework).strategy.launch_config(framework)
        assert _settings(again) == _settings(text), plan
        written += 1
    assert written > 20


def _settings(text: str) -> list[str]:
    """Lines without comments, which say how what is left open is decided."""
    return [line for line in text.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("framework", DRAW)
@pytest.mark.parametrize("seed", range(20))
def test_framework_shows_in_the_text(framework, seed):
    plan = DRAW[framework](random.Random(f"{framework} {seed}"))
    assert pc.launchers.read(plan.launch_config(framework)).framework == framework


@pytest.mark.parametrize("framework", DRAW)
@pytest.mark.parametrize("seed", range(20))
def test_parsed_documents_read_as_their_text_does(framework, seed, tmp_path):
    plan = DRAW[framework](random.Random(f"{framework} {seed}"))
    suffix = pc.launchers.FRAMEWORKS[framework].suffix
    path = tmp_path / f"file{suffix}"
    path.write_text(plan.launch_config(framework))
    assert pc.launchers.read(path, framework).strategy == plan
    assert pc.Strategy.open(str(path)) == plan


@pytest.mark.parametrize(
    ("framework", "run"),
    [
        ("torchtitan", {"dtype": "fp8", "gather_dtype": "fp8", "reduce_dtype": "bf16"}),
        ("torchtitan", {"dtype": "fp32", "profile": "torchtitan-eager", "seq": 4096}),
        ("fsdp", {"dtype": "fp16"}),
        ("composer", {"dtype": "bf16", "reduce_dtype": "fp32", "seq": 2048}),
        ("deepspeed", {"dtype": "fp16", "gather_dtype": "int8", "reduce_dtype": "int4"}),
        ("deepspeed", {"dtype": "bf16", "master": "bf16", "state_dtype": "bf16"}),
        ("deepspeed", {"dtype": "bf16", "grad_dtype": "fp32", "reduce_dtype": "fp32"}),
        ("megatron-core", {"dtype": "mxfp8", "grad_dtype": "bf16", "reduce_dtype": "bf16"}),
        ("megatron-core", {"dtype": "fp16", "state_dtype": "bf16", "cuda_graphs": True}),
        ("megatron-core", {"dtype": "nvfp4", "seq": 8192, "state_dtype": "fp8+fp16"}),
        ("megatron-core", {"dtype": "fp8-block", "gather_dtype": "fp8"}),
        ("megatron-core", {"dtype": "bf16", "optimizer_type": "sgd-momentum"}),
        ("megatron-core", {"dtype": "bf16", "optimizer_type": "sgd"}),
        ("deepspeed", {"dtype": "bf16", "optimizer_type": "muon"}),
        ("deepspeed", {"dtype": "fp16", "optimizer_type": "lamb"}),
        ("deepspeed", {"dtype": "bf16", "optimizer_type": "sgd-momentum"}),
        ("fsdp", {"dtype": "bf16", "optimizer_type": "lion"}),
        ("composer", {"dtype": "bf16", "optimizer_type": "lion"}),
        ("megatron-core", {"dtype": "mxfp8", "attention_dtype": "mxfp8"}),
        ("megatron-core", {"dtype": "fp8", "attention_dtype": "fp8"}),
        ("megatron-core", {"main_grad_dtype": "bf16", "grad_dtype": "bf16", "dtype": "bf16"}),
        (
            "torchtitan",
            {"dtype": "fp8-row", "param_dtype": "bf16", "state_dtype": "bf16", "master": "off"},
        ),
    ],
)
def test_types_come_back(framework, run):
    launch = pc.launchers.read(
        pc.Strategy.parse("dp=8,zero=3,mb=1").launch_config(framework, **run), framework
    )
    assert launch.dtype == run["dtype"]
    for option, value in run.items():
        if option.endswith("_dtype") or option in ("master", "optimizer_type"):
            assert launch.types[option] == value
        elif option != "dtype":
            assert getattr(launch, option) == value


@pytest.mark.parametrize("framework", DRAW)
def test_what_is_left_open_stays_open(framework):
    plan = pc.Strategy.parse("dp=8,zero=3,mb=2")
    read = pc.launchers.read(plan.launch_config(framework), framework).strategy
    again = pc.launchers.read(read.launch_config(framework), framework).strategy
    assert read == again
    assert read == plan


def test_a_batch_settles_the_accumulation():
    plan = pc.Strategy.parse("dp=8,zero=3,mb=2")
    for framework in DRAW:
        launch = pc.launchers.read(plan.launch_config(framework, batch=64), framework)
        assert "accum=4" in launch.strategy.short_form, framework
        assert launch.batch == 64


def test_nodes_are_refused():
    tree = pc.Strategy.parse("tp=2,mb=1")
    tree["head.logits"].split(tp=[])
    with pytest.raises(pc.InputError, match=r"`head\.logits`"):
        tree.launch_config("megatron")
