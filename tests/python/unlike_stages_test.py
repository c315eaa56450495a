"""Pipeline stages with meshes and devices of their own."""

from __future__ import annotations

import json
from typing import Any

import plancast as pc
import pytest
from plancast.errors import InputError

MODEL = pc.Model.preset("llama2-7b", seq=2048)


def predict(
    stages: list[dict[str, Any]], hosts: int, plan: str = "mb=1", **more: Any
) -> pc.Forecast:
    machine = pc.Machine.preset("dgx-a100-80g", hosts=hosts)
    strategy = pc.Strategy.parse(plan).stages(stages)
    return pc.predict(MODEL, machine, strategy, batch=64, **more)


def halves(first: dict[str, Any], second: dict[str, Any], cut: int = 16) -> list[dict[str, Any]]:
    return [
        {"nodes": ["embedding", f"layers[0:{cut}]"], **first},
        {"nodes": [f"layers[{cut}:32]", "head"], **second},
    ]


def test_stages_that_are_alike_take_what_the_regular_plan_takes() -> None:
    mesh = {"mesh": {"dp": 8, "tp": 1}}
    own = predict(halves(mesh, mesh), 2, "mb=1,recompute=full", profile="megatron-core")
    machine = pc.Machine.preset("dgx-a100-80g", hosts=2)
    regular = pc.predict(MODEL, machine, "dp=8,pp=2,mb=1,recompute=full", batch=64)
    assert own.iteration_time == pytest.approx(regular.iteration_time, rel=1e-3)
    # Buffers of the norm's communicator are those of another group; all else is the same.
    for a, b in zip(own.memory, regular.memory, strict=True):
        assert a.reserved == b.reserved


def test_unlike_stages_have_their_own_shards() -> None:
    stages = halves(
        {"mesh": {"dp": 4, "tp": 2}}, {"mesh": {"dp": 2, "tp": 8}, "devices": "hosts 1-2"}
    )
    forecast = predict(stages, 3, "mb=1,sp,zero=1")
    assert forecast.fits
    assert forecast.chosen["meshes"] == "dp=4,tp=2,mb=1; dp=2,tp=8,mb=2"
    first, second = forecast.memory[0], forecast.memory[-1]
    assert first.parameters == pytest.approx(4 * second.parameters, rel=0.05)
    assert sum(group.ranks for group in forecast.memory) == 24


def test_a_slow_stage_gets_fewer_layers() -> None:
    """One host of two in tensor parallelism beside two: with a third of the layers it is faster."""
    one, two = {"mesh": {"dp": 1, "tp": 8}}, {"mesh": {"dp": 2, "tp": 8}}
    even = predict(halves(one, two), 3, "mb=2,sp", cuda_graphs=True)
    uneven = predict(halves(one, two, cut=11), 3, "mb=2,sp", cuda_graphs=True)
    assert uneven.iteration_time < even.iteration_time


def test_interleaved_stages_keep_their_meshes() -> None:
    first, second = {"mesh": {"dp": 4, "tp": 2}}, {"mesh": {"dp": 1, "tp": 8}}
    stages = [
        {"nodes": ["embedding", "layers[0:8]"], **first},
        {"nodes": "layers[8:16]", **second},
        {"nodes": "layers[16:24]"},
        {"nodes": ["layers[24:32]", "head"]},
    ]
    forecast = predict(stages, 2, "vpp=2,mb=1")
    assert forecast.chosen["vpp"] == "2"
    assert forecast.chosen["meshes"] == "dp=4,tp=2,mb=1; dp=1,tp=8,mb=4"


