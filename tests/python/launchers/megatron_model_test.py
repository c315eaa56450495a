"""Models by Megatron's sizes."""

from __future__ import annotations

import plancast as pc
import pytest

PRESETS = ["gpt3-175b", "llama2-7b", "llama3-70b", "mixtral-8x7b", "deepseek-v3", "qwen3-8b"]


@pytest.mark.parametrize("name", PRESETS)
def test_sizes_come_back(name):
    model = pc.Model.preset(name)
    text = pc.Strategy.parse("mb=1").launch_config("megatron", model=model)
    again = pc.launchers.read(text).model
    # The biases that correct DeepSeek's router are parameters of the release.
    assert again.parameters == pytest.approx(model.parameters, rel=1e-6)
    assert again.layers == model.layers
    assert again.seq == model.seq
    assert again.active_parameters == pytest.approx(model.active_parameters, rel=1e-6)
    for key in ("expert_groups", "groups_per_token"):
        assert again.config.get(key) == model.config.get(key)


@pytest.mark.parametrize(
    ("freq", "fields"),
    [("([0]*3+[1]*5)", {"dense_layers": 3}), ("2", {"moe_every": 2}), ("1", {}),
     ("[0,0,1,1,1,1,1,1]", {"dense_layers": 2})],
)  # fmt: skip
def test_which_layers_have_experts(freq, fields):
    launch = pc.launchers.read(
        "--num-layers 8 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --vocab-size 100 "
        f"--num-experts 4 --moe-layer-freq {freq}"
    )
    config = launch.model.config
    assert {key: config[key] for key in ("dense_layers", "moe_every") if key in config} == fields


def test_a_missing_size_is_told():
    launch = pc.launchers.read("--num-layers 8 --hidden-size 64 --num-attention-heads 4")
    assert launch.model is None
    assert "`--seq-length`, `--vocab-size`" in " ".join(launch.notes)
