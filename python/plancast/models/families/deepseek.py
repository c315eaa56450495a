"""DeepSeek-V2 (arXiv:2405.04434) and V3 (arXiv:2412.19437): latent attention, shared experts.

The module for multi-token prediction (`num_nextn_predict_layers`) is left out: see
`Model.with_mtp`.
"""

from __future__ import annotations

from typing import Any

from plancast.models.families.common import llama_like
from plancast.models.fields import Fields


def deepseek_v2(fields: Fields) -> dict[str, Any]:
    """Scores are a softmax and are not made to sum to 1."""
    fields.only("scoring_func", supported="softmax", default="softmax")
    return {
        **_deepseek(fields, experts=64, shared=2, topk=None, dense=0),
        "router_score": "softmax",
        "router_normalized": fields.flag("norm_topk_prob", False),
    }


def deepseek_v3(fields: Fields) -> dict[str, Any]:
    """Scores are sigmoids, corrected by a bias that evens out the load."""
    fields.only("scoring_func", supported="sigmoid", default="sigmoid")
    return {
        **_deepseek(fields, experts=256, shared=1, topk=8, dense=3),
        "router_score": "sigmoid",
        "router_bias": True,
        "router_normalized": fields.flag("norm_topk_prob", True),
    }


def _deepseek(
    fields: Fields, *, experts: int, shared: int, topk: int | None, dense: int
) -> dict[str, Any]:
    for key in ("attention_bias", "mlp_bias"):
        fields.only(key, supported=False, default=False)
    fields.only("moe_layer_freq", supported=1, default=1)
    result = llama_like(fields)
    # What the heads of others are, latent attention says otherwise.
    del result["kv_heads"]
    result.pop("head_dim", None)
    latent = {
        "kv_lora_rank": fields.count("kv_lora_rank", 512),
        "qk_nope_head_dim": fields.count("qk_nope_head_dim", 128),
        "qk_rope_head_dim": fields.count("qk_rope_head_dim", 64),
        "v_head_dim": fields.count("v_head_dim", 128),
    }
    query = fields.optional("q_lora_rank", 1536)
    if query is not None:
        latent["q_lora_rank"] = query
    dense = min(fields.whole("first_k_dense_replace", dense), result["layers"])
    if dense == result["layers"]:
        return {**result, **latent}
    return {
        **result,
        **latent,
        "experts": fields.count("n_routed_experts", experts),
        "topk": fields.count("num_experts_per_tok", topk),
        "moe_ffn": fields.count("moe_intermediate_size"),
        "shared_experts": fields.whole("n_shared_experts", shared),
        "dense_layers": dense,
        **_groups(fields, "greedy" if topk is None else "noaux_tc"),
    }


def _groups(fields: Fields, method: str) -> dict[str, int]:
    """Among how many groups of experts a token chooses; nothing if among all."""
    groups = fields.optional("n_group", None)
    if groups in (None, 1) or fields.word("topk_method", method) == "greedy":
        return {}
    return {"expert_groups": groups, "groups_per_token": fields.count("topk_group")}
