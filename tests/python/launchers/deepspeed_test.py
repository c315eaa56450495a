"""DeepSpeed's configuration."""

from __future__ import annotations

import plancast as pc
import pytest
from files_here import FIXTURES

read = pc.launchers.read


def zero(**settings):
    return pc.Strategy.from_deepspeed(
        {"bf16": {"enabled": True}, "zero_optimization": settings}
    ).short_form


@pytest.mark.parametrize(
    ("file", "strategy", "dtype"),
    [
        ("ds_zero2", "dp=8,zero=2,mb=4,accum=8,overlap=grad,bucket=400MB", "bf16"),
        ("ds_zero3", "zero=3,overlap=grad+param,offload=optimizer+param", None),
        ("ds_zeropp", "zero=3,reshard=16,mb=4,overlap=grad+param,bucket=20MB", "bf16"),
    ],
)
def test_published_configurations(file, strategy, dtype):
    launch = read(FIXTURES / f"{file}.json")
    assert (launch.framework, launch.dtype) == ("deepspeed", dtype)
    assert launch.strategy.short_form == strategy
    assert launch.unsupported == ()


def test_zero_plus_plus_is_types_of_the_wire():
    types = read(FIXTURES / "ds_zeropp.json").types
    assert types == {"gather_dtype": "int8", "reduce_dtype": "int4"}


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"stage": 0}, ""),
        ({"stage": 1}, "zero=1"),  # overlap_comm is off below stage 3
        ({"stage": 2, "overlap_comm": True}, "zero=2,overlap=grad"),
        ({"stage": 3}, "zero=3"),
        ({"stage": 3, "overlap_comm": True}, "zero=3,overlap=grad+param"),
        ({"stage": 3, "overlap_comm": False}, "zero=3,overlap=none"),
        ({"stage": 3, "mics_shard_size": 8}, "zero=3,hsdp=8"),
        ({"stage": 3, "stage3_prefetch_bucket_size": 0},
         "zero=3,prefetch=0"),
        ({"stage": 1, "reduce_bucket_size": 5e8}, "zero=1,bucket=1GB"),
        ({"stage": 2, "cpu_offload": True}, "zero=2,offload=optimizer"),
    ],
)  # fmt: skip
def test_zero_optimization(settings, wanted):
    assert zero(**settings) == wanted


def test_the_form_of_2020():
    launch = read({"train_batch_size": 8, "zero_optimization": True}, "deepspeed")
    assert launch.strategy.short_form == "zero=1"


@pytest.mark.parametrize(
    ("sizes", "gpus", "wanted"),
    [
        ((256, 4, 8), None, "dp=8,mb=4,accum=8"),
        ((256, 4, None), 8, "dp=8,mb=4,accum=8"),
        ((256, None, 8), 8, "dp=8,mb=4,accum=8"),
        ((None, 4, 8), None, "mb=4,accum=8"),
        ((256, 4, None), None, "mb=4"),
    ],
)
def test_any_two_sizes_give_the_third(sizes, gpus, wanted):
    names = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    document = {name: size for name, size in zip(names, sizes, strict=True) if size}
    launch = read(document, "deepspeed", gpus=gpus)
    assert launch.strategy.short_form == wanted


def test_elements_ahead_are_layers_of_the_model():
    model = pc.Model.preset("llama3-8b")  # 251 M parameters for each of 32 layers
    document = {"zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 500_000_000}}
    assert "prefetch=2" in read(document, model=model).strategy.short_form
    launch = read(document)
    assert "prefetch" not in launch.strategy.short_form
    assert any("Give the model" in note for note in launch.notes)
    text = pc.Strategy.parse("zero=3,prefetch=2,mb=1").launch_config("deepspeed", model=model)
    assert "prefetch=2" in read(text, model=model).strategy.short_form


def test_recomputation_is_the_codes():
    launch = read({"train_micro_batch_size_per_gpu": 1,
                   "activation_checkpointing": {"cpu_checkpointing": True}})  # fmt: skip
    assert "recompute=full,offload=activations" in launch.strategy.short_form
    assert any("model's code" in note for note in launch.notes)


def test_nvme_is_told():
    launch = read({"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}})
    assert "offload=param" in launch.strategy.short_form
    assert "nvme" in launch.unsupported[0]


@pytest.mark.parametrize("value", ["auto", 1e9, 1_000_000_000])
def test_what_is_used_again_within_the_usual_distance_stays_gathered(value):
    launch = read({"zero_optimization": {"stage": 3, "stage3_max_reuse_distance": value}})
    assert launch.unsupported == ()


def test_another_distance_is_told():
    launch = read({"zero_optimization": {"stage": 3, "stage3_max_reuse_distance": 0}})
    assert launch.unsupported == (
        "`zero_optimization.stage3_max_reuse_distance` = `0`: layers that run again gather "
        "parameters once more that so many elements lie between; forecasts have 1e9.",
    )


def test_accelerates_words():
    launch = read(
        "distributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_processes: 16\n"
        "deepspeed_config:\n  zero_stage: 3\n  gradient_accumulation_steps: 4\n"
        "  offload_optimizer_device: cpu\n  offload_param_device: none\n"
        "  zero3_init_flag: true\n"
    )
    assert launch.framework == "deepspeed"
    assert launch.strategy.short_form == ("dp=16,zero=3,accum=4,offload=optimizer")
    assert launch.dtype == "bf16"
    with pytest.raises(pc.InputError, match="Read that file"):
        read({"deepspeed_config": {"deepspeed_config_file": "ds.json"}})


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"zero_optimization": {"stage": 4}}, "there are 0 to 3"),
        ({"zero_optimization": {"stage": "3"}}, "a whole number"),
        ({"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}, "stage 3"),
        ({"zero_optimization": {"stage": 1, "zero_hpz_partition_size": 8}}, "stage 3"),
        ({"zero_optimisation": {"stage": 1}, "steps_per_print": 1}, "Did you mean"),
        ({"train_micro_batch_size_per_gpus": 1, "steps_per_print": 1}, "Did you mean"),
        ({"bf16": {"enabled": True}, "fp16": {"enabled": True}, "steps_per_print": 1}, "both"),
        ({"train_batch_size": 10, "train_micro_batch_size_per_gpu": 4,
          "gradient_accumulation_steps": 1}, "no multiple"),
    ],
)  # fmt: skip
def test_mistakes(document, words):
    with pytest.raises(pc.InputError, match=words):
        read(document)


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ("pp=4,zero=1,mb=1", "PipelineModule"),
        ("zero=3,reshard=off,mb=1", "Nearest: zero=2"),
        ("zero=2,hsdp=4,dp=8,mb=1", "Nearest: zero=3"),
        ("zero=2,offload=param,mb=1", "Nearest: zero=3"),
        ("offload=optimizer,mb=1", "Nearest: zero=1"),
        ("zero=3,overlap=grad,mb=1", "overlap=grad\\+param"),
        ("zero=3,recompute=selective,mb=1", "Nearest: recompute=full"),
        ("zero=3,sync=last,mb=1", "each micro-batch"),
        ("zero=3,prefetch=3,mb=1", "give the model"),
        ("zero=3,unit=2,mb=1", "Nearest: unit=1"),
        ("tp=2,sp,mb=1", "not sequence-parallel"),
        ("zero=3,offload=activations,mb=1", "recompute=full,offload=activations"),
    ],
)
def test_plans_that_deepspeed_cannot_run(strategy, words):
    with pytest.raises(pc.InputError, match=words):
        pc.Strategy.parse(strategy).launch_config("deepspeed")
