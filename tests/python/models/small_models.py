"""Small random configurations of every architecture, and their models in `transformers`."""

import random

SEED = 20250307


def _llama(draw):
    kv, per_kv, dim = draw(1, 3), draw(1, 3), 8 * draw(1, 3)
    return {
        "num_hidden_layers": draw(1, 4),
        "hidden_size": kv * per_kv * 2 * draw(2, 6) * 4,
        "num_attention_heads": kv * per_kv,
        "num_key_value_heads": kv,
        "head_dim": dim,
        "intermediate_size": 8 * draw(2, 9),
        "vocab_size": draw(50, 200),
        "max_position_embeddings": 64,
        "tie_word_embeddings": draw.flag(),
    }


def _windows(draw):
    return {"sliding_window": draw(4, 80), "use_sliding_window": draw.flag()}


def _experts(draw, names):
    count = draw(2, 6)
    return dict(zip(names, (count, draw(1, count), 8 * draw(1, 5)), strict=True))


def _deepseek(draw, **more):
    heads = draw(1, 4)
    layers = draw(2, 4)
    return {
        **{key: size for key, size in _llama(draw).items() if key != "head_dim"},
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "hidden_size": heads * 16,
        "q_lora_rank": draw.choice([None, 24]),
        "kv_lora_rank": 8 * draw(1, 4),
        "qk_nope_head_dim": 4 * draw(1, 4),
        "qk_rope_head_dim": 4 * draw(1, 4),
        "v_head_dim": 4 * draw(1, 4),
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "n_group": 1,
        "topk_group": 1,
        "moe_intermediate_size": 8 * draw(1, 4),
        "n_shared_experts": draw(1, 3),
        "first_k_dense_replace": draw(0, layers),
        **more,
    }


def _gpt2(draw):
    heads = draw(1, 4)
    return {
        "n_layer": draw(1, 4),
        "n_head": heads,
        "n_embd": 8 * heads,
        "n_inner": draw.choice([None, 40]),
        "n_positions": draw(16, 64),
        "vocab_size": draw(50, 200),
        "tie_word_embeddings": draw.flag(),
    }


def _bloom(draw):
    heads = draw(1, 4)
    return {
        "n_layer": draw(1, 4),
        "n_head": heads,
        "hidden_size": 8 * heads,
        "vocab_size": draw(50, 200),
        "tie_word_embeddings": draw.flag(),
    }


def _plain(draw, ffn):
    heads = draw(1, 4)
    return {
        "num_hidden_layers": draw(1, 4),
        "hidden_size": 8 * heads,
        "num_attention_heads": heads,
        ffn: 8 * draw(2, 9),
        "vocab_size": draw(50, 200),
        "max_position_embeddings": draw(16, 64),
        "tie_word_embeddings": draw.flag(),
    }


def _opt(draw):
    fields = _plain(draw, "ffn_dim")
    return {
        **fields,
        "word_embed_proj_dim": fields["hidden_size"],
        "enable_bias": draw.flag(),
    }


# Fields of a small configuration of each architecture.
FAMILIES = {
    "llama": lambda d: _llama(d) | {"attention_bias": d.flag(), "mlp_bias": d.flag()},
    "mistral": lambda d: _llama(d) | {"sliding_window": d.choice([None, 8])},
    "qwen2": lambda d: _llama(d) | _windows(d) | {"max_window_layers": d(0, 3)},
    "qwen3": lambda d: _llama(d) | _windows(d) | {"attention_bias": d.flag()},
    "phi3": lambda d: _llama(d) | {"sliding_window": d.choice([None, 8]), "pad_token_id": 0},
    "gemma": lambda d: _llama(d) | {"attention_bias": d.flag()},
    "gemma2": lambda d: _llama(d) | {"attention_bias": d.flag(), "sliding_window": 16},
    "gemma3_text": lambda d: _llama(d) | {"sliding_window": 16, "attention_bias": d.flag()},
    "mixtral": lambda d: (
        _llama(d) | _experts(d, ("num_local_experts", "num_experts_per_tok", "intermediate_size"))
    ),
    "qwen2_moe": lambda d: (
        _llama(d)
        | _experts(d, ("num_experts", "num_experts_per_tok", "moe_intermediate_size"))
        | {"shared_expert_intermediate_size": 240 * 8, "qkv_bias": d.flag()}
        | {"decoder_sparse_step": d(1, 2), "mlp_only_layers": d.choice([[], [0]])}
    ),
    "qwen3_moe": lambda d: (
        _llama(d)
        | _experts(d, ("num_experts", "num_experts_per_tok", "moe_intermediate_size"))
        | {"attention_bias": d.flag(), "decoder_sparse_step": d(1, 2)}
    ),
    "gpt_oss": lambda d: (
        _llama(d)
        | _experts(d, ("num_local_experts", "num_experts_per_tok", "intermediate_size"))
        | {"attention_bias": d.flag()}
    ),
    "deepseek_v2": lambda d: _deepseek(d, scoring_func="softmax", topk_method="greedy"),
    "deepseek_v3": lambda d: _deepseek(d, num_nextn_predict_layers=0),
    "glm4_moe": lambda d: (
        _deepseek(d, num_nextn_predict_layers=0)
        | {"attention_bias": d.flag(), "use_qk_norm": d.flag()}
    ),
    "gpt2": _gpt2,
    "bloom": _bloom,
    "starcoder2": lambda d: (
        _plain(d, "intermediate_size")
        | {"use_bias": d.flag(), "num_key_value_heads": 1, "sliding_window": d.choice([None, 8])}
    ),
    "gpt_neox": lambda d: _plain(d, "intermediate_size") | {"attention_bias": d.flag()},
    "opt": _opt,
    # Untied, transformers keeps a second bias of the logits that nothing reads.
    "bert": lambda d: (
        _plain(d, "intermediate_size") | {"type_vocab_size": d(1, 3), "tie_word_embeddings": True}
    ),
}


class Draw:
    """Small random sizes."""

    def __init__(self, seed):
        self._random = random.Random(seed)

    def __call__(self, low, high):
        return self._random.randint(low, high)

    def flag(self):
        return self._random.random() < 0.5

    def choice(self, values):
        return self._random.choice(values)


def build(model_type, fields, head=None, **options):
    """The model, randomly initialised; on the meta device unless `options` say how it runs."""
    import torch
    import transformers

    config = transformers.AutoConfig.for_model(model_type, **fields)
    if head is None and model_type == "bert":
        head = "BertForMaskedLM"
    with torch.device("cpu" if options else "meta"):
        if head is not None:
            config._attn_implementation = options.get("attn_implementation", "sdpa")
            return getattr(transformers, head)(config)
        return transformers.AutoModelForCausalLM.from_config(config, **options)
