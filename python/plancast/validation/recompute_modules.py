"""Recomputation of single modules, as Megatron-Core's recipes name them."""

from __future__ import annotations

import re

from plancast.errors import InputError
from plancast.strategy import Strategy
from plancast.validation.rows import Row

# core/transformer/transformer_config.py, recompute_modules. What a module of theirs is
# here, and what the model must have for it: experts, dense layers, latent attention.
_MODULES: dict[str, tuple[str, tuple[str, ...]]] = {
    "core_attn": ("", ("attn.core",)),
    "layernorm": ("", ("attn.norm", "mlp.norm")),
    "mla_up_proj": ("latent", ("attn.q_up", "attn.kv_up")),
    "mlp": ("dense", ("mlp.fc1", "mlp.act", "mlp.fc2")),
    "moe_act": ("experts", ("mlp.experts.act", "mlp.experts.weigh")),
    "moe": ("experts", ("mlp.dispatch", "mlp.weights", "mlp.experts")),
    "shared_experts": ("shared", ("mlp.shared",)),
}


def modules_of(row: Row) -> tuple[str, ...]:
    """The modules that the row's selective recomputation runs again; none: unsaid.

    Raises InputError for a module that Megatron-Core does not have.
    """
    said = row.assumption("recompute_modules")
    if not said or row.strategy_keys().get("recompute") != "selective":
        return ()
    names = tuple(re.findall(r"\w+", said))
    for name in names:
        if name not in _MODULES:
            raise InputError(
                f"recompute_modules has `{name}`; there are {', '.join(sorted(_MODULES))}."
            )
    return names


def recompute_modules(strategy: Strategy, row: Row, names: tuple[str, ...]) -> Strategy:
    """`strategy` with these modules of all layers run again, as far as the model has them."""
    has = {
        "": True,
        "experts": bool(row.experts),
        "dense": not row.experts or bool(row.dense_layers),
        "shared": bool(row.shared_experts),
        "latent": row.assumption("attention") == "mla",
    }
    for name in names:
        needs, paths = _MODULES[name]
        if not has[needs]:
            continue
        for path in paths:
            strategy[f"layers.*.{path}"].recompute("full")
    return strategy
