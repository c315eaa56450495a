"""Transformers from Hugging Face configurations; no weights are read."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plancast import arguments, files
from plancast.errors import InputError
from plancast.models.draft import draft
from plancast.models.fields import Fields

# `model_type`, and the module of plancast.models.families whose function of the
# same name reads it.
_READERS = {
    "bert": "bert",
    "bloom": "gpt",
    "deepseek_v2": "deepseek",
    "deepseek_v3": "deepseek",
    "gemma": "gemma",
    "gemma2": "gemma",
    "gemma3": "gemma",
    "glm4_moe": "experts",
    "gpt2": "gpt",
    "gpt_neox": "gpt",
    "gpt_oss": "experts",
    "llama": "dense",
    "mistral": "dense",
    "mixtral": "experts",
    "opt": "gpt",
    "phi3": "dense",
    "qwen2": "dense",
    "qwen2_moe": "experts",
    "qwen3": "dense",
    "qwen3_moe": "experts",
    "starcoder2": "gpt",
}
# Other names of the same.
_ALIASES = {"gemma3_text": "gemma3", "kimi_k2": "deepseek_v3"}
# Ends of the names in `architectures`.
_HEADS = ("ForCausalLM", "LMHeadModel", "ForMaskedLM", "ForPreTraining", "Model")


def config_from_hf(source: str | Path | Mapping[str, Any]) -> dict[str, Any]:
    """Fields for `Model.from_config` from a config.json, its folder, or its parsed contents.

    >>> config_from_hf({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12,
    ...                 "n_positions": 1024, "vocab_size": 50257})["ffn"]
    3072
    """
    if isinstance(source, Mapping):
        return config(source, what="the configuration")
    path = Path(source)
    if files.is_folder(path):
        path = path / "config.json"
    return config(files.read_mapping(path), what=f"`{path}`")


def architectures() -> list[str]:
    """The values of `model_type` that can be read."""
    return sorted(_READERS)


def config(values: Mapping[str, Any], *, what: str) -> dict[str, Any]:
    """Fields for `Model.from_config` from a parsed config.json; `what` names it in errors.

    Of a model for images and text, the part for text is read.
    """
    if not isinstance(values, Mapping):
        raise InputError(f"{what} must hold `key: value` pairs and is a {type(values).__name__}.")
    name = Fields(values, what).word("_name_or_path", "").rstrip("/").rsplit("/", 1)[-1]
    text = values.get("text_config")
    if isinstance(text, Mapping):
        values, what = {"model_type": values.get("model_type"), **text}, f"`text_config` of {what}"
    fields = Fields(values, what)
    model_type = _model_type(values, fields)
    module = importlib.import_module(f"plancast.models.families.{_READERS[model_type]}")
    result = {"name": name or model_type, **getattr(module, model_type)(fields)}
    heads, kv_heads = result["heads"], result.get("kv_heads", result["heads"])
    if heads % kv_heads:
        raise InputError(f"{what}: the {heads} heads are not divisible by the {kv_heads} kv heads.")
    own_heads = "head_dim" not in result and "kv_lora_rank" not in result
    if own_heads and result["hidden"] % heads:
        raise InputError(
            f"{what}: hidden size {result['hidden']} is not divisible by {heads} heads, "
            "and there is no `head_dim`."
        )
    base = _rotary_base(values)
    if base is not None and result.get("position") == "rope":
        result["rotary_base"] = base
    return result


def _rotary_base(values: Mapping[str, Any]) -> float | None:
    """`rope_theta`, which newer files have in `rope_parameters`."""
    nested = values.get("rope_parameters")
    for holder in (values, nested if isinstance(nested, Mapping) else {}):
        base = holder.get("rope_theta")
        if isinstance(base, int | float) and not isinstance(base, bool) and base > 0:
            return int(base) if base == int(base) else base
    return None


def _model_type(values: Mapping[str, Any], fields: Fields) -> str:
    said = fields.word("model_type", "")
    if not said:
        classes = values.get("architectures")
        first = classes[0] if isinstance(classes, list) and classes else None
        if not isinstance(first, str):
            raise InputError(
                f"{fields.what} has no `model_type`, so its architecture is unknown. "
                f"Add one of {_known()}."
            )
        by_class = {reader.replace("_", ""): reader for reader in _READERS}
        stem = first
        for head in _HEADS:
            stem = stem.removesuffix(head)
        said = by_class.get(stem.lower(), first)
    said = _ALIASES.get(said, said)
    if said not in _READERS:
        raise InputError(
            f"{fields.what}: architecture `{said}` is not known."
            f"{arguments.offer(said, architectures())} docs/models.md lists them.{_own(values)}"
        )
    return said


def _own(values: Mapping[str, Any]) -> str:
    text = draft(values)
    return f" Were it a plain transformer, it is a model.yaml with `{text}`." if text else ""


def _known() -> str:
    return ", ".join(f"`{name}`" for name in architectures())
