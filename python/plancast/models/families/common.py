"""What the readers of several architectures share.

A reader takes the fields of a config.json and gives those of `Model.from_config`.
Defaults are those of the classes in `transformers`, version 5.
"""

from __future__ import annotations

from typing import Any

from plancast import arguments
from plancast.errors import InputError
from plancast.models.fields import Fields

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
_LAYER_TYPES = {"sliding_attention": "w", "full_attention": "f"}


def activation(fields: Fields, key: str, default: str, *, gated: bool) -> str:
    """The `mlp` that an activation stands for."""
    word = fields.word(key, default)
    if word not in _ACTIVATIONS:
        raise InputError(
            f"{fields.what}: activation `{word}` is not known.{arguments.offer(word, _ACTIVATIONS)}"
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


def sizes(fields: Fields) -> dict[str, Any]:
    """The sizes by their usual names; as many key heads as heads where nothing is said."""
    heads = fields.count("num_attention_heads")
    return {
        "layers": fields.count("num_hidden_layers"),
        "hidden": fields.count("hidden_size"),
        "heads": heads,
        "kv_heads": fields.count("num_key_value_heads", heads),
        "ffn": fields.count("intermediate_size"),
        "vocab": fields.count("vocab_size"),
        "seq": fields.count("max_position_embeddings"),
    }


def llama_like(
    fields: Fields, *, mlp_bias: bool = False, act: str = "hidden_act", default_act: str = "silu"
) -> dict[str, Any]:
    """RMS norms, rotary positions, a gated feed-forward layer, biases only where said."""
    attention_bias = fields.flag("attention_bias", False)
    result: dict[str, Any] = {
        **sizes(fields),
        "mlp": activation(fields, act, default_act, gated=True),
        "norm": "rmsnorm",
        "position": "rope",
        "tied_embeddings": fields.flag("tie_word_embeddings", False),
        "qkv_bias": attention_bias,
        "out_bias": attention_bias,
        "mlp_bias": mlp_bias,
    }
    head_dim = fields.count("head_dim", 0)
    if head_dim:
        result["head_dim"] = head_dim
    return result


def scaled_rotation(fields: Fields) -> dict[str, Any]:
    """YaRN multiplies cosines and sines by a factor, unless the file says that it is 1.

    >>> scaled_rotation(Fields({"rope_scaling": {"rope_type": "yarn", "factor": 32}}, "the file"))
    {'rotary_scaled': True}
    """
    said = fields.mapping("rope_parameters") or fields.mapping("rope_scaling")
    yarn = said.get("rope_type", said.get("type")) == "yarn"
    scaled = yarn and said.get("attention_factor") != 1 and said.get("factor") != 1
    return {"rotary_scaled": True} if scaled else {}


def windows(fields: Fields, window: int | None, kinds: str) -> dict[str, Any]:
    """The fields of sliding windows.

    Args:
      window: positions that a windowed layer looks back; None: there is none.
      kinds: `w` or `f` for every layer, unless the file has `layer_types`.

    >>> windows(Fields({}, "the configuration"), 1024, "wwfwwf")
    {'window': 1024, 'window_pattern': 'wwf'}
    """
    said = fields.words("layer_types")
    if said:
        if len(said) != len(kinds):
            raise InputError(
                f"{fields.what}: `layer_types` has {len(said)} entries for {len(kinds)} layers."
            )
        for word in said:
            if word not in _LAYER_TYPES:
                known = ", ".join(f"`{name}`" for name in _LAYER_TYPES)
                raise InputError(
                    f"not supported yet: layers of type `{word}` in {fields.what}. "
                    f"Only {known} are simulated."
                )
        kinds = "".join(_LAYER_TYPES[word] for word in said)
    if window is None or "w" not in kinds:
        return {}
    pattern = next(
        kinds[:period]
        for period in range(1, len(kinds) + 1)
        if all(kind == kinds[i % period] for i, kind in enumerate(kinds))
    )
    return {"window": window} if pattern == "w" else {"window": window, "window_pattern": pattern}


def all_biases(biases: bool) -> dict[str, bool]:
    """Biases everywhere, or nowhere."""
    return {"qkv_bias": biases, "out_bias": biases, "mlp_bias": biases}
