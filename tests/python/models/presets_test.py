"""Shipped models against the sizes their authors publish."""

import pytest
from plancast import Machine, Model, predict
from plancast.errors import InputError
from plancast.models import presets

# The zoo has tests of its own.
TRANSFORMERS = presets.transformers()

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
    "llama3.1-8b": 8_030_261_248,
    "llama3.1-70b": 70_553_706_496,
    "llama3.2-1b": 1_235_814_400,
    "llama3.2-3b": 3_212_749_824,
    "llama3.3-70b": 70_553_706_496,
    "mistral-7b": 7_241_732_096,
    "qwen2-7b": 7_615_616_512,
    "qwen2-72b": 72_706_203_648,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "qwen3-32b": 32_762_123_264,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "mixtral-8x7b": 46_702_792_704,
    "mixtral-8x22b": 140_630_071_296,
    "qwen2-57b-a14b": 57_408_658_944,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "deepseek-v2": 235_741_434_880,
    "deepseek-v2-lite": 15_706_484_224,
    "deepseek-v3": 671_026_419_200,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    "kimi-k2": 1_026_408_232_448,
    "glm-4.5": 352_797_829_024,
    "glm-4.5-air": 106_852_251_264,
    "gemma-2b": 2_506_172_416,
    "gemma-7b": 8_537_680_896,
    "gemma2-2b": 2_614_341_888,
    "gemma2-9b": 9_241_705_984,
    "gemma2-27b": 27_227_128_320,
    "gemma3-1b": 999_885_952,
    "gemma3-4b": 3_880_263_168,
    "gemma3-12b": 11_766_034_176,
    "gemma3-27b": 27_009_346_304,
    "phi3-mini": 3_821_079_552,
    "phi3-medium": 13_960_238_080,
    "bert-base": 109_514_298,
    "bert-large": 335_174_458,
}

# Billions that a token meets, as printed: Jiang et al. 2024 (Mixtral), Yang et al.
# 2024 and 2025 (Qwen), DeepSeek-AI 2024, Kimi Team 2025, Zeng et al. 2025 (GLM);
# gpt-oss (arXiv:2508.10925, table 1) leaves the embedding out.
ACTIVE = {
    "mixtral-8x7b": (12.9, 0.05),
    "mixtral-8x22b": (39.1, 0.1),
    "qwen2-57b-a14b": (14.2, 0.1),
    "qwen3-30b-a3b": (3.3, 0.1),
    "qwen3-235b-a22b": (22, 0.5),
    "deepseek-v2": (21, 0.5),
    "deepseek-v2-lite": (2.4, 0.3),
    "deepseek-v3": (37, 0.6),
    "kimi-k2": (32.6, 0.3),
    "glm-4.5": (32, 2),
    "glm-4.5-air": (12, 1.5),
    "gpt-oss-20b": (3.61 + 201088 * 2880 / 1e9, 0.01),
    "gpt-oss-120b": (5.13 + 201088 * 2880 / 1e9, 0.01),
}


MEGATRON = [
    name for name in TRANSFORMERS if name.startswith("gpt-") and name[4:7] not in ("neo", "oss")
]


@pytest.mark.parametrize("name", EXACT)
def test_counts_equal_the_released_models(name):
    assert Model.preset(name).parameters == EXACT[name]


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_active_parameters_are_those_that_a_token_meets(name):
    model = Model.preset(name)
    if name not in ACTIVE:
        assert model.active_parameters == model.parameters
        return
    billions, tolerance = ACTIVE[name]
    assert model.active_parameters / 1e9 == pytest.approx(billions, abs=tolerance)


def test_a_name_may_be_cut_to_its_first_layers():
    cut = presets.config("llama3-70b-l12")
    assert cut == {**presets.config("llama3-70b"), "name": "llama3-70b-l12", "layers": 12}
    assert presets.config("deepseek-v3-l2")["dense_layers"] == 2
    with pytest.raises(InputError, match="has 33 layers, and `llama3-8b` has 32"):
        presets.config("llama3-8b-l33")
    with pytest.raises(InputError, match="no model preset `llama3-8b-l0`"):
        presets.config("llama3-8b-l0")


