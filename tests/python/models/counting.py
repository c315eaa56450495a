"""Parameter counts from the fields of a model, written out by hand."""

from __future__ import annotations

from typing import Any


def parameters(model: dict[str, Any]) -> int:
    """Trained parameters, tied embeddings once."""
    h, ffn, vocab = model["hidden"], model["ffn"], model["vocab"]
    heads = model["heads"]
    kv_heads = model.get("kv_heads", heads)
    dim = model.get("head_dim", h // heads)
    q, kv = heads * dim, kv_heads * dim
    gated = model["mlp"] in ("swiglu", "geglu")
    norm = h if model["norm"] == "rmsnorm" else 2 * h

    attention = h * (q + 2 * kv) + q * h
    attention += (q + 2 * kv) * model.get("qkv_bias", False) + h * model.get("out_bias", False)
    attention += 2 * dim * model.get("qk_norm", False)
    feed_forward = (3 if gated else 2) * h * ffn + (ffn + h) * model.get("mlp_bias", False)
    layer = attention + feed_forward + 2 * norm

    positions = 0
    if model["position"] == "learned":
        positions = model.get("max_positions", model["seq"])
    embedding = h * (vocab + positions + model.get("token_types", 0))
    embedding += norm * model.get("embedding_norm", False)
    head = 0 if model["tied_embeddings"] else vocab * h
    head += vocab * model.get("head_bias", False)
    head += 0 if model.get("post_norm") else norm
    head += (h * h + h + norm) * model.get("head_transform", False)
    return embedding + model["layers"] * layer + head
