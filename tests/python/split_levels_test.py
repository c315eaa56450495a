"""Axes that are cut in a hierarchy of levels: `heads/4` and, inside of it, `seq/2`."""

from __future__ import annotations

from typing import Any

import plancast as pc
import pytest

DENSE = pc.Model.preset("llama3-8b", seq=4096)
EXPERTS = pc.Model.preset("mixtral-8x7b", seq=1024)
LEVELS = ["heads|ffn|vocab/4", "seq/2"]


def predict(
    plan: str, nodes: dict[str, Any], *, model: pc.Model = DENSE, hosts: int = 1, batch: int = 16
) -> pc.Forecast:
    tree = pc.Strategy.from_dict({"plan": plan, "nodes": nodes})
    return pc.predict(model, pc.Machine.preset("dgx-h100", hosts=hosts), tree, batch=batch)


def figures(forecast: pc.Forecast) -> tuple[Any, ...]:
    return forecast.iteration_time, tuple(forecast.memory)


def over_tp(levels: list[str]) -> dict[str, Any]:
    return {"split": {"tp": levels}}


@pytest.mark.parametrize("plan", ["tp=8,mb=1", "tp=8,mb=2,recompute=full", "dp=2,tp=4,zero=1"])
def test_a_level_over_the_whole_axis_is_the_plan_itself(plan: str) -> None:
    ranks = 8 if "tp=8" in plan else 4
    level = f"heads|ffn|shared_ffn|expert_ffn|vocab/{ranks}"
    assert figures(predict(plan, {"": over_tp([level])})) == figures(predict(plan, {}))


def test_yaml_and_python_say_the_same() -> None:
    tree = pc.Strategy.parse("tp=8,mb=1")
    tree[""].split(tp=LEVELS)
    tree.at("layers[16:]").split(tp=("heads|ffn", "seq/4"))
    again = pc.Strategy.from_yaml(tree.to_yaml())
    assert again == tree
    assert again.to_dict()["nodes"]["layers[16:]"] == over_tp(["heads|ffn", "seq/4"])
    assert "split tp /4: heads | ffn | vocab" in tree.explain("layers.3.mlp.fc1", layers=32)
    assert "split tp /2: heads | ffn " in tree.explain("layers.20.mlp.fc1", layers=32)
    assert "from `layers[16:]` (tp=8)" in tree.explain("layers.20.mlp.fc1", layers=32)


def test_layers_that_are_cut_otherwise_have_a_relayout_between() -> None:
    nodes = {"": over_tp(LEVELS), "layers[16:]": over_tp(["heads|ffn/2", "seq/4"])}
    tree = pc.Strategy.from_dict({"plan": "tp=8,mb=1", "nodes": nodes})
    machine = pc.Machine.preset("dgx-h100", hosts=1)
    forecast = pc.predict(DENSE, machine, tree, batch=2, timeline=True)
    names = {slice.name for slice in forecast.timeline()}
    assert any("all_to_all" in name for name in names)
    graph = pc.execution_graph(DENSE, machine, tree, batch=2)
    assert "relayout" in str(graph.programs)


@pytest.mark.parametrize(
    ("plan", "levels"),
    [
        ("dp=2,tp=8,zero=3,hsdp=1,recompute=full", LEVELS),
        ("dp=2,tp=8,zero=1,sp", ["heads|ffn|vocab|seq/4", "seq/2"]),
        ("dp=2,tp=8,sp,overlap=tp,recompute=selective", ["heads|ffn|vocab|seq/4", "seq"]),
        ("dp=2,tp=4,pp=2,mb=1", ["heads|ffn|vocab/2", "/2"]),
        ("dp=4,tp=4,zero=2,offload=optimizer", ["heads", "ffn|vocab|seq/2"]),
    ],
)
def test_levels_go_with_the_rest_of_a_plan(plan: str, levels: list[str]) -> None:
    forecast = predict(plan, {"": over_tp(levels)}, hosts=2, batch=32)
    assert forecast.iteration_time > 0
    assert figures(forecast) != figures(predict(plan, {}, hosts=2, batch=32))


@pytest.mark.parametrize("plan", ["dp=2,tp=4,sp,ep=2,mb=1", "dp=2,tp=4,sp,ep=8,etp=1,mb=1"])
def test_levels_go_with_experts(plan: str) -> None:
    nodes = {"layers.*.attn": over_tp(["heads|seq/2", "seq/2"])}
    cut, whole = predict(plan, nodes, model=EXPERTS), predict(plan, {}, model=EXPERTS)
    assert cut.iteration_time != whole.iteration_time


def test_a_stage_has_levels_of_its_own_mesh() -> None:
    stages = [
        {"nodes": ["embedding", "layers[0:20]"], "devices": "host 0", "mesh": {"tp": 8}},
        {"nodes": ["layers[20:32]", "head"], "devices": "host 1", "mesh": {"dp": 4, "tp": 2}},
    ]

    def run(node: str, levels: list[str]) -> pc.Forecast:
        tree = {"plan": "mb=4", "stages": stages, "nodes": {node: over_tp(levels)}}
        machine = pc.Machine.preset("dgx-h100", hosts=2)
        return pc.predict(DENSE, machine, pc.Strategy.from_dict(tree), batch=16)

    run("layers[0:20]", ["heads|ffn/4", "seq/2"])
    run("layers", ["heads|ffn", "seq/2"])
    with pytest.raises(pc.InputError, match=r"stage 1: `layers\[10:30\]`: .* it has 2 ranks"):
        run("layers[10:30]", ["heads|ffn/4", "seq/2"])


@pytest.mark.parametrize(
    ("node", "levels", "message"),
    [
        ("layers", ["heads/4", "seq/4"], "`layers`: `heads/4, seq/4` cuts axis `tp` into 4 x 4"),
        ("layers", ["headz/4", "seq"], "no dim `headz` to split"),
        ("layers", ["headz/4", "seq"], "Did you mean `heads`?"),
        ("", ["headz/4", "seq"], "the root: no dim `headz` to split"),
        (
            "layers.*.attn",
            ["vocab/4", "seq"],
            "`layers.*.attn` splits `vocab/4` over `tp`, which no op below can take",
        ),
        ("layers.*.attn", ["vocab"], "`layers.*.attn` splits `vocab` over `tp`, which no op below"),
    ],
)
def test_mistakes_name_the_node(node: str, levels: list[str], message: str) -> None:
    with pytest.raises(pc.InputError) as raised:
        predict("tp=8", {node: over_tp(levels)})
    assert message in str(raised.value)


def test_cuts_without_a_common_refinement_name_both_nodes() -> None:
    nodes = {
        "layers.*.attn": over_tp(["heads/2", "seq/3"]),
        "layers.*.mlp": over_tp(["ffn/3", "seq/2"]),
    }
    model = pc.Model.preset("gpt3-175b", seq=2304)
    with pytest.raises(pc.InputError) as raised:
        predict("dp=4,tp=6,mb=1", nodes, model=model, hosts=3)
    assert "into parts of 2 ranks by `ffn/3, seq/2` of `layers.*.mlp`" in str(raised.value)
    assert "into parts of 3 by `heads/2, seq/3` of `layers.*.attn`" in str(raised.value)


@pytest.mark.parametrize("levels", [["heads/"], ["heads/x"], ["heads/0"], ["a/2", "b", "c"], [""]])
def test_a_level_that_is_none_fails_where_it_is_written(levels: list[str]) -> None:
    with pytest.raises(pc.InputError):
        pc.Strategy.parse("tp=8").at("layers").split(tp=levels)
