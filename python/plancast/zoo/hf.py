"""Hugging Face configurations whose models the zoo builds; no weights are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from plancast.builder import GraphBuilder
from plancast.errors import InputError
from plancast.models.fields import Fields
from plancast.zoo import catalogue


def builder(values: Mapping[str, Any], *, what: str, name: str, seq: int | None) -> GraphBuilder:
    """The builder of a parsed config.json; `what` names it in errors.

    >>> values = {"model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12,
    ...           "num_attention_heads": 12, "intermediate_size": 3072, "num_labels": 1000}
    >>> vit = builder(values, what="the configuration", name="vit", seq=None)
    >>> vit.size("hidden"), len(vit.graph()["modules"])
    (768, 3)
    """
    fields = Fields(values, what)
    return _READERS[values["model_type"]](fields, values, name, seq)


def _t5(fields: Fields, _: Mapping[str, Any], name: str, seq: int | None) -> GraphBuilder:
    layers = fields.count("num_layers")
    # `gated-gelu`, or `relu`; other activations cost the same.
    activation = fields.word("feed_forward_proj", fields.word("dense_act_fn", "relu"))
    arguments: dict[str, Any] = {
        "layers": layers,
        "decoder_layers": fields.count("num_decoder_layers", layers),
        "hidden": fields.count("d_model"),
        "heads": fields.count("num_heads"),
        "head_dim": fields.count("d_kv"),
        "ffn": fields.count("d_ff"),
        "vocab": fields.count("vocab_size"),
        "buckets": fields.count("relative_attention_num_buckets", 32),
        "gated": activation.startswith("gated-"),
        "tied": fields.flag("tie_word_embeddings", True),
        "seq": seq or fields.count("n_positions", 512),
    }
    return catalogue.family("t5", name, **arguments)


def _vit(fields: Fields, values: Mapping[str, Any], name: str, seq: int | None) -> GraphBuilder:
    if seq is not None:
        raise InputError(f"{fields.what}: the sequence of a `vit` follows from its image size.")
    fields.only("num_channels", supported=3, default=3)
    labels = values.get("id2label")
    arguments: dict[str, Any] = {
        "image": fields.count("image_size", 224),
        "patch": fields.count("patch_size", 16),
        "layers": fields.count("num_hidden_layers"),
        "hidden": fields.count("hidden_size"),
        "heads": fields.count("num_attention_heads"),
        "ffn": fields.count("intermediate_size"),
        "classes": len(labels) if isinstance(labels, dict) else fields.count("num_labels", 2),
        "qkv_bias": fields.flag("qkv_bias", True),
    }
    return catalogue.family("vit", name, **arguments)


_READERS: dict[str, Callable[[Fields, Mapping[str, Any], str, int | None], GraphBuilder]] = {
    "mt5": _t5,
    "t5": _t5,
    "vit": _vit,
}