def test_trees_with_places_come_back_from_json() -> None:
    stages = halves({"devices": "host 0"}, {"mesh": {"tp": 8}, "mb": 8, "devices": "gpus 8-15"})
    strategy = pc.Strategy.parse("tp=1,mb=1").stages(stages)
    assert pc.Strategy.from_dict(json.loads(json.dumps(strategy.to_dict()))) == strategy
    assert pc.Strategy.from_yaml(strategy.to_yaml()) == strategy


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ({"mesh": {"tp": 8}, "devices": "hosts 0-1"}, r"both have GPU 0"),
        ({"mesh": {"dp": 1, "tp": 8}, "devices": "host 2"}, r"no stage has GPUs 8 to 15"),
        ({"mesh": {"dp": 1, "tp": 8}, "devices": "host 9"}, r"there is no host 9"),
        ({"mesh": {"dp": 3, "tp": 2}}, r"stages\[1\].*8 samples"),
        ({"mesh": {"tpp": 8}}, r"no mesh axis `tpp`.*Did you mean `tp`"),
        ({"mesh": {"dp": 1, "tp": 5}}, r"stages\[1\]"),
        ({"devices": "rack 1"}, r"stages\[1\].devices.*names no devices"),
        ({"devices": "gpus 8,10,12,14"}, r"stages\[1\].devices.*do not follow one another.*range"),
        ({"mesh": {"tp": 0}}, r"stages\[1\].mesh.tp.*above 0"),
        ({"mesh": {"dp": 1, "tp": 8}, "mb": 3}, r"with mb=3"),
        ({"mesch": {"tp": 8}}, r"no key `mesch`.*Did you mean `mesh`"),
    ],
)
def test_what_is_wrong_is_named(second: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        predict(halves({"mesh": {"dp": 8, "tp": 1}}, second), 3)


LLAVA = pc.Model.preset("llava-llama3-8b")


def beside(*, vision: dict[str, Any], language: dict[str, Any], **more: Any) -> pc.Strategy:
    """The vision encoder of LLaVA on one stage, its language model on another."""
    nodes = more.pop("nodes", {})
    tree = {"plan": "mb=2,zero=1,sp", "nodes": nodes, **more}
    tree["stages"] = [
        {"nodes": ["vision", "projector"], **vision},
        {"nodes": ["embedding", "layers", "head"], **language},
    ]
    return pc.Strategy.from_dict(tree)


def test_idle_devices_are_counted_as_idle() -> None:
    vision = {"devices": "gpus 0-1", "mesh": {"dp": 2, "tp": 1}}
    language = {"devices": "host 1", "mesh": {"dp": 2, "tp": 4}}
    machine = pc.Machine.preset("dgx-h100", hosts=2)
    strategy = beside(vision=vision, language=language, idle="gpus 2-7")
    assert pc.Strategy.from_yaml(strategy.to_yaml()) == strategy
    forecast = pc.predict(LLAVA, machine, strategy, batch=64)
    assert [(group.device_class, group.ranks) for group in forecast.memory] == [
        ("stage 0", 2), ("stage 1", 8), ("idle", 6),
    ]  # fmt: skip
    assert forecast.memory[2].allocated == 0
    assert any("6 of 16 devices are idle" in note for note in forecast.notes)
    # Work is shared out over all sixteen.
    per_gpu = forecast.model_flops_per_s_per_gpu
    assert forecast.mfu == pytest.approx(per_gpu / 989.4e12, rel=1e-2)
    with pytest.raises(InputError, match=r"no stage has GPUs 2 to 7.*say `idle: gpus 2-7`"):
        pc.predict(LLAVA, machine, beside(vision=vision, language=language), batch=64)
    with pytest.raises(InputError, match=r"`idle` and stages\[0\] both have GPU 1"):
        wrong = beside(vision=vision, language=language, idle="gpus 1-7")
        pc.predict(LLAVA, machine, wrong, batch=64)
    with pytest.raises(InputError, match="`idle` needs `stages` with `mesh` or `devices`"):
        pc.Strategy.from_dict({"plan": "dp=8", "idle": "gpus 2-7"})


def test_a_stage_binds_only_what_it_holds() -> None:
    """Twelve heads of an encoder do not divide by 8, on whose ranks they are not."""
    model = pc.Model.builder("vision-12", seq=64, kv_seq=64, hidden=768, ffn=3072, few=12, size=64)
    small = model.module("small", repeat=2)
    x = small.input("x", "batch", "seq", "hidden")
    model.dim("one", 1)
    weights = [
        small.parameter("wq", "few", "one", "size", "hidden"),
        *(small.parameter(f"w{which}", "few", "size", "hidden") for which in "kv"),
    ]
    q, k, v = small.op("qkv", "qkv_linear", x, *weights)
    y = small.op("core", "attention", q, k, v, dims={"t": "kv_seq"})
    weight = small.parameter("wo", "hidden", "few", "one", "size")
    small.output(small.op("proj", "out_linear", y, weight))
    large = model.module("large", repeat=2)
    x = large.input("x", "batch", "seq", "hidden")
    y = large.op("fc1", "linear", x, large.parameter("w1", "ffn", "hidden"))
    large.output(large.op("fc2", "linear", y, large.parameter("w2", "hidden", "ffn")))
    made = model.build()

    def forecast(first: int, second: int) -> pc.Forecast:
        tree = {
            "plan": "mb=8",
            "nodes": {"small": {"split": {"tp": ["few"]}}, "large": {"split": {"tp": ["ffn"]}}},
            "stages": [
                {
                    "nodes": ["data", "small"],
                    "devices": f"gpus 0-{first - 1}",
                    "mesh": {"tp": first},
                },
                {"nodes": "large", "devices": f"gpus 8-{7 + second}", "mesh": {"tp": second}},
            ],
            "idle": [f"gpus {first}-7"] if first < 8 else [f"gpus {8 + second}-15"],
        }
        machine = pc.Machine.preset("dgx-h100", hosts=2)
        return pc.predict(made, machine, pc.Strategy.from_dict(tree), batch=64)

    assert forecast(4, 8).fits
    with pytest.raises(InputError, match=r"stages\[0\].*`few` \(12\).*not divisible by 8"):
        forecast(8, 4)


def test_tied_embeddings_are_swapped_between_unlike_stages() -> None:
    """Without the tie each end has its own table, and nothing is swapped."""
    machine = pc.Machine.preset("dgx-a100-80g", hosts=2)
    stages = [
        {"nodes": ["embedding", "layers[0:12]"], "mesh": {"dp": 8, "tp": 1}},
        {"nodes": ["layers[12:24]", "head"], "mesh": {"dp": 2, "tp": 4}},
    ]
    strategy = pc.Strategy.parse("mb=1").stages(stages)
    tied = pc.predict(pc.Model.preset("gpt2-medium"), machine, strategy, batch=64)
    assert tied.fits
    assert tied.breakdown()["exposed_dp"] > 0
