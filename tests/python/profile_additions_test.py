"""Kernels of another library behind a profile's name."""

from __future__ import annotations

import plancast as pc
import pytest

MODEL = pc.Model.preset("llama3-8b", seq=8192)
H100, B200 = (pc.Machine.preset(name, hosts=1) for name in ("dgx-h100", "dgx-b200"))
PLAN = "dp=8,zero=3,mb=1"


def step(profile, machine=H100, plan=PLAN):
    return pc.predict(MODEL, machine, plan, batch=8, profile=profile)


def test_a_forecast_names_what_was_added_and_keeps_the_level_of_the_profile():
    plain, added = step("deepspeed"), step("deepspeed+liger+flash-attention-3")
    assert added.profile == "deepspeed+liger+flash-attention-3"
    assert added.iteration_time < plain.iteration_time
    assert added.software() == plain.software()
    assert added.beyond_simulated == plain.beyond_simulated


def test_attention_goes_by_its_kernel_and_the_chip():
    times = [
        step(f"fsdp{addition}").iteration_time
        for addition in ("+cudnn-2026", "+flash-attention-3", "+cudnn-2024", "+flash-attention-2")
    ]
    assert times == sorted(times) and len(set(times)) == 4
    assert step("fsdp").iteration_time == times[-1]
    # On Blackwell PyTorch runs cuDNN, and FlashAttention-2 takes three times as long.
    on_b200 = [step(f"fsdp{a}", B200).iteration_time for a in ("", "+flash-attention-2")]
    assert on_b200[1] > 1.1 * on_b200[0]


def test_liger_keeps_less_than_eager_modules():
    plain, fused = step("deepspeed"), step("deepspeed+liger")
    assert fused.peak_memory < plain.peak_memory
    assert fused.iteration_time < plain.iteration_time


def test_gates_in_eight_bits_are_half_as_large():
    plan = "dp=1,tp=8,sp,mb=1,recompute=none"
    plain, small = (step(f"megatron-core{a}", plan=plan) for a in ("", "+fp8-activation-input"))
    # Two inputs of 14,336 elements a token and layer, an eighth on each GPU. Those of the layer
    # that goes back are there in 16 bits as well, and the allocator loses a twentieth of either.
    a_layer = 2 * 14336 / 8 * 8192
    saved = plain.peak_memory - small.peak_memory
    assert 29 * a_layer <= saved <= 32 * a_layer * 1.06
    assert small.iteration_time > plain.iteration_time


def test_delayed_scaling_reads_operands_once():
    def fp8(profile):
        return pc.predict(MODEL, H100, "dp=1,tp=8,sp,mb=1", batch=8, dtype="fp8", profile=profile)

    current, delayed = fp8("megatron-core"), fp8("megatron-core+delayed-scaling")
    assert delayed.iteration_time < current.iteration_time
    assert fp8("nemo-2024+delayed-scaling").iteration_time == fp8("nemo-2024").iteration_time


@pytest.mark.parametrize(
    ("machine", "addition", "gpu"),
    [
        ("dgx-a100-80g", "flash-attention-3", "A100-SXM-80GB"),
        ("dgx-b200", "flash-attention-3", "B200-SXM"),
        ("mi300x-oam", "cudnn-2026", "MI300X"),
        ("t4-pcie", "flash-attention-2", "T4"),
    ],
)
def test_kernels_that_a_gpu_has_not_are_refused(machine, addition, gpu):
    with pytest.raises(pc.InputError, match=f"`{addition}` has no kernels for {gpu}"):
        step(f"fsdp+{addition}", pc.Machine.preset(machine, hosts=1), "zero=3,mb=1")


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ("deepspeed+ligre", "`deepspeed+ligre`: nothing is called `ligre` .* Did you mean `liger`"),
        ("deepspeed+liger+liger", "adds `liger` twice"),
        ("deepspeed+", "nothing is called ``"),
        ("+liger", "no software profile ``"),
    ],
)
def test_mistakes_are_named(profile, message):
    with pytest.raises(pc.InputError, match=message.replace("+", r"\+")):
        step(profile)


def test_all_additions_run_behind_the_default_profile():
    for addition in pc.profile_additions():
        assert step(f"megatron-core+{addition}", plan="dp=1,tp=8,sp,mb=1").iteration_time > 0
