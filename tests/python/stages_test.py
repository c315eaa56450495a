"""Pipeline stages that begin anywhere: lists of nodes, and cuts by FLOPs."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import plancast as pc
import pytest
from plancast.builder import GraphBuilder
from plancast.zoo.images import ImageModule


def machine(gpus: int) -> pc.Machine:
    hosts = max(1, gpus // 8)
    return pc.Machine.preset("dgx-a100-80g", hosts=hosts, gpus_per_host=gpus // hosts)


def predict(model: pc.Model, plan: str | pc.Strategy, gpus: int, batch: int = 64) -> pc.Forecast:
    return pc.predict(model, machine(gpus), plan, batch=batch, dtype="fp16", profile="eager")


def unet(depth: int = 3) -> pc.Model:
    """One module: down, and up again with the skip connections of each level."""
    builder = GraphBuilder("unet", classes=10)
    net = ImageModule(builder, "net")
    x = net.image(64)
    skips = []
    for level in range(depth):
        x = net.conv_norm_relu(f"down{level}", x, 16 << level, 3)
        skips.append(x)
        x = net.conv_norm_relu(f"step{level}", x, 16 << level, 3)
    for level in reversed(range(depth)):
        x = net.conv_norm_relu(f"up{level}", x, 16 << level, 3)
        x = net.op(f"join{level}", "add", x, skips[level])
    x = net.op("pool", "global_avg_pool", x)
    net.classes(x)
    return pc.Model.from_graph(builder.graph())


@pytest.mark.parametrize(("name", "stages"), [("alexnet", 4), ("resnet50", 4), ("resnet18", 16)])
def test_cnns_run_on_more_stages_than_they_have_modules(name: str, stages: int) -> None:
    model = pc.Model.preset(name)
    whole = predict(model, "mb=8", 1)
    forecast = predict(model, f"pp={stages},mb=8", stages)
    assert forecast.fits
    inside = "stages" in forecast.chosen
    assert inside == (name != "resnet50")  # which has sixteen blocks
    if inside:
        assert "layout" not in forecast.chosen
        assert forecast.chosen["stages"].count(" | ") == stages - 1
    # Each stage is one device; together they hold what one device holds alone.
    parts = sum(stage.parameters for stage in forecast.memory)
    assert parts == sum(stage.parameters for stage in whole.memory)


def test_alexnet_is_cut_where_proteus_cuts_it() -> None:
    model = pc.Model.preset("alexnet")
    said = pc.Strategy.parse("dp=2,pp=2,mb=8").stages(["features", "head"])
    assert (
        predict(model, said, 4).iteration_time == predict(model, "dp=2,pp=2,mb=8", 4).iteration_time
    )


def test_stages_between_layers_are_the_layout_that_says_the_same() -> None:
    model = pc.Model.preset("gpt3-1.3b")
    layout = predict(model, "pp=4,mb=1,layout=5+7+7+5", 4, batch=8)
    tree = pc.Strategy.parse("pp=4,mb=1").stages(
        [["embedding", "layers[0:5]"], "layers[5:12]", "layers[12:19]", ["layers[19:24]", "head"]]
    )
    stages = predict(model, tree, 4, batch=8)
    assert stages.iteration_time == layout.iteration_time
    assert tuple(stages.memory) == tuple(layout.memory)


def test_layers_may_be_cut_inside() -> None:
    model = pc.Model.preset("gpt3-1.3b")
    stages = [
        ["embedding", "layers[0:11]", "layers.11.attn"],
        "layers.11.mlp",
        ["layers[12:24]", "head"],
    ]
    cut = predict(model, pc.Strategy.parse("pp=3,mb=1").stages(stages), 3, batch=8)
    assert cut.chosen["stages"] == (
        "embedding.tokens..layers.11.attn.residual | layers.11.mlp.norm..layers.11.mlp.residual | "
        "layers.12.attn.norm..head.loss"
    )
    # The embedding is tied to the logits of the last stage: both hold it.
    whole = predict(model, "mb=1", 1, batch=8)
    held = sum(stage.parameters for stage in cut.memory)
    assert held - sum(stage.parameters for stage in whole.memory) == 50257 * 2048 * 2


def test_a_unet_hands_its_skip_connections_through_the_stages() -> None:
    model = unet()
    tree = pc.Strategy.parse("pp=3,mb=4").stages(
        [
            ["net.down0", "net.step0", "net.down1", "net.step1"],
            ["net.down2", "net.step2", "net.up2", "net.join2"],
            ["net.up1", "net.join1", "net.up0", "net.join0", "net.pool", "net.fc"],
        ]
    )
    forecast = predict(model, tree, 3)
    assert forecast.chosen["stages"].count("|") == 2
    assert forecast.breakdown()["exposed_pp"] > 0


def test_errors_name_the_stage_and_the_node(tmp_path: Path) -> None:
    model = pc.Model.preset("alexnet")
    wrong = {
        "no stage holds `features.conv1`": [["features.relu1"], "head"],
        "has already": ["features", ["features.conv5", "head"]],
        "with which the model begins": ["head", "features"],
        "nothing in the model is at `feature`": ["feature", "head"],
    }
    for message, stages in wrong.items():
        with pytest.raises(pc.InputError, match=message):
            predict(model, pc.Strategy.parse("pp=2,mb=8").stages(stages), 2)
    with pytest.raises(pc.InputError, match=r"lists 2 stages, and pp\*vpp = 4\*1 is 4"):
        predict(model, pc.Strategy.parse("pp=4,mb=8").stages(["features", "head"]), 4)
    with pytest.raises(pc.InputError, match="both say what stages hold"):
        pc.Strategy.parse("pp=2,layout=1+1").stages(["features", "head"])
    for key in ("devices", "mesh"):
        with pytest.raises(pc.InputError, match=rf"`stages\[1\].{key}`"):
            pc.Strategy.from_dict(
                {"plan": "pp=2", "stages": [{"nodes": "features"}, {"nodes": "head", key: "0-1"}]}
            )
    with pytest.raises(pc.InputError, match="more than the 8 products"):
        predict(model, "pp=8,vpp=2,mb=8", 8)


def test_stages_go_through_dicts_yaml_and_pickle() -> None:
    tree = pc.Strategy.parse("pp=2,mb=1").stages(
        [["embedding", "layers[0:-1]"], ["layers[-1]", "head"]]
    )
    assert pc.Strategy.from_yaml(tree.to_yaml()) == tree
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert json.loads(json.dumps(tree.to_dict()))["stages"][1] == {"nodes": ["layers[-1]", "head"]}
    assert tree != pc.Strategy.parse("pp=2,mb=1")
    assert "virtual stage: 0" in tree.explain("layers.3.mlp.fc1", layers=24)


def test_launch_files_refuse_stages_that_are_cut_inside_of_modules() -> None:
    tree = pc.Strategy.parse("pp=2,mb=1").stages(["features", "head"])
    with pytest.raises(pc.InputError, match="deals whole layers to stages"):
        tree.launch_config("megatron-core")
    forecast = predict(pc.Model.preset("alexnet"), "pp=4,mb=8", 4)
    with pytest.raises(pc.InputError, match="cut inside of modules"):
        forecast.launch_config("torchtitan")


def test_rank_tries_stages_inside_of_modules_where_the_space_names_them() -> None:
    model = pc.Model.preset("alexnet")
    ranking = pc.rank(
        model,
        machine(4),
        space="pp=2|4,tp=1,mb=8,recompute=none",
        batch=64,
        dtype="fp16",
        profile="eager",
    )
    plans = {plan.strategy: plan for plan in ranking}
    four = next(plan for name, plan in plans.items() if "pp=4" in name)
    assert four.iteration_time == predict(model, "dp=1,pp=4,mb=8", 4).iteration_time


def test_whether_a_cut_plan_fits_is_what_predict_says() -> None:
    model = pc.Model.preset("alexnet")
    (fit,) = pc.fits(model, machine(4), "pp=4,mb=8", batch=64, dtype="fp16", profile="eager")
    forecast = predict(model, "pp=4,mb=8", 4)
    assert fit.fits == forecast.fits
    assert fit.device == max(stage.device for stage in forecast.memory)
    listed = pc.Strategy.parse("pp=2,mb=8").stages(["features", "head"])
    (verdict,) = pc.fits(model, machine(2), listed, batch=64, dtype="fp16", profile="eager")
    assert verdict.device == max(stage.device for stage in predict(model, listed, 2).memory)
