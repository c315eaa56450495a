"""Every directive of the strategy tree changes the forecast, the memory or the program."""

from __future__ import annotations

from typing import Any

import plancast as pc
import pytest

DENSE = pc.Model.preset("llama2-7b", seq=1024)
EXPERTS = pc.Model.preset("mixtral-8x7b", seq=1024)
PLAN = "dp=4,tp=2,mb=1"

# What is said, in a tree whose plan is `PLAN` or the one given.
DIRECTIVES: dict[str, tuple[str, dict[str, Any]]] = {
    "on": (PLAN, {"nodes": {"layers.*.mlp": {"on": {"tp": 1}}}}),
    "on a part of the ranks": (PLAN, {"nodes": {"layers[0:4]": {"on": {"dp": "1/2"}}}}),
    "split of all layers": (PLAN, {"nodes": {"layers": {"split": {"tp": []}}}}),
    "split of one layer": (PLAN, {"nodes": {"layers.3": {"split": {"tp": []}}}}),
    "split of the last layers": (PLAN, {"nodes": {"layers[-4:]": {"split": {"tp": ["seq"]}}}}),
    "split of every other layer": (PLAN, {"nodes": {"layers[::2].mlp": {"split": {"tp": []}}}}),
    "levels of a split": (
        "dp=2,tp=4,mb=1",
        {"nodes": {"layers": {"split": {"tp": ["heads|ffn/2", "seq/2"]}}}},
    ),
    "order of levels": (
        "dp=2,tp=4,mb=1",
        {"nodes": {"": {"split": {"tp": ["seq/2", "heads|ffn|vocab"]}}}},
    ),
    "a level that cuts nothing": (
        "dp=2,tp=4,mb=1",
        {"nodes": {"layers[0:9]": {"split": {"tp": ["heads|ffn/2", "/2"]}}}},
    ),
    "levels of data parallelism": (
        PLAN,
        {"nodes": {"layers.*.mlp": {"split": {"dp": ["batch/2", "seq/2"]}}}},
    ),
    "split of an op": (PLAN, {"nodes": {"head.logits": {"split": {"tp": []}}}}),
    "recompute": (PLAN, {"nodes": {"layers": {"recompute": "full"}}}),
    "recompute of some layers": (PLAN, {"nodes": {"layers[0:8]": {"recompute": "full"}}}),
    "recompute of sets": (PLAN, {"nodes": {"layers": {"recompute": "selective:mlp"}}}),
    "home": (PLAN, {"nodes": {"layers": {"home": "shard(dp)"}}}),
    "home of weights": (PLAN, {"nodes": {"layers": {"home": {"weights": "shard(dp)"}}}}),
    "home of gradients": (PLAN, {"nodes": {"layers": {"home": {"gradients": "shard(dp)"}}}}),
    "home of state": (PLAN, {"nodes": {"layers[0:9]": {"home": {"state": "shard(dp)"}}}}),
    "home on the host": (PLAN, {"nodes": {"layers": {"home": {"state": "host"}}}}),
    "home of activations": (PLAN, {"nodes": {"layers": {"home": {"activations": "host"}}}}),
    "home of activations of the head": (
        PLAN,
        {"nodes": {"head": {"home": {"activations": "host"}}}},
    ),
    "home of activations in parts": (
        PLAN,
        {"nodes": {"layers": {"home": {"activations": "shard(tp)"}}}},
    ),
    "home of activations on a stage": (
        "tp=2,pp=4,mb=1",
        {"nodes": {"layers[0:8]": {"home": {"activations": "on(pp=3)"}}}},
    ),
    "home over tp": (PLAN, {"nodes": {"layers": {"home": {"weights": "shard(tp)"}}}}),
    "home over both": (PLAN, {"nodes": {"layers": {"home": {"state": "shard(dp,tp)"}}}}),
    "home of shards on the host": (
        PLAN,
        {"nodes": {"layers": {"home": {"weights": "shard(dp)+host"}}}},
    ),
    "home of state on a rank": (PLAN, {"nodes": {"layers": {"home": "on(dp=3)"}}}),
    "home of gradients on a rank": (
        PLAN,
        {"nodes": {"layers": {"home": {"gradients": "on(dp=1)"}}}},
    ),
    "home of weights on a rank": (PLAN, {"nodes": {"layers": {"home": {"weights": "on(dp=0)"}}}}),
    "home of gradients over tp": (
        PLAN,
        {"nodes": {"layers": {"home": {"gradients": "shard(tp)"}}}},
    ),
    "home of weights on the host": (PLAN, {"nodes": {"layers": {"home": {"weights": "host"}}}}),
    "home of gradients on the host": (
        PLAN,
        {"nodes": {"layers": {"home": {"gradients": "host"}}}},
    ),
    "bucket": (PLAN + ",overlap=grad", {"nodes": {"layers": {"bucket": "900MB"}}}),
    "unit": (PLAN + ",zero=3", {"nodes": {"layers": {"unit": 2}}}),
    "unit of some layers": (PLAN + ",zero=2", {"nodes": {"layers[0:8]": {"unit": 8}}}),
    "pieces": (PLAN, {"nodes": {"layers.*.mlp": {"micro_batches": 2}}}),
    "pieces of the head": (
        PLAN,
        {"nodes": {"head": {"micro_batches": 8, "max_ongoing": 1}}},
    ),
    "train": (PLAN, {"nodes": {"layers[0:16]": {"train": False}}}),
    "train of an op": (PLAN, {"nodes": {"layers.*.mlp": {"train": False}}}),
    "lora": (PLAN, {"nodes": {"layers": {"lora": {"rank": 8, "on": ["qkv"]}}}}),
    "stages": (
        "dp=4,pp=2,mb=1",
        {"stages": [{"nodes": ["embedding", "layers[0:9]"]}, {"nodes": ["layers[9:32]", "head"]}]},
    ),
    "stages inside of a layer": (
        "dp=4,pp=2,mb=1",
        {
            "stages": [
                {"nodes": ["embedding", "layers[0:16]", "layers.16.attn"]},
                {"nodes": ["layers.16.mlp", "layers[17:32]", "head"]},
            ]
        },
    ),
}
HALVES = [["embedding", "layers[0:16]"], ["layers[16:32]", "head"]]
MESHES = {
    "mesh": [{"mesh": {"dp": 4, "tp": 1}}, {"mesh": {"dp": 2, "tp": 2}}],
    "mb": [{"mesh": {"dp": 4, "tp": 1}, "mb": 2}, {"mesh": {"dp": 2, "tp": 2}, "mb": 4}],
}


