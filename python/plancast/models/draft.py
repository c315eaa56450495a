"""Sizes of a configuration whose architecture is not known, for a file of one's own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

# What configurations call the fields of a file.
_NAMES = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
    "kv_heads": ("num_key_value_heads",),
    "head_dim": ("head_dim",),
    "ffn": ("moe_intermediate_size", "intermediate_size", "ffn_dim", "n_inner"),
    "vocab": ("vocab_size",),
    "seq": ("max_position_embeddings", "n_positions", "max_seq_len"),
    "experts": ("num_local_experts", "n_routed_experts", "num_experts"),
    "topk": ("num_experts_per_tok",),
}
_REQUIRED = ("layers", "hidden", "heads", "vocab", "seq")
# Of nearly every new model.
_MODERN = "mlp: swiglu, norm: rmsnorm, position: rope"


def draft(values: Mapping[str, Any]) -> str:
    """The text of a model file, were it a plain transformer; empty: sizes are missing.

    >>> sizes = {"n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 9, "n_positions": 8}
    >>> draft(sizes).partition(", mlp")[0]
    '{layers: 2, hidden: 64, heads: 4, vocab: 9, seq: 8'
    """
    found = {}
    for field, names in _NAMES.items():
        sizes = [values[name] for name in names if _is_size(values.get(name))]
        if sizes:
            found[field] = sizes[0]
    if any(field not in found for field in _REQUIRED):
        return ""
    # As the file wants it: a head of the usual width needs no word, half of a pair no sense.
    if "head_dim" not in found and math.gcd(found["hidden"], found["heads"]) != found["heads"]:
        return ""
    if ("experts" in found) != ("topk" in found):
        return ""
    return f"{{{', '.join(f'{field}: {size}' for field, size in found.items())}, {_MODERN}}}"


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
