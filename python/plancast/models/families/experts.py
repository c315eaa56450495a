"""Mixtures of experts: Mixtral, Qwen 2 and 3, gpt-oss, GLM 4.5."""

from __future__ import annotations

from typing import Any

from plancast.errors import InputError
from plancast.models.families.common import llama_like, scaled_rotation, windows
from plancast.models.fields import Fields


def mixtral(fields: Fields) -> dict[str, Any]:
    """Jiang et al. 2024 (arXiv:2401.04088)."""
    result = llama_like(fields)
    window = fields.optional("sliding_window", None)
    return {
        **result,
        "experts": _experts(fields, 8),
        "topk": fields.count("num_experts_per_tok", 2),
        "moe_ffn": result["ffn"],
        **windows(fields, window, "w" * result["layers"]),
    }


def qwen2_moe(fields: Fields) -> dict[str, Any]:
    """Yang et al. 2024: a shared expert with a gate of its own."""
    biases = fields.flag("qkv_bias", True)
    result = {**llama_like(fields), "qkv_bias": biases, "out_bias": False}
    experts = _qwen_experts(fields, result["layers"], width=1408, count=60, topk=4)
    if experts:
        shared = fields.count("shared_expert_intermediate_size", 5632)
        if shared % experts["moe_ffn"]:
            raise InputError(
                f"not supported yet: a shared expert of width {shared} in {fields.what}. "
                f"Multiples of `moe_intermediate_size` ({experts['moe_ffn']}) are simulated."
            )
        experts |= {"shared_experts": shared // experts["moe_ffn"], "shared_expert_gate": True}
    early = fields.whole("max_window_layers", 28)
    kinds = "".join("w" if i % 2 == 0 and i < early else "f" for i in range(result["layers"]))
    return {**result, **experts, **_windows_if_used(fields, kinds)}


def qwen3_moe(fields: Fields) -> dict[str, Any]:
    """Yang et al. 2025: norms of queries and keys."""
    result = {**llama_like(fields), "qk_norm": True}
    return {
        **result,
        **_qwen_experts(fields, result["layers"], width=768, count=128, topk=8),
        **_windows_if_used(fields, "w" * result["layers"]),
    }


def gpt_oss(fields: Fields) -> dict[str, Any]:
    """OpenAI 2025 (arXiv:2508.10925): biases throughout, sinks, every other layer a window."""
    biases = fields.flag("attention_bias", True)
    fields = fields.with_defaults({"rope_scaling": {"rope_type": "yarn", "factor": 32}})
    result = {"head_dim": 64, **llama_like(fields)}
    layers = result["layers"]
    kinds = "".join("w" if layer % 2 == 0 else "f" for layer in range(layers))
    return {
        **result,
        "mlp": "swiglu_clamped",
        "qkv_bias": biases,
        "out_bias": biases,
        "mlp_bias": True,
        "attention_sinks": True,
        **scaled_rotation(fields),
        "experts": _experts(fields, 128),
        "topk": fields.count("num_experts_per_tok", 4),
        "moe_ffn": result["ffn"],
        "router_bias": True,
        **windows(fields, fields.optional("sliding_window", 128), kinds),
    }


def glm4_moe(fields: Fields) -> dict[str, Any]:
    """Zeng et al. 2025 (arXiv:2508.06471): dense layers first, shared experts, scores that
    a bias corrects. The module for multi-token prediction is left out."""
    result = {**llama_like(fields), "out_bias": False}
    dense = min(fields.whole("first_k_dense_replace", 1), result["layers"])
    result["qk_norm"] = fields.flag("use_qk_norm", False)
    if dense == result["layers"]:
        return result
    return {
        **result,
        "experts": fields.count("n_routed_experts", 128),
        "topk": fields.count("num_experts_per_tok", 8),
        "moe_ffn": fields.count("moe_intermediate_size", 1408),
        "shared_experts": fields.whole("n_shared_experts", 1),
        "dense_layers": dense,
        "router_score": "sigmoid",
        "router_bias": True,
        "router_normalized": fields.flag("norm_topk_prob", True),
    }


def _experts(fields: Fields, default: int) -> int:
    """How many; files of different ages name it differently."""
    return fields.count("num_experts", fields.count("num_local_experts", default))


def _windows_if_used(fields: Fields, kinds: str) -> dict[str, Any]:
    if not fields.flag("use_sliding_window", False):
        return {}
    return windows(fields, fields.optional("sliding_window", 4096), kinds)


def _qwen_experts(
    fields: Fields, layers: int, *, width: int, count: int, topk: int
) -> dict[str, Any]:
    every = fields.count("decoder_sparse_step", 1)
    dense = set(fields.indices("mlp_only_layers", layers))
    routed = [layer not in dense and (layer + 1) % every == 0 for layer in range(layers)]
    if not any(routed):
        return {}
    first = routed.index(True)
    if routed != [layer >= first and (layer + 1) % every == 0 for layer in range(layers)]:
        raise InputError(
            f"not supported yet: `mlp_only_layers` = `{sorted(dense)}` in {fields.what}. "
            "Dense layers are simulated before all others, or every few layers."
        )
    return {
        "experts": _experts(fields, count),
        "topk": fields.count("num_experts_per_tok", topk),
        "moe_ffn": fields.count("moe_intermediate_size", width),
        "dense_layers": first,
        "moe_every": every,
        "router_normalized": fields.flag("norm_topk_prob", False),
    }
