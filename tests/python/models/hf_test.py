"""Hugging Face configurations: exact counts, and errors that help."""

import json

import pytest
from plancast import Model
from plancast.errors import InputError
from plancast.models import hf
from released import (
    BERT_BASE,
    DEEPSEEK_V3,
    GEMMA3_4B,
    GPT2,
    GPT_NEOX_20B,
    GPT_OSS_20B,
    LLAMA3_8B,
    LLAMA3_70B,
    MISTRAL_7B,
    MIXTRAL_8X7B,
    OPT_6_7B,
    QWEN2_7B,
    QWEN3_8B,
    QWEN3_30B_A3B,
)


def parameters(fields):
    return Model.from_config(**fields).parameters


@pytest.mark.parametrize(
    ("config", "count"),
    [
        (LLAMA3_8B, 8_030_261_248),
        (LLAMA3_70B, 70_553_706_496),
        (MISTRAL_7B, 7_241_732_096),
        (QWEN2_7B, 7_615_616_512),
        (QWEN3_8B, 8_190_735_360),
        (GPT2, 124_439_808),
        (GPT_NEOX_20B, 20_554_567_680),
        (OPT_6_7B, 6_658_473_984),
        (MIXTRAL_8X7B, 46_702_792_704),
        (QWEN3_30B_A3B, 30_532_122_624),
        (DEEPSEEK_V3, 671_026_419_200),
        (GPT_OSS_20B, 20_914_757_184),
        (GEMMA3_4B, 3_880_263_168),
        (BERT_BASE, 109_514_298),
        ({**BERT_BASE, "architectures": ["BertForPreTraining"]}, 110_106_428),
    ],
)
def test_counts_equal_the_released_models(config, count):
    assert parameters(hf.config_from_hf(config)) == count


def test_the_architecture_is_known_by_its_class_too():
    for config in (LLAMA3_8B, GPT2, GPT_NEOX_20B, QWEN3_8B):
        untyped = {key: value for key, value in config.items() if key != "model_type"}
        assert parameters(hf.config_from_hf(untyped)) == parameters(hf.config_from_hf(config))


def test_reads_a_file_and_its_folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(OPT_6_7B))
    assert hf.config_from_hf(tmp_path) == hf.config_from_hf(tmp_path / "config.json")
    assert hf.config_from_hf(tmp_path)["name"] == "opt-6.7b"


def test_defaults_are_those_of_the_library():
    assert hf.config_from_hf(GPT2)["tied_embeddings"] is True
    assert hf.config_from_hf(GPT2)["ffn"] == 3072
    assert hf.config_from_hf(GPT_NEOX_20B)["parallel_residual"] is True
    no_kv = {key: value for key, value in LLAMA3_8B.items() if key != "num_key_value_heads"}
    assert hf.config_from_hf(no_kv)["kv_heads"] == 32
    assert hf.config_from_hf({**QWEN3_8B, "head_dim": None})["head_dim"] == 128


def test_windows_are_read_and_sequences_are_the_longest():
    mistral = hf.config_from_hf(MISTRAL_7B)
    assert (mistral["window"], mistral["seq"]) == (4096, 32768)
    assert "window" not in hf.config_from_hf({**MISTRAL_7B, "sliding_window": None})
    absent = {key: value for key, value in MISTRAL_7B.items() if key != "sliding_window"}
    assert hf.config_from_hf(absent)["window"] == 4096
    assert "window" not in hf.config_from_hf(QWEN2_7B)


@pytest.mark.parametrize(
    ("config", "preset"),
    [
        (MIXTRAL_8X7B, "mixtral-8x7b"),
        (QWEN3_30B_A3B, "qwen3-30b-a3b"),
        (DEEPSEEK_V3, "deepseek-v3"),
        (GPT_OSS_20B, "gpt-oss-20b"),
        (GEMMA3_4B, "gemma3-4b"),
        (BERT_BASE, "bert-base"),
        (LLAMA3_8B, "llama3-8b"),
    ],
)
def test_a_configuration_is_its_preset(config, preset):
    fields = {**hf.config_from_hf(config), "name": preset, "seq": 512}
    assert Model.from_config(**fields) == Model.preset(preset, seq=512)


