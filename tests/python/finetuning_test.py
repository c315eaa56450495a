"""Frozen modules, adapters and 4-bit bases: what they take, from Python and YAML."""

import plancast as pc
import pytest
from plancast.errors import InputError

ALL = ["qkv", "proj", "fc1", "fc2"]
MACHINE = pc.Machine.preset("dgx-a100-80g", hosts=1)


def predict(model: str, strategy: pc.Strategy, **options: object) -> pc.Forecast:
    return pc.predict(
        pc.Model.preset(model, seq=2048), MACHINE, strategy, profile="megatron-core", **options
    )


def held(forecast: pc.Forecast) -> tuple[int, int, int]:
    """Bytes of parameters, gradients and state in the fullest class."""
    most = max(forecast.memory, key=lambda memory: memory.allocated)
    return most.parameters, most.gradients, most.optimizer


def test_adapters_take_gradients_and_state_for_themselves_alone() -> None:
    plan = "dp=1,tp=8,sp,mb=1"
    # Captured: the host would take longer with more ops.
    full = predict("llama3-8b", pc.Strategy.parse(plan), cuda_graphs=True)
    lora = predict("llama3-8b", pc.Strategy.parse(plan).lora(rank=16, on=ALL), cuda_graphs=True)
    assert held(lora)[0] > held(full)[0]
    assert sum(held(lora)[1:]) < sum(held(full)[1:]) / 50
    assert lora.iteration_time < 0.85 * full.iteration_time


def test_a_yaml_file_says_the_same() -> None:
    plan = "dp=8,mb=1"
    tree = pc.Strategy.parse(plan).lora(rank=8, on=["qkv", "proj"], dropout=0.05, base="nf4")
    again = pc.Strategy.from_yaml(
        "plan: dp=8,mb=1\nnodes:\n  '':\n"
        "    lora: {rank: 8, on: [qkv, proj], dropout: 0.05, base: nf4}\n"
    )
    assert again == tree == pc.Strategy.from_yaml(tree.to_yaml())
    assert predict("llama3-8b", again).iteration_time == predict("llama3-8b", tree).iteration_time


def test_a_frozen_tail_has_no_backward_pass() -> None:
    tree = pc.Strategy.parse("dp=8,mb=1")
    tree["embedding"].train(False)
    tree["layers[0:24]"].train(False)
    full = predict("llama3-8b", pc.Strategy.parse("dp=8,mb=1,zero=1"))
    part = predict("llama3-8b", tree)
    assert part.iteration_time < full.iteration_time / 1.7
    assert held(part)[1] < 0.4 * held(full)[1]


def test_a_base_in_four_bits_takes_a_quarter_and_some_time() -> None:
    plan = "dp=8,mb=1"
    lora = predict("llama3-8b", pc.Strategy.parse(plan).lora(rank=16, on=ALL))
    quantised = predict("llama3-8b", pc.Strategy.parse(plan).lora(rank=16, on=ALL, base="nf4"))
    matrices = 32 * (4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336)
    assert held(lora)[0] - held(quantised)[0] == pytest.approx(matrices * (2 - 4.127 / 8), rel=1e-4)
    assert quantised.iteration_time > lora.iteration_time


def test_what_cannot_be_is_refused_in_words() -> None:
    for tree, why in [
        (pc.Strategy.parse("dp=8").lora(rank=4, on="q_proj"), "names no op with `q_proj`"),
        (pc.Strategy.parse("dp=8").train(False), "nothing of the model is trained"),
    ]:
        with pytest.raises(InputError, match=why):
            predict("llama3-8b", tree)
    with pytest.raises(InputError, match="has rank 0"):
        pc.Strategy.parse("dp=8").lora(rank=0, on=ALL)
    with pytest.raises(InputError, match="has base `int8`"):
        pc.Strategy.parse("dp=8").lora(rank=4, on=ALL, base="int8")
    with pytest.raises(InputError, match="which parameters are trained is said in the training"):
        pc.Strategy.parse("dp=8,mb=1").lora(rank=4, on=ALL).launch_config("torchtitan")


def test_torchtune_publishes_memory_and_rate_of_a_lora_of_70b() -> None:
    # README of pytorch/torchtune, October 2024: 27.6 GiB, 3497 tokens/s on 8 A100s.
    tree = pc.Strategy.parse("dp=8,zero=3,mb=2,recompute=full").lora(rank=16, on=ALL)
    forecast = pc.predict(
        pc.Model.preset("llama3-70b", seq=2048), MACHINE, tree, profile="torchtitan"
    )
    assert forecast.fits
    [memory] = forecast.memory
    assert memory.allocated / 2**30 == pytest.approx(27.6, rel=0.1)
    assert forecast.tokens_per_s == pytest.approx(3497, rel=0.2)


def test_qlora_of_65b_takes_less_than_48_gb() -> None:
    # Dettmers et al. 2023: from above 780 GB to below 48 GB, rank 64, sequences of 512.
    tree = pc.Strategy.parse("dp=1,mb=1,recompute=full").lora(rank=64, on=ALL, base="nf4")
    machine = pc.Machine.preset("dgx-a100-80g", hosts=1, gpus_per_host=1)
    forecast = pc.predict(
        pc.Model.preset("llama-65b", seq=512), machine, tree, profile="eager", master="off"
    )
    [memory] = forecast.memory
    assert 40e9 < memory.allocated < 48e9
