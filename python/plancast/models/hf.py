"""Transformers from Hugging Face configurations; no weights are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from plancast import files
from plancast.errors import InputError
from plancast.models.fields import Fields, did_you_mean

# Activations that cost the same are one; gated and not gated differ by family.
_ACTIVATIONS = {
    "silu": "swiglu",
    "swish": "swiglu",
    "gelu": "gelu",
    "gelu_new": "gelu",
    "gelu_fast": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "relu": "relu",
}


def config_from_hf(source: str | Path | Mapping[str, Any]) -> dict[str, Any]:
    """Fields for `Model.from_config` from a config.json, its folder, or its parsed contents.

    >>> config_from_hf({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12,
    ...                 "n_positions": 1024, "vocab_size": 50257})["ffn"]
    3072
    """
    if isinstance(source, Mapping):
        return config(source, what="the configuration")
    path = Path(source)
    if path.is_dir():
        path = path / "config.json"
    return config(files.read_mapping(path), what=f"`{path}`")


def architectures() -> list[str]:
    """The values of `model_type` that can be read."""
    return sorted(_READERS)


def config(values: Mapping[str, Any], *, what: str) -> dict[str, Any]:
    """Fields for `Model.from_config` from a parsed config.json; `what` names it in errors."""
    if not isinstance(values, Mapping):
        raise InputError(f"{what} must hold `key: value` pairs and is a {type(values).__name__}.")
    fields = Fields(values, what)
    model_type = _model_type(values, fields)
    result = {"name": _name(fields, model_type), **_READERS[model_type](fields)}
    heads, kv_heads = result["heads"], result.get("kv_heads", result["heads"])
    if heads % kv_heads:
        raise InputError(f"{what}: the {heads} heads are not divisible by the {kv_heads} kv heads.")
    if "head_dim" not in result and result["hidden"] % heads:
        raise InputError(
            f"{what}: hidden size {result['hidden']} is not divisible by {heads} heads, "
            "and there is no `head_dim`."
        )
    return result


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
        stem = first.removesuffix("ForCausalLM").removesuffix("LMHeadModel").removesuffix("Model")
        said = by_class.get(stem.lower(), first)
    if said not in _READERS:
        hint = did_you_mean(said, architectures())
        raise InputError(
            f"{fields.what}: architecture `{said}` is not known; "
            f"the known ones are {_known()}.{hint}"
        )
    return said


def _known() -> str:
    return ", ".join(f"`{name}`" for name in architectures())


def _name(fields: Fields, model_type: str) -> str:
    """The released name, where the file tells it."""
    path = fields.word("_name_or_path", "").rstrip("/")
    return path.rsplit("/", 1)[-1] or model_type


def _activation(fields: Fields, key: str, default: str, *, gated: bool) -> str:
    word = fields.word(key, default)
    if word not in _ACTIVATIONS:
        known = ", ".join(f"`{name}`" for name in _ACTIVATIONS)
        raise InputError(
            f"{fields.what}: activation `{word}` is not known; the known ones are {known}."
            f"{did_you_mean(word, list(_ACTIVATIONS))}"
        )
    mlp = _ACTIVATIONS[word]
    if gated == (mlp == "swiglu"):
        return mlp
    if gated and mlp == "gelu":
        return "geglu"
    gate = "a gated" if gated else "an ungated"
    raise InputError(
        f"not supported yet: `{key}` = `{word}` in {gate} feed-forward layer in {fields.what}."
    )


def _llama(fields: Fields) -> dict[str, Any]:
    heads = fields.count("num_attention_heads")
    attention_bias = fields.flag("attention_bias", False)
    fields.only("mlp_bias", supported=False, default=False)
    result: dict[str, Any] = {
        "layers": fields.count("num_hidden_layers"),
        "hidden": fields.count("hidden_size"),
        "heads": heads,
        "kv_heads": fields.count("num_key_value_heads", heads),
        "ffn": fields.count("intermediate_size"),
        "vocab": fields.count("vocab_size"),
        "seq": fields.count("max_position_embeddings"),
        "mlp": _activation(fields, "hidden_act", "silu", gated=True),
        "norm": "rmsnorm",
        "position": "rope",
        "tied_embeddings": fields.flag("tie_word_embeddings", False),
        "qkv_bias": attention_bias,
        "out_bias": attention_bias,
        "mlp_bias": False,
    }
    head_dim = fields.count("head_dim", 0)
    if head_dim:
        result["head_dim"] = head_dim
    return result


def _within_window(fields: Fields, result: dict[str, Any]) -> dict[str, Any]:
    """Attention is simulated as full, which a sliding window is for sequences no longer than it."""
    result["seq"] = min(result["seq"], fields.count("sliding_window", result["seq"]))
    return result


def _mistral(fields: Fields) -> dict[str, Any]:
    return _within_window(fields, _llama(fields))


def _qwen2(fields: Fields) -> dict[str, Any]:
    result = {**_llama(fields), "qkv_bias": True, "out_bias": False}
    return _within_window(fields, result) if fields.flag("use_sliding_window", False) else result


def _qwen3(fields: Fields) -> dict[str, Any]:
    result = {"head_dim": 128, **_llama(fields), "qk_norm": True}
    return _within_window(fields, result) if fields.flag("use_sliding_window", False) else result


def _gpt2(fields: Fields) -> dict[str, Any]:
    hidden = fields.count("n_embd")
    positions = fields.count("n_positions")
    fields.only("add_cross_attention", supported=False, default=False)
    return {
        "layers": fields.count("n_layer"),
        "hidden": hidden,
        "heads": fields.count("n_head"),
        "ffn": fields.count("n_inner", 4 * hidden),
        "vocab": fields.count("vocab_size"),
        "seq": positions,
        "max_positions": positions,
        "mlp": _activation(fields, "activation_function", "gelu_new", gated=False),
        "norm": "layernorm",
        "position": "learned",
        "tied_embeddings": fields.flag("tie_word_embeddings", True),
        **_all_biases(True),
    }


def _gpt_neox(fields: Fields) -> dict[str, Any]:
    attention_bias = fields.flag("attention_bias", True)
    return {
        "layers": fields.count("num_hidden_layers"),
        "hidden": fields.count("hidden_size"),
        "heads": fields.count("num_attention_heads"),
        "ffn": fields.count("intermediate_size"),
        "vocab": fields.count("vocab_size"),
        "seq": fields.count("max_position_embeddings"),
        "mlp": _activation(fields, "hidden_act", "gelu", gated=False),
        "norm": "layernorm",
        "position": "rope",
        "tied_embeddings": fields.flag("tie_word_embeddings", False),
        "parallel_residual": fields.flag("use_parallel_residual", True),
        **_all_biases(True),
        "qkv_bias": attention_bias,
        "out_bias": attention_bias,
    }


def _opt(fields: Fields) -> dict[str, Any]:
    hidden = fields.count("hidden_size")
    positions = fields.count("max_position_embeddings")
    fields.only("word_embed_proj_dim", supported=hidden, default=hidden)
    fields.only("do_layer_norm_before", supported=True, default=True)
    fields.only("layer_norm_elementwise_affine", supported=True, default=True)
    return {
        "layers": fields.count("num_hidden_layers"),
        "hidden": hidden,
        "heads": fields.count("num_attention_heads"),
        "ffn": fields.count("ffn_dim"),
        "vocab": fields.count("vocab_size"),
        "seq": positions,
        # The first two rows of the table stand for padding.
        "max_positions": positions + 2,
        "mlp": _activation(fields, "activation_function", "relu", gated=False),
        "norm": "layernorm",
        "position": "learned",
        "tied_embeddings": fields.flag("tie_word_embeddings", True),
        **_all_biases(fields.flag("enable_bias", True)),
    }


def _all_biases(biases: bool) -> dict[str, bool]:
    return {"qkv_bias": biases, "out_bias": biases, "mlp_bias": biases}


_READERS: dict[str, Callable[[Fields], dict[str, Any]]] = {
    "gpt2": _gpt2,
    "gpt_neox": _gpt_neox,
    "llama": _llama,
    "mistral": _mistral,
    "opt": _opt,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
}