@pytest.mark.parametrize(
    ("config", "change", "message"),
    [
        (QWEN3_30B_A3B, {"mlp_only_layers": [0, 5]}, "not supported yet: `mlp_only_layers`"),
        (QWEN3_30B_A3B, {"mlp_only_layers": [48]}, "whole numbers from 0 to 47, not `[48]`"),
        (QWEN3_30B_A3B, {"mlp_only_layers": 3}, "must be a list of whole numbers"),
        (DEEPSEEK_V3, {"attention_bias": True}, "not supported yet: `attention_bias` = `True`"),
        (DEEPSEEK_V3, {"moe_layer_freq": 2}, "not supported yet: `moe_layer_freq` = `2`"),
        (DEEPSEEK_V3, {"scoring_func": "softmax"}, "not supported yet: `scoring_func`"),
        (GPT_OSS_20B, {"layer_types": ["chunked_attention"] * 24}, "type `chunked_attention`"),
        (GPT_OSS_20B, {"layer_types": ["full_attention"]}, "has 1 entries for 24 layers"),
        (GPT_OSS_20B, {"layer_types": "full"}, "must be a list of strings, not `'full'`"),
        (GPT_OSS_20B, {"sliding_window": -1}, "`sliding_window` is -1; it must be from 1"),
        (BERT_BASE, {"is_decoder": True}, "not supported yet: `is_decoder` = `True`"),
    ],
)
def test_what_is_not_simulated_is_refused(config, change, message):
    with pytest.raises(InputError) as error:
        hf.config({**config, **change}, what="`config.json`")
    assert message in str(error.value)


def test_mistakes_in_the_text_of_a_model_of_images_and_text():
    text = {**GEMMA3_4B["text_config"], "final_logit_softcapping": "yes"}
    with pytest.raises(InputError, match=r"`text_config` of `config\.json`: `final_logit"):
        hf.config({**GEMMA3_4B, "text_config": text}, what="`config.json`")


def test_dense_layers_of_qwen_come_first():
    fields = hf.config_from_hf({**QWEN3_30B_A3B, "mlp_only_layers": [0, 1]})
    assert fields["dense_layers"] == 2
    alternating = hf.config_from_hf({**QWEN3_30B_A3B, "decoder_sparse_step": 2})
    assert (alternating["dense_layers"], alternating["moe_every"]) == (1, 2)
    none = hf.config_from_hf({**QWEN3_30B_A3B, "mlp_only_layers": list(range(48))})
    assert "experts" not in none


def test_qwen_has_windows_in_its_last_layers():
    late = {**QWEN2_7B, "use_sliding_window": True, "max_window_layers": 26}
    fields = hf.config_from_hf({**late, "sliding_window": 512})
    assert (fields["window"], fields["window_pattern"]) == (512, "f" * 26 + "ww")
    assert "window" not in hf.config_from_hf({**late, "max_window_layers": 28})


def test_layer_types_say_which_layers_have_a_window():
    kinds = ["full_attention", "sliding_attention"] * 18
    fields = hf.config_from_hf(
        {**QWEN3_8B, "use_sliding_window": True, "sliding_window": 64, "layer_types": kinds}
    )
    assert (fields["window"], fields["window_pattern"]) == (64, "fw")


