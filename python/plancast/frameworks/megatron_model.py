"""Models by the sizes in Megatron's arguments, in both directions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from plancast.frameworks.table import Facts

if TYPE_CHECKING:
    from plancast.model import Model

# Vocabularies of tokenizers that only come in one size.
_VOCABULARIES = {"GPT2BPETokenizer": 50257, "Llama2Tokenizer": 32000}
_POSITIONS = {"learned_absolute": "learned", "rope": "rope", "yarn": "rope", "none": "none"}
_UNSAID = (
    "window", "attention_sinks", "rotary_scaled", "attention_softcap", "head_softcap",
    "parallel_residual", "branch_norm", "embedding_scale", "embedding_norm", "bidirectional",
    "post_norm", "token_types", "head_bias", "shared_expert_gate",
)  # fmt: skip
_NEEDED = ("layers", "hidden", "heads", "seq")


def read_model(facts: Facts) -> Model | None:
    """The model of the sizes; None with a note if one is missing."""
    if not any(name in facts for name in ("layers", "hidden", "heads")):
        return None
    vocab = facts["vocab"] or facts["padded_vocab"] or _VOCABULARIES.get(facts["tokenizer"] or "")
    missing = [facts.key(name) for name in _NEEDED if facts[name] is None]
    missing += [] if vocab else ["`--vocab-size`"]
    if missing:
        facts.note(f"the model cannot be built from its sizes: {', '.join(missing)} is not said.")
        return None
    position = "rope" if facts["rotary"] else facts["position"]
    if position not in _POSITIONS:
        facts.cannot_say(f"{facts.key('position')} = `{position}`: read as rope.")
        position = "rope"
    hidden = facts["hidden"]
    bias = not facts["no_bias"]
    fields: dict[str, Any] = {
        "name": f"megatron-{facts['layers']}x{hidden}",
        "layers": facts["layers"],
        "hidden": hidden,
        "heads": facts["heads"],
        "kv_heads": facts["groups"] if facts["grouped"] else None,
        "head_dim": facts["head_dim"],
        "ffn": facts["ffn"] or _default_ffn(hidden, gated=facts["swiglu"]),
        "vocab": vocab,
        "seq": facts["seq"],
        "max_positions": facts["positions"] if position == "learned_absolute" else None,
        "mlp": "swiglu" if facts["swiglu"] else "gelu",
        "norm": facts["norm"].lower(),
        "position": _POSITIONS[position],
        "tied_embeddings": not facts["untied"],
        "qkv_bias": bias or facts["qkv_bias"],
        "out_bias": bias,
        "mlp_bias": bias,
        "qk_norm": facts["qk_norm"] or None,
        "rotary_scaled": (position == "yarn" and not facts["latent"]) or None,
        "rotary_base": facts["rotary_base"] if position in ("rope", "yarn") else None,
        "mtp_layers": facts["mtp"] or None,
        **_experts(facts),
    }
    if facts["latent"]:
        fields |= {
            "head_dim": None,
            "kv_heads": None,
            "kv_lora_rank": facts["kv_rank"],
            "q_lora_rank": facts["q_rank"],
            "qk_nope_head_dim": facts["qk_dim"],
            "qk_rope_head_dim": facts["rope_dim"],
            "v_head_dim": facts["v_dim"],
        }
    from plancast.model import Model

    said = {name: value for name, value in fields.items() if value is not None}
    return Model.from_config(**said, what="the model of the arguments")


def _default_ffn(hidden: int, *, gated: bool) -> int:
    """arguments.py: four times the width, or two thirds of it where gated."""
    return int((4 * hidden * 2 / 3) / 64) * 64 if gated else 4 * hidden


def _experts(facts: Facts) -> dict[str, Any]:
    if not facts["experts"]:
        return {}
    if not facts["grouped_gemm"]:
        facts.cannot_say("`--moe-grouped-gemm` is not said: experts run one after the other.")
    ffn = facts["moe_ffn"] or facts["ffn"]
    shared = 0
    if facts["shared_ffn"] and ffn:
        shared = max(1, facts["shared_ffn"] // ffn)
        if shared * ffn != facts["shared_ffn"]:
            facts.cannot_say(
                f"{facts.key('shared_ffn')} = {facts['shared_ffn']}: no multiple of an expert's "
                f"{ffn}; taken as {shared} of them."
            )
    return {
        "experts": facts["experts"],
        "topk": facts["topk"],
        "moe_ffn": facts["moe_ffn"],
        "shared_experts": shared or None,
        "router_score": facts["router_score"],
        "router_bias": facts["router_bias"] or None,
        "expert_groups": facts["expert_groups"],
        "groups_per_token": facts["groups_per_token"],
        "capacity_factor": facts["capacity"],
        **_which_layers(facts),
    }


def _which_layers(facts: Facts) -> dict[str, int]:
    """`--moe-layer-freq`: every Nth layer, or a list such as `([0]*3+[1]*58)`."""
    freq = facts["moe_freq"]
    pattern = freq if isinstance(freq, list) else _pattern(str(freq))
    if pattern is None:
        facts.cannot_say(f"{facts.key('moe_freq')} = `{str(freq)[:60]}`: all layers have experts.")
        return {}
    if isinstance(pattern, int):
        return {} if pattern == 1 else {"moe_every": pattern}
    dense = pattern.index(1) if 1 in pattern else len(pattern)
    if not all(entry in (0, 1) for entry in pattern) or 0 in pattern[dense:]:
        facts.cannot_say(f"{facts.key('moe_freq')}: layers with and without experts take turns.")
        return {}
    return {"dense_layers": dense} if dense else {}


def _pattern(text: str) -> int | list[int] | None:
    """A number, or a list written as products of lists that are added up."""
    bare = "".join(text.split()).strip("'\"")
    if re.fullmatch(r"\d{1,6}", bare) and int(bare) > 0:
        return int(bare)
    if bare.startswith("(") and bare.endswith(")") and bare.count("(") == 1:
        bare = bare[1:-1]
    entries: list[int] = []
    for term in bare.split("+"):
        match = re.fullmatch(r"\[([01](?:,[01]){0,9999})\](?:\*(\d{1,4}))?", term)
        if match is None:
            return None
        entries += [int(entry) for entry in match[1].split(",")] * int(match[2] or 1)
        if len(entries) > 100_000:
            return None
    return entries


def write_model(model: Model | None, seq: int | None) -> dict[str, Any]:
    """The facts of a transformer's sizes; none of other models."""
    fields = None if model is None else model.config
    if fields is None:
        return {"seq": seq} if seq else {}
    gated = fields.get("mlp") == "swiglu"
    biased = fields.get("norm", "layernorm") == "layernorm" and not gated
    positions = {"learned": None, "rope": "rope", "none": "none", "alibi": None}
    said: dict[str, Any] = {
        "layers": fields["layers"],
        "hidden": fields["hidden"],
        "heads": fields["heads"],
        "ffn": fields.get("ffn"),
        "head_dim": fields.get("head_dim"),
        "seq": seq or fields["seq"],
        "positions": fields.get("max_positions", seq or fields["seq"]),
        "position": positions.get(fields.get("position", "learned")),
        "vocab": fields["vocab"],
        "norm": "RMSNorm" if fields.get("norm") == "rmsnorm" else None,
        "swiglu": gated,
        "untied": not fields.get("tied_embeddings", False),
        "no_bias": not fields.get("mlp_bias", biased),
        "qkv_bias": not fields.get("mlp_bias", biased) and bool(fields.get("qkv_bias", biased)),
        "qk_norm": bool(fields.get("qk_norm")),
        "mtp": multi_token(model) or None,
    }
    if said["position"] == "rope":
        said["rotary_base"] = fields.get("rotary_base")
    kv_heads = fields.get("kv_heads", fields["heads"])
    if kv_heads != fields["heads"]:
        said |= {"grouped": True, "groups": kv_heads}
    if fields.get("kv_lora_rank"):
        said |= {
            "latent": True,
            "q_rank": fields.get("q_lora_rank"),
            "kv_rank": fields["kv_lora_rank"],
            "qk_dim": fields.get("qk_nope_head_dim"),
            "rope_dim": fields.get("qk_rope_head_dim"),
            "v_dim": fields.get("v_head_dim"),
        }
    if fields.get("experts"):
        said |= _write_experts(fields)
    return said


