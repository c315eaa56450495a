"""FSDP of accelerate and the Trainer."""

from __future__ import annotations

import plancast as pc
import pytest
import yaml
from files_here import FIXTURES

read = pc.launchers.read


def plan(settings, **known):
    return pc.Strategy.from_fsdp({"distributed_type": "FSDP", **settings}, **known).short_form


def test_hybrid_sharding_stays_inside_hosts():
    launch = read(FIXTURES / "accelerate_fsdp.yaml")
    assert launch.strategy.short_form == "dp=16,zero=3,hsdp=8"
    assert (launch.gpus, launch.dtype, launch.unsupported) == (16, "bf16", ())
    with pytest.raises(pc.InputError, match="num_machines"):
        plan({"fsdp_config": {"fsdp_sharding_strategy": "HYBRID_SHARD"}})
    sizes = {"gpus": 32, "gpus_per_host": 8}
    hybrid = {"fsdp_config": {"fsdp_sharding_strategy": 5}}
    assert plan(hybrid, **sizes) == "dp=32,zero=3,hsdp=8,reshard=off"


def test_a_mesh_of_fsdp2():
    launch = read(FIXTURES / "accelerate_fsdp2.yaml")
    wanted = "dp=8,tp=4,zero=3,hsdp=4,reshard=off,mb=2,recompute=full,offload=optimizer+param"
    assert launch.strategy.short_form == wanted
    assert launch.batch == 16


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"fsdp_sharding_strategy": "FULL_SHARD"}, "zero=3"),
        ({"fsdp_sharding_strategy": 2}, "zero=3,reshard=off"),
        ({"fsdp_sharding_strategy": "NO_SHARD"}, ""),
        ({"fsdp_version": 2, "fsdp_reshard_after_forward": 8}, "zero=3,reshard=8"),
        ({"fsdp_version": 2, "fsdp_reshard_after_forward": "true"}, "zero=3"),
        ({"fsdp_reshard_after_forward": "SHARD_GRAD_OP"}, "zero=3,reshard=off"),
        ({"fsdp_backward_prefetch": "NO_PREFETCH"}, "zero=3,prefetch=0"),
        ({"fsdp_backward_prefetch_policy": "BACKWARD_POST"}, "zero=3"),
        ({"fsdp_offload_params": True}, "zero=3,offload=optimizer+param"),
        ({"activation_checkpointing": True}, "zero=3,recompute=full"),
    ],
)
def test_settings(settings, wanted):
    assert plan({"fsdp_config": settings}) == wanted


def test_the_trainers_arguments():
    launch = read(
        "fsdp: hybrid_shard auto_wrap offload\nfsdp_config:\n  backward_prefetch: backward_pre\n"
        "per_device_train_batch_size: 2\ngradient_accumulation_steps: 4\nbf16: true\n"
        "gradient_checkpointing: true\nattn_implementation: eager\n"
        "model_name_or_path: meta-llama/Llama-2-7b-hf\nmax_seq_length: 4096\n",
        gpus=16, gpus_per_host=8,
    )  # fmt: skip
    assert launch.strategy.short_form == (
        "dp=16,zero=3,hsdp=8,sync=last,mb=2,accum=4,recompute=full,attn=unfused,"
        "offload=optimizer+param"
    )
    assert (launch.model, launch.seq, launch.dtype) == ("llama2-7b", 4096, "bf16")
    assert launch.types == {"reduce_dtype": "bf16"}


def test_without_sharding_it_is_ddp():
    launch = read("distributed_type: MULTI_GPU\nnum_processes: 8\nmixed_precision: fp16\n")
    assert (launch.strategy.short_form, launch.profile) == ("dp=8", "ddp")


def test_buckets_of_ddp_are_an_argument_of_the_trainer():
    text = "# accelerate launch t.py --ddp_bucket_cap_mb 50\ndistributed_type: MULTI_GPU\n"
    assert read(text).strategy.short_form == "bucket=50MiB"
    written = pc.Strategy.parse("dp=8,mb=2,bucket=100MiB").launch_config("fsdp")
    assert "--per_device_train_batch_size 2 --ddp_bucket_cap_mb 100\n" in written
    assert "ddp" not in str(yaml.safe_load(written))  # accelerate's file has no such key
    assert read(written).strategy.short_form == "dp=8,mb=2,bucket=100MiB"
    trainer = {"fsdp": "full_shard", "ddp_bucket_cap_mb": 50}
    launch = read(trainer)
    assert launch.strategy.short_form == "zero=3"
    assert any("`ddp_bucket_cap_mb`: of DDP, without effect" in note for note in launch.notes)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("dp=8,mb=1,bucket=25MB", "it counts in MiB. Nearest: bucket=24MiB"),
        ("dp=8,mb=1,bucket=50MiB,first_bucket=1MiB", "without `first_bucket`"),
        ("dp=8,mb=1,zero=3,bucket=25MiB", "without `bucket`"),
    ],
)
def test_buckets_that_it_cannot_say_are_refused(plan, words):
    with pytest.raises(pc.InputError, match=words):
        pc.Strategy.parse(plan).launch_config("fsdp")


def test_accelerate_takes_what_is_written():
    text = pc.Strategy.parse("dp=8,zero=3,mb=2,accum=4,recompute=full").launch_config("fsdp")
    command, _, document = text.partition("\n")
    assert command.startswith("# accelerate launch")
    assert "--per_device_train_batch_size 2 --gradient_accumulation_steps 4" in command
    assert "# gradients are reduced in the last micro-batch: sync=last" in document
    written = yaml.safe_load(text)
    assert written["fsdp_config"]["fsdp_version"] == 1
    assert written["num_processes"] == 8


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"distributed_type": "MEGATRON_LM"}, "not FSDP"),
        ({"fsdp_config": {"fsdp_sharding_strategy": "HALF"}}, "There are `FULL_SHARD`"),
        ({"fsdp_config": {"fsdp_reshard_after_forward": 1}}, "a number of ranks from 2"),
        ({"fsdp_config": {"fsdp_shardin_strategy": 1}}, "Did you mean"),
        ({"fsdp": "full_shrad", "distributed_type": "FSDP"}, "it takes one of"),
        ({"num_processes": 8, "parallelism_config": {"parallelism_config_tp_size": 3}},
         "multiple of 3"),
        ({"num_processes": 8, "parallelism_config": {"parallelism_config_dp_shard_size": 4}},
         "are 4 ranks"),
    ],
)  # fmt: skip
def test_mistakes(settings, words):
    with pytest.raises(pc.InputError, match=words):
        plan(settings)


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ("pp=2,zero=3,mb=1", "no pipeline"), ("dp=8,zero=2,mb=1", "Nearest: zero=3,reshard=off"),
        ("zero=3,prefetch=2,mb=1", "Nearest: prefetch=1"),
        ("zero=3,unit=2,mb=1", "Nearest: unit=1"),
        ("zero=3,recompute=selective,mb=1", "recompute=full"),
        ("zero=3,bucket=25MB,mb=1", "without `bucket`"), ("zero=3,attn=flash,mb=1", "model's code"),
        ("zero=3,hsdp=4,mb=1", "with dp said"), ("zero=3,sync=each,mb=1,accum=2", "sync=last"),
    ],
)  # fmt: skip
def test_plans_that_accelerate_cannot_run(strategy, words):
    with pytest.raises(pc.InputError, match=words):
        pc.Strategy.parse(strategy).launch_config("fsdp")