IDLE = [{"mesh": {"dp": 4, "tp": 1}}, {"mesh": {"dp": 2, "tp": 1}}]


def figures(tree: dict[str, Any], model: pc.Model = DENSE, batch: int = 32) -> tuple[Any, ...]:
    machine = pc.Machine.preset("dgx-h100", hosts=1)
    forecast = pc.predict(model, machine, pc.Strategy.from_dict(tree), batch=batch)
    return forecast.iteration_time, tuple(forecast.memory)


@pytest.mark.parametrize("name", DIRECTIVES)
def test_a_directive_changes_something(name: str) -> None:
    plan, said = DIRECTIVES[name]
    assert figures({"plan": plan, **said}) != figures({"plan": plan})


LORA = {"lora": {"rank": 8, "on": ["qkv"]}}
BESIDE_LORA: dict[str, dict[str, Any]] = {
    "frozen weights sharded": {"head": {"home": {"weights": "shard(dp)"}}},
    "frozen weights sharded over tp": {"layers.*.mlp": {"home": {"weights": "shard(tp)"}}},
    "frozen weights on the host": {"layers[0:8]": {"home": {"weights": "host"}}},
    "frozen weights on a rank": {"head": {"home": {"weights": "on(dp=2)"}}},
    "state of adapters on a rank": {"layers.*.attn.qkv.lora_b": {"home": "on(dp=1)"}},
    "adapters sharded": {"layers.*.attn.qkv.lora_b": {"home": {"weights": "shard(dp)"}}},
    "state of adapters on the host": {"layers.*.attn.qkv": {"home": "host"}},
    "activations": {"layers": {"home": {"activations": "host"}}},
    "bucket": {"layers": {"bucket": "1MB"}},
}


@pytest.mark.parametrize("name", BESIDE_LORA)
def test_a_home_beside_adapters_changes_something(name: str) -> None:
    plan = PLAN + ",overlap=grad"
    without = figures({"plan": plan, "nodes": {"": LORA}})
    assert figures({"plan": plan, "nodes": {"": LORA, **BESIDE_LORA[name]}}) != without


@pytest.mark.parametrize("name", ["mesh", "mb"])
def test_the_place_of_a_stage_changes_something(name: str) -> None:
    regular = figures({"plan": "dp=4,pp=2,mb=1", "stages": [{"nodes": n} for n in HALVES]})
    places = [{"nodes": n, **place} for n, place in zip(HALVES, MESHES[name], strict=True)]
    assert figures({"plan": "dp=4,mb=1", "stages": places}) != regular


def test_loads_change_something() -> None:
    tree = {"plan": "dp=8,ep=8,mb=1"}
    even = figures(tree, EXPERTS)
    assert figures({**tree, "load": {"experts": [4, 1, 1, 1, 1, 1, 1, 1]}}, EXPERTS) != even


def test_idle_devices_are_among_those_of_the_forecast() -> None:
    """Behind the stages, or in front of them."""

    def planned(first: str, idle: str) -> tuple[Any, ...]:
        stages = [{"nodes": held, **place} for held, place in zip(HALVES, IDLE, strict=True)]
        stages[0]["devices"] = first
        return figures({"plan": "mb=1", "stages": stages, "idle": idle})

    behind, before = planned("gpus 0-3", "gpus 6-7"), planned("gpus 2-5", "gpus 0-1")
    assert [group.ranks for group in behind[1]] == [4, 2, 2]
    assert behind == before
