"""Llama and those that differ from it in little: Mistral, Qwen 2 and 3, Phi-3."""

from __future__ import annotations

from typing import Any

from plancast.models.families.common import llama_like, windows
from plancast.models.fields import Fields


def llama(fields: Fields) -> dict[str, Any]:
    """Touvron et al. 2023; Dubey et al. 2024."""
    return llama_like(fields, mlp_bias=fields.flag("mlp_bias", False))


def mistral(fields: Fields) -> dict[str, Any]:
    """Jiang et al. 2023: a window in every layer, unless the file says `null`."""
    result = llama_like(fields)
    window = fields.optional("sliding_window", 4096)
    return {**result, **windows(fields, window, "w" * result["layers"])}


def qwen2(fields: Fields) -> dict[str, Any]:
    """Yang et al. 2024: biases of queries, keys and values."""
    result = {**llama_like(fields), "qkv_bias": True, "out_bias": False}
    return {**result, **late_windows(fields, result["layers"])}


def qwen3(fields: Fields) -> dict[str, Any]:
    """Yang et al. 2025: norms of queries and keys."""
    result = {"head_dim": 128, **llama_like(fields), "qk_norm": True}
    return {**result, **late_windows(fields, result["layers"])}


def phi3(fields: Fields) -> dict[str, Any]:
    """Abdin et al. 2024. Its fused projections are the same products; a rotation of a
    part of each head costs as one of the whole."""
    result = llama_like(fields)
    window = fields.optional("sliding_window", None)
    return {**result, **windows(fields, window, "w" * result["layers"])}


def late_windows(fields: Fields, layers: int) -> dict[str, Any]:
    """Windows of Qwen's layers behind the first `max_window_layers`."""
    if not fields.flag("use_sliding_window", False):
        return {}
    full = min(fields.whole("max_window_layers", 28), layers)
    return windows(
        fields, fields.optional("sliding_window", 4096), "f" * full + "w" * (layers - full)
    )
