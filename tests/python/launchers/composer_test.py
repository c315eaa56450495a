"""Composer and llm-foundry."""

from __future__ import annotations

import plancast as pc
import pytest
from files_here import FIXTURES

read = pc.launchers.read


def settings(**fsdp):
    return {"precision": "amp_bf16", "fsdp_config": fsdp}


def test_mpt_7b():
    launch = read(FIXTURES / "mpt_7b.yaml", gpus=8)
    assert launch.framework == "composer"
    assert launch.strategy.short_form == "dp=8,zero=3,mb=8,accum=16,recompute=full,attn=flash"
    assert (launch.batch, launch.seq, launch.profile) == (1024, 2048, "composer")
    assert launch.model.parameters == pc.Model.preset("mpt-7b").parameters
    assert launch.unsupported == ()
    assert pc.Strategy.from_fsdp(FIXTURES / "mpt_7b.yaml").launch.framework == "composer"


@pytest.mark.parametrize(
    ("mixed", "reduce", "profile"),
    [("PURE", "bf16", "composer"), ("DEFAULT", "fp32", "composer-fp32-reduce"),
     ({"param_dtype": "bf16", "reduce_dtype": "fp32"}, "fp32", "composer-fp32-reduce")],
)  # fmt: skip
def test_mixed_precision_chooses_the_profile(mixed, reduce, profile):
    launch = read(settings(mixed_precision=mixed))
    assert (launch.types["reduce_dtype"], launch.profile) == (reduce, profile)


@pytest.mark.parametrize(
    ("fsdp", "wanted"),
    [
        ({"sharding_strategy": "SHARD_GRAD_OP"}, "zero=3,reshard=off"),
        ({"device_mesh": [2, 4]}, "dp=8,zero=3,hsdp=4"),
        ({"data_parallel_shard_degree": 4, "data_parallel_replicate_degree": 2},
         "dp=8,zero=3,hsdp=4"),
        ({"activation_cpu_offload": True, "activation_checkpointing": True},
         "zero=3,recompute=full,offload=activations"),
        ({"backward_prefetch_limit": 2, "forward_prefetch_limit": 2}, "zero=3,prefetch=2"),
        ({"backward_prefetch": "NONE"}, "zero=3,prefetch=0"),
    ],
)  # fmt: skip
def test_fsdp_config(fsdp, wanted):
    assert read(settings(**fsdp)).strategy.short_form == wanted


def test_sizes_that_differ_are_told():
    launch = read(settings(backward_prefetch_limit=2))
    assert "prefetch=2" in launch.strategy.short_form
    assert "forward_prefetch_limit" in launch.unsupported[0]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (settings(mixed_precision="HALF"), "there are `PURE`"),
        (settings(device_mesh=[2, 4, 8]), "one or two numbers"),
        (settings(sharding_strategy="HYBRID_SHARD"), "GPUs of one"),
        (settings(sharding_stratgy="FULL_SHARD"), "Did you mean"),
        ({"max_seq_len": -1, "fsdp_config": {}}, "number of tokens"),
    ],
)
def test_mistakes(document, words):
    with pytest.raises(pc.InputError, match=words):
        read(document)


@pytest.mark.parametrize(
    ("strategy", "words"),
    [("tp=2,zero=3,mb=1", "listed in code"), ("zero=3,reshard=4,mb=1", "Nearest: reshard=on"),
     ("zero=3,unit=2,mb=1", "Nearest: unit=1"),
     ("zero=3,mb=1,accum=2", "with dp said"), ("dp=2,zero=3,sync=last,mb=1,accum=2", "sync=each"),
     ("zero=3,offload=optimizer+param,mb=1", "Nearest: offload=activations")],
)  # fmt: skip
def test_plans_that_composer_cannot_run(strategy, words):
    with pytest.raises(pc.InputError, match=words):
        pc.Strategy.parse(strategy).launch_config("composer")