@pytest.mark.parametrize("name", MEGATRON)
def test_megatron_sizes_follow_the_formula_of_the_paper(name):
    model = presets.config(name)
    layers, h = model["layers"], model["hidden"]
    rest = model["vocab"] + model["seq"]
    formula = 12 * layers * h * h * (1 + 13 / (12 * h) + rest / (12 * layers * h))
    assert Model.preset(name).parameters == pytest.approx(formula, rel=1e-4)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_names_tell_the_size(name):
    text = name.rsplit("-", 1)[-1]
    scale = {"m": 1e6, "b": 1e9, "t": 1e12}.get(text[-1])
    if scale is None or not text[:-1].replace(".", "").isdigit():
        pytest.skip("the name has no size")
    if name in ("gemma-2b", "gemma-7b", "gemma2-2b", "mpt-1b", "mpt-3b", "llama3.2-1b"):
        pytest.skip("the name is rounded down")
    assert Model.preset(name).parameters == pytest.approx(float(text[:-1]) * scale, rel=0.09)


def test_gpt3_has_its_size():
    assert Model.preset("gpt3-175b").parameters == 174_604_259_328


def test_a_preset_is_a_copy():
    presets.config("llama3-8b")["layers"] = 1
    assert presets.config("llama3-8b")["layers"] == 32


def test_an_unknown_name_gets_the_nearest():
    answer = "no model preset `llama3_70`. Did you mean `llama3-70b`? Like it are"
    with pytest.raises(InputError, match=answer.replace("?", r"\?")):
        presets.config("llama3_70")


def test_what_a_models_own_training_used_is_told_for_plans_that_it_concerns():
    (dual_pipe,) = presets.trained_otherwise("deepseek-v3", "dp=4,tp=2,pp=2,ep=8")
    assert "`deepseek-v3` was trained with DualPipe" in dual_pipe
    assert "arXiv:2412.19437, section 3.2.1" in dual_pipe
    assert "with `schedule=dualpipe,overlap=ep`" in dual_pipe
    assert presets.trained_otherwise("DeepSeek_V3-l12", "pp=2,ep=8,sp") == [dual_pipe]
    assert presets.trained_otherwise("deepseek-v3", "pp=1,ep=8,sp") == []
    assert presets.trained_otherwise("deepseek-v3", "tp=8,pp=2") == []
    assert presets.trained_otherwise("llama3-8b", "pp=2,ep=2") == []
    assert "trained_with" not in presets.config("deepseek-v3")


def test_a_plan_that_says_what_training_used_is_told_nothing():
    plan = "pp=2,ep=8,schedule=dualpipev"
    assert len(presets.trained_otherwise("deepseek-v3", plan)) == 1
    assert presets.trained_otherwise("deepseek-v3", plan + ",overlap=grad+ep") == []
    assert presets.trained_otherwise("kimi-k2", "pp=2,vpp=2,ep=8,overlap=ep") == []
    assert len(presets.trained_otherwise("deepseek-v2", "pp=2,ep=8,schedule=zbv")) == 1


def test_every_word_on_training_has_axes_and_a_source():
    entries = presets._entries_of(presets._TRAINED).values()
    told = [item for entry in entries for item in entry.get("trained_with", ())]
    assert told
    for item in told:
        assert set(item) == {"what", "axes", "words", "source"}
        assert set(item["axes"]) <= {"dp", "tp", "cp", "pp", "ep"}
        assert item["axes"]


def test_forecasts_warn_of_what_a_models_own_training_used():
    model, machine = Model.preset("deepseek-v3-l8"), Machine.preset("deepseek-h800", hosts=2)
    options = {"batch": 32, "dtype": "fp8-block"}
    warned = predict(model, machine, "tp=1,pp=2,ep=8,mb=1", **options)
    assert any("DualPipe" in warning for warning in warned.warnings)
    assert any("DualPipe" in warning for warning in warned.to_dict()["provenance"]["warnings"])
    plain = predict(model, machine, "tp=8,pp=2,ep=1,mb=1", **options)
    assert not any("trained with" in warning for warning in plain.warnings)