def multi_token(model: Model | str | None) -> int:
    """How many modules of multi-token prediction a model has."""
    fields = None if model is None or isinstance(model, str) else model.config
    return 0 if fields is None else int(fields.get("mtp_layers") or 0)


def unsaid(model: Model | None) -> list[str]:
    """Fields of a transformer that the arguments of `write_model` leave out."""
    fields = {} if model is None else model.config or {}
    found = [name for name in _UNSAID if fields.get(name)]
    if fields.get("position") == "alibi":
        found.append("position")
    if fields.get("mlp", "gelu") not in ("gelu", "swiglu"):
        found.append("mlp")
    return found


def _write_experts(fields: dict[str, Any]) -> dict[str, Any]:
    width = fields.get("moe_ffn") or fields.get("ffn")
    dense, layers = fields.get("dense_layers", 0), fields["layers"]
    freq: Any = fields.get("moe_every")
    if dense:
        freq = f"[0]*{dense}+[1]*{layers - dense}"
    return {
        "experts": fields["experts"],
        "grouped_gemm": True,
        "topk": fields["topk"],
        "moe_ffn": width,
        "shared_ffn": fields["shared_experts"] * width if fields.get("shared_experts") else None,
        "moe_freq": freq,
        "router_score": "sigmoid" if fields.get("router_score") == "sigmoid" else None,
        "router_bias": bool(fields.get("router_bias")),
        "expert_groups": fields.get("expert_groups"),
        "groups_per_token": fields.get("groups_per_token"),
        "capacity": fields.get("capacity_factor"),
    }
