"""Weights of a transformer's matrix products, as publications count FLOPs."""

from __future__ import annotations

from typing import Any


def matmul_weights(fields: dict[str, Any]) -> tuple[float, float]:
    """Weights of the products that a token takes part in, and the widths of attention.

    Weights: the head's included, those of routers (which publications leave out) not; of
    experts those that a token visits. Width: the mean of a head's query and value sizes,
    times heads, summed over layers.
    """
    attention, width = attention_weights(fields)
    routed = routed_layers(fields)
    layers = fields["layers"]
    feed_forward = (layers - routed) * feed_forward_weights(fields, routed=False)
    if routed:
        feed_forward += routed * feed_forward_weights(fields, routed=True)
    head = fields["vocab"] * fields["hidden"]
    return layers * attention + feed_forward + head, layers * width


def attention_weights(fields: dict[str, Any]) -> tuple[float, float]:
    """Of one layer: weights of the projections, and the width of attention."""
    hidden, heads = fields["hidden"], fields["heads"]
    if "kv_lora_rank" in fields:
        rank, value = fields["kv_lora_rank"], fields["v_head_dim"]
        own, rotated = fields["qk_nope_head_dim"], fields["qk_rope_head_dim"]
        query_rank = fields.get("q_lora_rank")
        query = heads * (own + rotated)
        weights = query_rank * (hidden + query) if query_rank else hidden * query
        weights += hidden * (rank + rotated) + rank * heads * (own + value)
        return weights + heads * value * hidden, heads * (own + rotated + value) / 2
    head_dim = fields.get("head_dim") or hidden // heads
    kv_heads = fields.get("kv_heads", heads)
    return hidden * head_dim * (2 * heads + 2 * kv_heads), heads * head_dim


def feed_forward_weights(fields: dict[str, Any], *, routed: bool) -> int:
    """Of one layer, and of its experts those that a token visits."""
    matrices = 2 if fields["mlp"] in ("gelu", "relu") else 3
    width: int = fields["ffn"]
    if routed:
        width = fields["moe_ffn"] * (fields["topk"] + fields.get("shared_experts", 0))
    hidden: int = fields["hidden"]
    return matrices * hidden * width


def routed_layers(fields: dict[str, Any]) -> int:
    """How many layers have experts."""
    if "experts" not in fields:
        return 0
    every = fields.get("moe_every", 1)
    return sum(
        (layer + 1) % every == 0 for layer in range(fields.get("dense_layers", 0), fields["layers"])
    )
