"""Names of the zoo among the presets, choices of sizes, and errors."""

from __future__ import annotations

import subprocess
import sys

import plancast as pc
import pytest
from plancast.zoo import catalogue


def test_all_models_are_presets():
    assert set(catalogue.names()) < set(pc.Model.presets())


def test_a_transformer_does_not_load_the_zoo():
    code = (
        "import sys, plancast; plancast.Model.preset('llama3-8b');"
        "print([name for name in sys.modules if name.startswith('plancast.zoo')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_wrong_name_is_answered_with_the_nearest():
    with pytest.raises(pc.InputError, match="Did you mean `resnet50`"):
        pc.Model.preset("resnet-50")


@pytest.mark.parametrize(
    ("name", "chosen", "answer"),
    [
        ("resnet50", {"seq": 128}, r"`resnet50` has no `seq` to choose. There are .*`image`"),
        ("gpt2", {"image": 128}, "`gpt2` has no `image` to choose"),
        ("resnet50", {"images": 128}, "Did you mean `image`"),
        ("inception-v3", {"image": 32}, "does not fit an image"),
        ("vgg19", {"image": 256}, "multiple of 7"),
        ("vit-b-16", {"image": 225}, "not made of patches of 16"),
        ("llava-1.5-7b", {"seq": 576}, "no place for text behind the 576 patches"),
    ],
)
def test_what_cannot_be_chosen_is_said(name, chosen, answer):
    with pytest.raises(pc.InputError, match=answer):
        pc.Model.preset(name, **chosen)


def test_blocks_are_dealt_to_pipeline_stages():
    model = pc.Model.preset("resnet50")
    assert model.layers == 3 + 4 + 6 + 3
    forecast = pc.predict(
        model, pc.Machine.preset("dgx-a100-80g:1x4"), pc.Strategy.parse("pp=4,mb=8"), batch=64
    )
    assert forecast.chosen["layout"] == "4x4"


def test_dims_are_named_by_their_size():
    dims = pc.Model.preset("resnet50").dims
    assert {"batch", "channels64", "height56", "width56", "window3", "classes"} < set(dims)


def test_reports_count_samples_where_there_are_no_tokens():
    forecast = pc.predict(
        pc.Model.preset("alexnet"), pc.Machine.preset("dgx-a100-80g:1"), pc.Strategy.parse("mb=8")
    )
    assert (forecast.unit, forecast.tokens_per_s) == ("samples", 0)
    assert forecast.units_per_s_per_gpu == pytest.approx(forecast.samples_per_s / 8)


def test_a_file_says_its_sizes_itself(tmp_path):
    with pytest.raises(pc.InputError, match="says its sizes itself"):
        pc.Model.open(str(tmp_path / "model.yaml"), image=224)


def test_the_command_line_chooses_the_image(capsys):
    from plancast.cli.main import main

    arguments = ["predict", "-m", "alexnet", "--image", "448", "-c", "dgx-a100-80g:1", "-s", "mb=8"]
    assert main(arguments) == 2
    assert "multiple of 6" in capsys.readouterr().err
    arguments[4] = "224"
    assert main(arguments) == 0
    assert "samples/s/GPU" in capsys.readouterr().out
