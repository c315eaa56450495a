"""Types in Megatron's arguments."""

from __future__ import annotations

import plancast as pc
import pytest

read = pc.launchers.read


def test_types():
    launch = read(
        "--bf16 --use-precision-aware-optimizer --main-grads-dtype bf16 --exp-avg-dtype fp8 "
        "--exp-avg-sq-dtype fp8 --main-params-dtype fp16 --fp8-format hybrid --fp8-recipe mxfp8"
    )
    assert launch.dtype == "mxfp8"
    assert launch.types == {
        "grad_dtype": "bf16", "reduce_dtype": "bf16", "main_grad_dtype": "bf16",
        "state_dtype": "fp8", "master": "fp16",
    }  # fmt: skip
    assert read("--fp16 --micro-batch-size 1").types == {}
    assert read("--micro-batch-size 1").dtype == "fp32"


def test_attention_runs_in_the_type_of_eight_bit_products():
    flags = "--bf16 --fp8-format hybrid --fp8-recipe {} --fp8-dot-product-attention"
    assert read(flags.format("tensorwise")).types == {"attention_dtype": "fp8"}
    assert read(flags.format("mxfp8")).types == {"attention_dtype": "mxfp8"}
    blocks = read(flags.format("blockwise"))
    assert blocks.types == {}
    assert "attention with blockwise scales" in blocks.unsupported[0]
    assert read("--bf16 --fp8-dot-product-attention").types == {}


def test_optimizers():
    assert read("--bf16 --optimizer sgd").types == {"optimizer_type": "sgd-momentum"}
    assert read("--bf16 --optimizer sgd --sgd-momentum 0").types == {"optimizer_type": "sgd"}
    assert read("--bf16 --optimizer adam --micro-batch-size 1").types == {}
    muon = read("--bf16 --optimizer dist_muon --micro-batch-size 1")
    assert muon.types == {"optimizer_type": "muon"} and "zero=1" in muon.strategy.short_form
    for zero, name in ((0, "muon"), (1, "dist_muon")):
        plan = pc.Strategy.parse("dp=8,mb=1" if zero == 0 else "dp=8,zero=1,mb=1")
        text = plan.launch_config("megatron", optimizer_type="muon")
        assert f"--optimizer {name}" in text and "--use-distributed-optimizer" not in text
        assert read(text).strategy == plan
    assert "none of adam, sgd" in read("--bf16 --optimizer soap").unsupported[0]


@pytest.mark.parametrize(
    ("dtype", "types", "words"),
    [
        ("tf32", {}, "no such products"),
        ("bf16", {"grad_dtype": "fp32", "reduce_dtype": "bf16"}, "gradients in bf16 and fp32"),
        ("bf16", {"gather_dtype": "int8"}, "fp8 gathers need dtype fp8"),
        ("bf16", {"state_dtype": "int8"}, "Nearest: fp8"),
        ("bf16", {"attention_dtype": "fp8"}, "in the type of 8-bit products"),
        ("bf16", {"master": "off"}, "keeps one"),
        ("bf16", {"optimizer_type": "lion"}, "it has adam, sgd"),
        ("bf16", {"param_dtype": "fp32"}, "no setting"),
    ],
)
def test_types_that_megatron_does_not_have(dtype, types, words):
    with pytest.raises(pc.InputError, match=words):
        pc.Strategy.parse("mb=1").launch_config("megatron", dtype=dtype, **types)
