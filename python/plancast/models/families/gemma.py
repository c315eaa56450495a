"""Gemma 1 to 3 (text). Norms of the form (1 + w) x cost as others."""

from __future__ import annotations

from typing import Any

from plancast.models.families.common import llama_like, windows
from plancast.models.fields import Fields

_GEMMA2 = {
    "vocab_size": 256000,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
}
_GEMMA3 = {**_GEMMA2, "vocab_size": 262208, "max_position_embeddings": 131072}


def gemma(fields: Fields) -> dict[str, Any]:
    """arXiv:2403.08295: Llama with wide heads and scaled embeddings."""
    fields.only("use_bidirectional_attention", supported=False, default=False)
    defaults = {"head_dim": 256, "tie_word_embeddings": True}
    result = llama_like(fields.with_defaults(defaults), default_act="gelu_pytorch_tanh")
    return {**result, "embedding_scale": True}


def gemma2(fields: Fields) -> dict[str, Any]:
    """arXiv:2408.00118: every other layer has a window, logits are capped."""
    return _gemma(fields.with_defaults(_GEMMA2), full_every=2, attention_cap=50.0, head_cap=30.0)


def gemma3(fields: Fields) -> dict[str, Any]:
    """arXiv:2503.19786: five layers with a window for one without, queries and keys
    are normalised."""
    every = fields.count("sliding_window_pattern", fields.count("_sliding_window_pattern", 6))
    result = _gemma(
        fields.with_defaults(_GEMMA3), full_every=every, attention_cap=None, head_cap=None
    )
    return {**result, "qk_norm": True}


def _gemma(
    fields: Fields, *, full_every: int, attention_cap: float | None, head_cap: float | None
) -> dict[str, Any]:
    fields.only("use_bidirectional_attention", supported=False, default=False)
    # Older files give the activation under two names; the newer one counts.
    result = llama_like(fields, act="hidden_activation", default_act="gelu_pytorch_tanh")
    layers = result["layers"]
    kinds = "".join("w" if (layer + 1) % full_every else "f" for layer in range(layers))
    return {
        **result,
        "branch_norm": True,
        "embedding_scale": True,
        "attention_softcap": fields.number("attn_logit_softcapping", attention_cap) is not None,
        "head_softcap": fields.number("final_logit_softcapping", head_cap) is not None,
        **windows(fields, fields.optional("sliding_window", 4096), kinds),
    }
