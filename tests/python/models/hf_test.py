"""Hugging Face configurations: exact counts, and errors that help."""

import json

import pytest
from plancast import Model
from plancast.errors import InputError
from plancast.models import hf


def parameters(fields):
    return Model.from_config(**fields).parameters


LLAMA3_8B = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 128000,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 8192,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 128256,
}
LLAMA3_70B = {
    **LLAMA3_8B,
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_attention_heads": 64,
    "num_hidden_layers": 80,
}
MISTRAL_7B = {
    "architectures": ["MistralForCausalLM"],
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 32768,
    "model_type": "mistral",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "sliding_window": 4096,
    "tie_word_embeddings": False,
    "vocab_size": 32000,
}
QWEN2_7B = {
    "architectures": ["Qwen2ForCausalLM"],
    "hidden_act": "silu",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "max_position_embeddings": 131072,
    "max_window_layers": 28,
    "model_type": "qwen2",
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "sliding_window": 131072,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vocab_size": 152064,
}
QWEN3_8B = {
    "architectures": ["Qwen3ForCausalLM"],
    "attention_bias": False,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "max_position_embeddings": 40960,
    "model_type": "qwen3",
    "num_attention_heads": 32,
    "num_hidden_layers": 36,
    "num_key_value_heads": 8,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
GPT2 = {
    "activation_function": "gelu_new",
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "n_ctx": 1024,
    "n_embd": 768,
    "n_head": 12,
    "n_layer": 12,
    "n_positions": 1024,
    "vocab_size": 50257,
}
GPT_NEOX_20B = {
    "architectures": ["GPTNeoXForCausalLM"],
    "hidden_act": "gelu_fast",
    "hidden_size": 6144,
    "intermediate_size": 24576,
    "max_position_embeddings": 2048,
    "model_type": "gpt_neox",
    "num_attention_heads": 64,
    "num_hidden_layers": 44,
    "rotary_pct": 0.25,
    "tie_word_embeddings": False,
    "vocab_size": 50432,
}
OPT_6_7B = {
    "_name_or_path": "facebook/opt-6.7b",
    "activation_function": "relu",
    "architectures": ["OPTForCausalLM"],
    "do_layer_norm_before": True,
    "ffn_dim": 16384,
    "hidden_size": 4096,
    "max_position_embeddings": 2048,
    "model_type": "opt",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "vocab_size": 50272,
    "word_embed_proj_dim": 4096,
}


MIXTRAL_8X7B = {
    "architectures": ["MixtralForCausalLM"],
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 32768,
    "model_type": "mixtral",
    "num_attention_heads": 32,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "vocab_size": 32000,
}
QWEN3_30B_A3B = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "attention_bias": False,
    "decoder_sparse_step": 1,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "max_position_embeddings": 40960,
    "max_window_layers": 48,
    "mlp_only_layers": [],
    "model_type": "qwen3_moe",
    "moe_intermediate_size": 768,
    "norm_topk_prob": True,
    "num_attention_heads": 32,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 48,
    "num_key_value_heads": 4,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
DEEPSEEK_V3 = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "attention_bias": False,
    "first_k_dense_replace": 3,
    "hidden_act": "silu",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "kv_lora_rank": 512,
    "max_position_embeddings": 163840,
    "model_type": "deepseek_v3",
    "moe_intermediate_size": 2048,
    "moe_layer_freq": 1,
    "n_group": 8,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "norm_topk_prob": True,
    "num_attention_heads": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 61,
    "num_key_value_heads": 128,
    "num_nextn_predict_layers": 1,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "routed_scaling_factor": 2.5,
    "scoring_func": "sigmoid",
    "tie_word_embeddings": False,
    "topk_group": 4,
    "topk_method": "noaux_tc",
    "v_head_dim": 128,
    "vocab_size": 129280,
}
GPT_OSS_20B = {
    "architectures": ["GptOssForCausalLM"],
    "attention_bias": True,
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "layer_types": ["sliding_attention", "full_attention"] * 12,
    "max_position_embeddings": 131072,
    "model_type": "gpt_oss",
    "num_attention_heads": 64,
    "num_experts_per_tok": 4,
    "num_hidden_layers": 24,
    "num_key_value_heads": 8,
    "num_local_experts": 32,
    "sliding_window": 128,
    "tie_word_embeddings": False,
    "vocab_size": 201088,
}
# The file leaves out what the class has as default.
GEMMA3_4B = {
    "architectures": ["Gemma3ForConditionalGeneration"],
    "model_type": "gemma3",
    "text_config": {
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "model_type": "gemma3_text",
        "num_hidden_layers": 34,
        "sliding_window": 1024,
    },
    "vision_config": {"hidden_size": 1152, "model_type": "siglip_vision_model"},
}
BERT_BASE = {
    "architectures": ["BertForMaskedLM"],
    "hidden_act": "gelu",
    "hidden_size": 768,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "model_type": "bert",
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "position_embedding_type": "absolute",
    "type_vocab_size": 2,
    "vocab_size": 30522,
}


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
        ({"model_type": "falcon"}, "architecture `falcon` is not known; the known ones are `bert`"),
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
