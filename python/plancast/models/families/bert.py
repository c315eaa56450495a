"""BERT (Devlin et al. 2019), trained on masked words and, if the file says so, on
pairs of sentences."""

from __future__ import annotations

from typing import Any

from plancast.models.families.common import activation, all_biases
from plancast.models.fields import Fields


def bert(fields: Fields) -> dict[str, Any]:
    """`BertForPreTraining` in `architectures` adds pooler and next-sentence head."""
    fields.only("is_decoder", supported=False, default=False)
    fields.only("add_cross_attention", supported=False, default=False)
    fields.only("position_embedding_type", supported="absolute", default="absolute")
    positions = fields.count("max_position_embeddings", 512)
    result = {
        "layers": fields.count("num_hidden_layers"),
        "hidden": fields.count("hidden_size"),
        "heads": fields.count("num_attention_heads"),
        "ffn": fields.count("intermediate_size"),
        "vocab": fields.count("vocab_size"),
        "seq": positions,
        "max_positions": positions,
        "mlp": activation(fields, "hidden_act", "gelu", gated=False),
        "norm": "layernorm",
        "position": "learned",
        "tied_embeddings": fields.flag("tie_word_embeddings", True),
        **all_biases(True),
        "token_types": fields.count("type_vocab_size", 2),
        "bidirectional": True,
        "post_norm": True,
        "embedding_norm": True,
        "head_transform": True,
        "head_bias": True,
    }
    if "BertForPreTraining" in fields.words("architectures"):
        result["sentence_head"] = True
    return result
