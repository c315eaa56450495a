"""Shipped models against the sizes their authors publish."""

import pytest
from plancast import Model
from plancast.errors import InputError
from plancast.models import presets
from plancast.zoo import catalogue

# The zoo has tests of its own.
TRANSFORMERS = [name for name in presets.names() if name not in catalogue.names()]

# Counts of the released checkpoints.
EXACT = {
    "gpt2": 124_439_808,
    "gpt2-xl": 1_557_611_200,
    "opt-6.7b": 6_658_473_984,
    "gpt-neox-20b": 20_554_567_680,
    "bloom-176b": 176_247_271_424,
    "llama-7b": 6_738_415_616,
    "llama-13b": 13_015_864_320,
    "llama-65b": 65_285_660_672,
    "llama2-7b": 6_738_415_616,
    "llama2-70b": 68_976_648_192,
    "llama3-8b": 8_030_261_248,
    "llama3-70b": 70_553_706_496,
    "llama3-405b": 405_853_388_800,
    "mistral-7b": 7_241_732_096,
    "qwen2-7b": 7_615_616_512,
    "qwen2-72b": 72_706_203_648,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "qwen3-32b": 32_762_123_264,
    "bert-large": 335_174_458,
}


@pytest.mark.parametrize("name", EXACT)
def test_counts_equal_the_released_models(name):
    assert Model.preset(name).parameters == EXACT[name]


@pytest.mark.parametrize("name", [n for n in TRANSFORMERS if n.startswith("gpt-")])
def test_megatron_sizes_follow_the_formula_of_the_paper(name):
    if name == "gpt-neox-20b":
        pytest.skip("not a Megatron size")
    model = presets.config(name)
    layers, h = model["layers"], model["hidden"]
    rest = model["vocab"] + model["seq"]
    formula = 12 * layers * h * h * (1 + 13 / (12 * h) + rest / (12 * layers * h))
    assert Model.preset(name).parameters == pytest.approx(formula, rel=1e-4)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_names_tell_the_size(name):
    text = name.rsplit("-", 1)[-1]
    scale = {"b": 1e9, "t": 1e12}.get(text[-1])
    if scale is None or not text[:-1].replace(".", "").isdigit():
        pytest.skip("the name has no size")
    assert Model.preset(name).parameters == pytest.approx(float(text[:-1]) * scale, rel=0.09)


def test_gpt3_has_its_size():
    assert Model.preset("gpt3-175b").parameters == 174_604_259_328


def test_a_preset_is_a_copy():
    presets.config("llama3-8b")["layers"] = 1
    assert presets.config("llama3-8b")["layers"] == 32


def test_an_unknown_name_gets_the_list_and_the_nearest():
    with pytest.raises(InputError, match=r"no model preset `llama3_70`; there are `gpt2`") as error:
        presets.config("llama3_70")
    assert str(error.value).endswith("Did you mean `llama3-70b`?")