def test_a_gated_layer_with_gelu_is_geglu():
    assert hf.config_from_hf({**LLAMA3_8B, "hidden_act": "gelu_pytorch_tanh"})["mlp"] == "geglu"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "falcon"}, "architecture `falcon` is not known. There are `bert`"),
        ({"model_type": "lama"}, "Did you mean `llama`?"),
        ({"model_type": 7}, "`model_type` must be a string, not `7`"),
        ({"model_type": None, "architectures": None}, "has no `model_type`"),
        ({"model_type": None, "architectures": [3]}, "has no `model_type`"),
        ({"model_type": None, "architectures": ["MambaForCausalLM"]}, "`MambaForCausalLM`"),
        ({"hidden_size": None}, "has no `hidden_size`"),
        ({"hidden_size": "4096"}, "`hidden_size` must be a whole number, not `'4096'`"),
        ({"hidden_size": 4096.0}, "must be a whole number, not `4096.0`"),
        ({"hidden_size": True}, "must be a whole number, not `True`"),
        ({"hidden_size": -4096}, "`hidden_size` is -4096; it must be from 1 to"),
        ({"num_hidden_layers": 0}, "`num_hidden_layers` is 0; it must be from 1 to"),
        ({"vocab_size": 10**30}, "`vocab_size` is 1000000000000000000000000000000; it must be"),
        ({"hidden_size": [4096]}, "must be a whole number, not `[4096]`"),
        ({"num_key_value_heads": 5}, "the 32 heads are not divisible by the 5 kv heads"),
        ({"num_attention_heads": 30, "num_key_value_heads": 30}, "4096 is not divisible by 30"),
        ({"tie_word_embeddings": "no"}, "must be true or false, not `'no'`"),
        ({"hidden_act": "sillu"}, "activation `sillu` is not known"),
        ({"hidden_act": "relu"}, "not supported yet: `hidden_act` = `relu` in a gated"),
        ({"mlp_bias": "yes"}, "`mlp_bias` must be true or false, not `'yes'`"),
    ],
)
def test_mistakes_are_named_with_what_would_be_right(change, message):
    with pytest.raises(InputError) as error:
        hf.config({**LLAMA3_8B, **change}, what="`config.json`")
    assert message in str(error.value)
    assert "config.json" in str(error.value)


def test_a_misspelt_key_is_recognised():
    config = {**LLAMA3_8B, "hidden_sizes": 4096}
    del config["hidden_size"]
    with pytest.raises(InputError, match=r"has no `hidden_size`\. Did you mean `hidden_sizes`"):
        hf.config(config, what="`config.json`")


def test_variants_that_are_not_simulated_say_so():
    with pytest.raises(InputError, match="not supported yet: `do_layer_norm_before`"):
        hf.config_from_hf({**OPT_6_7B, "do_layer_norm_before": False})
    with pytest.raises(InputError, match="not supported yet: `word_embed_proj_dim` = `512`"):
        hf.config_from_hf({**OPT_6_7B, "word_embed_proj_dim": 512})


@pytest.mark.parametrize("text", ["{", "[]", "", "null", "3", '{"model_type": "llama"'])
def test_a_file_that_is_no_configuration(tmp_path, text):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"config\.json"):
        hf.config_from_hf(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"there is no file `.*config\.json`"):
        hf.config_from_hf(tmp_path / "config.json")


def test_groups_of_experts_are_those_of_the_configuration():
    fields = hf.config_from_hf(DEEPSEEK_V3)
    assert (fields["expert_groups"], fields["groups_per_token"]) == (8, 4)
    for change in ({"n_group": 1, "topk_group": 1}, {"topk_method": "greedy"}):
        assert "expert_groups" not in hf.config_from_hf({**DEEPSEEK_V3, **change})
    with pytest.raises(InputError, match="`groups_per_token` is 9"):
        Model.from_config(**{**fields, "groups_per_token": 9})
    with pytest.raises(InputError, match="`expert_groups` is -8"):
        Model.from_config(**{**fields, "expert_groups": -8})
    with pytest.raises(InputError, match="not divisible by the 7"):
        Model.from_config(**{**fields, "expert_groups": 7})
    with pytest.raises(InputError, match="groups have 8 experts"):
        Model.from_config(**{**fields, "expert_groups": 64, "groups_per_token": 2, "topk": 9})
