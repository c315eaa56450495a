"""GPT-2, GPT-NeoX, OPT, BLOOM and StarCoder 2."""

from __future__ import annotations

from typing import Any

from plancast.models.families.common import activation, all_biases, sizes, windows
from plancast.models.fields import Fields


def gpt2(fields: Fields) -> dict[str, Any]:
    """Radford et al. 2019."""
    hidden = fields.count("n_embd")
    positions = fields.count("n_positions")
    fields.only("add_cross_attention", supported=False, default=False)
    return {
        "layers": fields.count("n_layer"),
        "hidden": hidden,
        "heads": fields.count("n_head"),
        "ffn": fields.count("n_inner", 4 * hidden),
        "vocab": fields.count("vocab_size"),
        "seq": positions,
        "max_positions": positions,
        "mlp": activation(fields, "activation_function", "gelu_new", gated=False),
        "norm": "layernorm",
        "position": "learned",
        "tied_embeddings": fields.flag("tie_word_embeddings", True),
        **all_biases(True),
    }


def gpt_neox(fields: Fields) -> dict[str, Any]:
    """Black et al. 2022."""
    attention_bias = fields.flag("attention_bias", True)
    return {
        "layers": fields.count("num_hidden_layers"),
        "hidden": fields.count("hidden_size"),
        "heads": fields.count("num_attention_heads"),
        "ffn": fields.count("intermediate_size"),
        "vocab": fields.count("vocab_size"),
        "seq": fields.count("max_position_embeddings"),
        "mlp": activation(fields, "hidden_act", "gelu", gated=False),
        "norm": "layernorm",
        "position": "rope",
        "tied_embeddings": fields.flag("tie_word_embeddings", False),
        "parallel_residual": fields.flag("use_parallel_residual", True),
        **all_biases(True),
        "qkv_bias": attention_bias,
        "out_bias": attention_bias,
    }


def opt(fields: Fields) -> dict[str, Any]:
    """Zhang et al. 2022."""
    hidden = fields.count("hidden_size")
    positions = fields.count("max_position_embeddings")
    fields.only("word_embed_proj_dim", supported=hidden, default=hidden)
    fields.only("do_layer_norm_before", supported=True, default=True)
    fields.only("layer_norm_elementwise_affine", supported=True, default=True)
    fields.only("_remove_final_layer_norm", supported=False, default=False)
    return {
        "layers": fields.count("num_hidden_layers"),
        "hidden": hidden,
        "heads": fields.count("num_attention_heads"),
        "ffn": fields.count("ffn_dim"),
        "vocab": fields.count("vocab_size"),
        "seq": positions,
        # The first two rows of the table stand for padding.
        "max_positions": positions + 2,
        "mlp": activation(fields, "activation_function", "relu", gated=False),
        "norm": "layernorm",
        "position": "learned",
        "tied_embeddings": fields.flag("tie_word_embeddings", True),
        **all_biases(fields.flag("enable_bias", True)),
    }


def bloom(fields: Fields) -> dict[str, Any]:
    """Le Scao et al. 2022."""
    fields.only("apply_residual_connection_post_layernorm", supported=False, default=False)
    hidden = fields.count("hidden_size", fields.count("n_embed", 64))
    return {
        "layers": fields.count("n_layer", fields.count("num_hidden_layers", 2)),
        "hidden": hidden,
        "heads": fields.count("n_head", fields.count("num_attention_heads", 8)),
        "ffn": 4 * hidden,
        "vocab": fields.count("vocab_size"),
        "seq": fields.count("seq_length", 2048),
        "mlp": "gelu",
        "norm": "layernorm",
        "position": "alibi",
        "tied_embeddings": fields.flag("tie_word_embeddings", True),
        "embedding_norm": True,
        **all_biases(True),
    }


def starcoder2(fields: Fields) -> dict[str, Any]:
    """Lozhkov et al. 2024 (arXiv:2402.19173)."""
    common = sizes(fields)
    result = {
        **common,
        "mlp": activation(fields, "hidden_act", "gelu_pytorch_tanh", gated=False),
        "norm": "layernorm",
        "position": "rope",
        "tied_embeddings": fields.flag("tie_word_embeddings", True),
        **all_biases(fields.flag("use_bias", True)),
    }
    return {
        **result,
        **windows(fields, fields.optional("sliding_window", None), "w" * common["layers"]),
    }
