"""Whoever recomputes does more: laws between plans that differ in that alone."""

from __future__ import annotations

import random

import plancast as pc
import pytest

MODELS = ("llama3-8b", "mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v2-lite")
PROFILES = ("megatron-core", "megatron-bridge", "torchtitan", "fsdp", "nemo-2024", "compiled")
MACHINES = ("dgx-h100", "dgx-a100-80g", "dgx-b200")
MORE = ("selective", "selective:layernorm", "selective:moe_act", "selective:mlp", "every:2",
        "uniform:2", "full")  # fmt: skip
# Kernels that wait for the host, or run beside other communication than before.
SLACK = 5e-3


def plan(draw: random.Random) -> str:
    tp, pp, cp = draw.choice([1, 1, 2, 4]), draw.choice([1, 1, 2]), draw.choice([1, 1, 2, 4])
    keys = [f"tp={tp}", f"pp={pp}", f"cp={cp}", f"mb={draw.choice([1, 2])}"]
    if cp > 1:
        keys.append(f"cp_type={draw.choice(['ring', 'ring_zigzag', 'allgather', 'ulysses'])}")
    if tp > 1 and draw.random() < 0.7:
        keys.append("sp")
    keys.append(f"zero={draw.choice([0, 1, 2, 3])}")
    keys.append(f"overlap={draw.choice(['none', 'grad', 'grad+param', 'grad+param+tp', 'cp'])}")
    if draw.random() < 0.2:
        keys.append("unit=2")
    return ",".join(keys).replace("cp=1,", "")


@pytest.mark.parametrize("seed", range(4))
def test_no_plan_is_faster_for_recomputing(seed: int) -> None:
    draw, session, compared = random.Random(seed), pc.Session(), 0
    for _ in range(10):
        model = pc.Model.preset(draw.choice(MODELS), seq=draw.choice([2048, 4096]))
        machine = pc.Machine.preset(draw.choice(MACHINES), hosts=2)
        profile, keys = draw.choice(PROFILES), plan(draw)

        def times(
            recompute: str, keys: str = keys, model: pc.Model = model,
            machine: pc.Machine = machine, profile: str = profile,
        ) -> float | None:  # fmt: skip
            try:
                return pc.predict(
                    model, machine, f"{keys},recompute={recompute}", batch=64, profile=profile,
                    session=session,
                ).iteration_time  # fmt: skip
            except pc.InputError:
                return None

        none = times("none")
        for recompute in MORE if none is not None else ():
            if (more := times(recompute)) is None:
                continue
            compared += 1
            asked = f"{model.name} {machine.name} {profile} {keys},recompute={recompute}"
            assert more >= none * (1 - SLACK), asked
        if none is not None:
            assert times("every:1") == times("full")
    assert compared > 10
