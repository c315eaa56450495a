"""The model that a measured row trained, from its columns and its name."""

from __future__ import annotations

import re
from typing import Any

from plancast.accuracy.validation.rows import Row
from plancast.accuracy.validation.software import length_of, predictions_of, unprinted_vocab
from plancast.models import presets

_DEFAULT_VOCAB = 51200
# What the columns cannot say of BERT (Devlin et al. 2019).
_BERT_POSITIONS = 512
_BERT: dict[str, Any] = {
    "token_types": 2,
    "bidirectional": True,
    "post_norm": True,
    "embedding_norm": True,
    "head_transform": True,
    "head_bias": True,
}
# Of a shipped model's fields, those that no column says.
_UNSAID = (
    "qkv_bias",
    "out_bias",
    "mlp_bias",
    "qk_norm",
    "branch_norm",
    "embedding_scale",
    "attention_softcap",
    "head_softcap",
    "attention_sinks",
    "rotary_scaled",
    "window",
    "window_pattern",
    "q_lora_rank",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
    "shared_expert_gate",
    "router_score",
    "router_normalized",
    "router_bias",
    "expert_groups",
    "groups_per_token",
    "parallel_residual",
)


class UnsupportedError(Exception):
    """The row cannot be simulated yet, or contradicts itself; says why."""


def fields_of(row: Row, chosen: dict[str, str]) -> dict[str, Any]:
    """The fields of `Model.from_config`; what is assumed goes to `chosen`.

    Columns decide. What they cannot say (biases, latent attention, windows) is that of
    the shipped model of the row's name, or the usual.
    """
    vocab = row.vocab
    if vocab is None:
        known = unprinted_vocab(row.software)
        vocab = known or _DEFAULT_VOCAB
        chosen["vocab"] = f"{vocab} (not printed{': as the software has' if known else ''})"
    heads = row.heads or 1
    hidden = row.hidden or 0
    fields: dict[str, Any] = {
        "name": row.model,
        "layers": row.layers,
        "hidden": hidden,
        "heads": heads,
        "kv_heads": row.kv_heads or heads,
        "head_dim": row.head_dim or hidden // heads,
        "ffn": row.ffn_hidden or row.moe_ffn_hidden or 4 * hidden,
        "vocab": vocab,
        "seq": row.seq_len,
        "mlp": row.mlp or "gelu",
        "norm": row.norm or "layernorm",
        "position": row.position or "learned",
        "tied_embeddings": row.tied_embeddings,
    }
    shipped = _shipped(row.model)
    fields |= {key: shipped[key] for key in _UNSAID if key in shipped}
    if shipped.get("mlp") == "swiglu_clamped" and row.mlp == "swiglu":
        fields["mlp"] = "swiglu_clamped"
    if row.model.startswith("mpt"):
        fields |= dict.fromkeys(("qkv_bias", "out_bias", "mlp_bias"), False)
    elif row.model.lower().startswith("bert"):
        longest = row.seq_len or 0
        fields |= {"max_positions": max(_BERT_POSITIONS, longest), **_BERT}
        masked = predictions_of(row.software, longest)
        length = length_of(row.software, longest, row.model.lower())
        if length != longest:
            fields["seq"] = length
            chosen["seq"] = f"{length} (sequences of up to {longest} in bins, on average)"
            masked = None if masked is None else max(1, masked * length // longest)
        if masked is not None:
            fields["predictions"] = masked
        read = "all" if masked is None else f"{masked} of {row.seq_len}"
        chosen["architecture"] = f"encoder of masked words (BERT); its head reads {read} positions"
    if row.experts:
        if not row.topk:
            raise UnsupportedError(f"`{row.model}` has {row.experts} experts and no `topk`")
        fields |= {
            "experts": row.experts,
            "topk": row.topk,
            "moe_ffn": row.moe_ffn_hidden or row.ffn_hidden or 4 * hidden,
            "shared_experts": row.shared_experts or 0,
            "dense_layers": row.dense_layers or 0,
        }
    _check_attention(row, fields)
    if "kv_lora_rank" in fields:
        del fields["head_dim"], fields["kv_heads"]
    ahead = multi_token_layers(row)
    if ahead:
        fields["mtp_layers"] = ahead
    return fields


def multi_token_layers(row: Row) -> int:
    """How many modules of multi-token prediction the row trains: as it says, or as it counts."""
    said = row.assumption("mtp")
    if said is not None and said.isdigit():
        return int(said)
    return int(row.flops_formula.endswith("_mtp"))


def _shipped(name: str) -> dict[str, Any]:
    """The fields of the shipped transformer of this name; empty if there is none."""
    whole = re.sub(r"-l\d+$", "", name)
    return presets.config(whole) if whole in presets.transformers() else {}


def _check_attention(row: Row, fields: dict[str, Any]) -> None:
    """Refuses attention that the row names and its model lacks."""
    said = row.assumption("attention") or ""
    if said.startswith("mla") and "kv_lora_rank" not in fields:
        raise UnsupportedError(
            f"latent attention of `{row.model}`, which is no shipped model: its ranks are unknown"
        )
    if said.startswith("sliding_window") and "window" not in fields:
        raise UnsupportedError(
            f"attention `{said}` of `{row.model}`, which is no shipped model with a window"
        )
