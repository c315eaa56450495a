"""LLaVA (Liu et al. 2023, arXiv 2310.03744): pictures and text read by one language model.

A vision transformer (CLIP's) makes a vector of each patch of a picture; two linear layers bring
them to the width of the language model, which reads them in front of the text. The two halves
share no dim but the batch, so that each is cut by words of its own: `vision_heads` of the
dims below are `vision_kv_heads`, `vision_ffn` is the width of the encoder's feed-forward layers.
"""

from __future__ import annotations

from plancast.builder import GraphBuilder, Tensor
from plancast.errors import InputError
from plancast.zoo.images import ImageModule
from plancast.zoo.sequences import SequenceModule, check_heads
from plancast.zoo.vit import CLASS_TOKEN, PATCHES

# The patches without the class token.
_FEATURES = "features(x) -> (y) { y[b,j,h] = x[b,s,h] where s == j + 1 }"
# Pictures before text.
_JOIN = """
join_sequences(image, text) -> (y) {
  first[b,s,h] = image[b,j,h] where s == j
  rest[b,s,h] = text[b,t,h] where s == t + size(j)
  y[b,s,h] = first[b,s,h] + rest[b,s,h]
}
"""
_HEADS = ("vision_kv_heads", "vision_heads_per_kv", "vision_head_dim")


def llava(
    name: str,
    *,
    seq: int = 2048,
    image: int = 336,
    patch: int,
    vision_layers: int,
    vision_hidden: int,
    vision_heads: int,
    vision_ffn: int,
    layers: int,
    hidden: int,
    heads: int,
    kv_heads: int,
    ffn: int,
    vocab: int,
) -> GraphBuilder:
    """A vision encoder, a projector and a language model.

    Args:
      name: the model's name.
      seq: tokens that the language model reads: one for each patch, and the text.
      image: height and width of the pictures, pixels; a multiple of `patch`.
      patch: height and width of a patch, pixels.
      vision_layers: layers of the encoder that are computed: LLaVA reads the last but one.
      vision_hidden: width of its residual stream.
      vision_heads: its attention heads.
      vision_ffn: width of its feed-forward layers.
      layers: layers of the language model.
      hidden: width of its residual stream.
      heads: its query heads.
      kv_heads: its key/value heads.
      ffn: width of one half of its gated feed-forward layers.
      vocab: tokens of the vocabulary.
    """
    if image < patch or image % patch:
        raise InputError(f"`{name}`: images of {image} pixels are not made of patches of {patch}.")
    patches = (image // patch) ** 2
    if seq <= patches:
        raise InputError(
            f"`{name}`: a sequence of {seq} tokens has no place for text behind the {patches} "
            f"patches of an image of {image} pixels. Take a longer one."
        )
    builder = GraphBuilder(name, hidden=hidden, ffn=ffn, vocab=vocab, seq=seq, kv_seq=seq)
    for dim, size in zip(
        ("kv_heads", "heads_per_kv", "head_dim"),
        (kv_heads, heads // kv_heads, check_heads(name, hidden, heads)),
        strict=True,
    ):
        builder.dim(dim, size)
    builder.dim("text", seq - patches)
    _vision_dims(builder, patches, vision_hidden, vision_heads, vision_ffn)
    _embed_images(builder, image, patch)
    _vision_layer(SequenceModule(builder, "vision.layers", repeat=vision_layers, in_list=True))
    _project(SequenceModule(builder, "projector"))
    _embed_text(SequenceModule(builder, "embedding"))
    _layer(SequenceModule(builder, "layers", repeat=layers, in_list=True))
    _head(SequenceModule(builder, "head"))
    return builder


def _vision_dims(builder: GraphBuilder, patches: int, hidden: int, heads: int, ffn: int) -> None:
    name = "the vision encoder"
    sizes = {"patches": patches, "vision_seq": patches + 1, "vision_kv_seq": patches + 1, "one": 1}
    sizes |= {"vision_hidden": hidden, "vision_ffn": ffn}
    sizes |= dict(zip(_HEADS, (heads, 1, check_heads(name, hidden, heads)), strict=True))
    for dim, size in sizes.items():
        builder.dim(dim, size)


def _embed_images(builder: GraphBuilder, image: int, patch: int) -> None:
    layers = ImageModule(builder, "vision.embedding")
    x = layers.image(image)
    x = layers.conv("patches", x, builder.size("vision_hidden"), patch, stride=patch, pad=0)
    x = layers.op("sequence", PATCHES, x, dims={"s": "patches", "h": "vision_hidden"})
    token = layers.module.parameter("class_token", "one", "vision_hidden")
    x = layers.op("prepend", CLASS_TOKEN, x, token, dims={"s": "vision_seq"})
    positions = layers.module.parameter("positions", "vision_seq", "vision_hidden")
    x = layers.op("add_positions", "position_embedding", x, positions)
    gamma, beta = (layers.module.parameter(f"norm.{w}", "vision_hidden") for w in ("gamma", "beta"))
    layers.output(layers.op("norm", "layer_norm", x, gamma, beta))


def _vision_layer(layer: SequenceModule) -> None:
    x = layer.module.input("x", "batch", "vision_seq", "vision_hidden")
    group, each, size = _HEADS
    parameter = layer.module.parameter
    weights = [
        parameter("attn.wq", group, each, size, "vision_hidden"),
        *(parameter(f"attn.w{which}", group, size, "vision_hidden") for which in "kv"),
        parameter("attn.bq", group, each, size),
        *(parameter(f"attn.b{which}", group, size) for which in "kv"),
    ]
    q, k, v = layer.module.op(
        "attn.qkv", "qkv_linear_bias", layer.layer_norm("attn.norm", x), *weights
    )
    keys = {"t": "vision_kv_seq"}
    y = layer.op(
        "attn.core", "attention_full", q, k, v, dims=keys, recompute_group="core_attention"
    )
    y = layer.op("attn.proj", "out_linear", y, parameter("attn.wo", "vision_hidden", *_HEADS))
    y = layer.op("attn.proj_bias", "bias_add", y, parameter("attn.bo", "vision_hidden"))
    x = layer.op("attn.residual", "residual_add", y, x)
    y = layer.linear("mlp.fc1", layer.layer_norm("mlp.norm", x), "vision_ffn", bias=True)
    y = layer.linear("mlp.fc2", layer.op("mlp.act", "gelu", y), "vision_hidden", bias=True)
    layer.module.output(layer.op("mlp.residual", "residual_add", y, x))


def _project(module: SequenceModule) -> None:
    x = module.module.input("x", "batch", "vision_seq", "vision_hidden")
    x = module.op("features", _FEATURES, x, dims={"j": "patches"})
    x = module.linear("fc1", x, "hidden", bias=True)
    x = module.op("act", "gelu", x)
    module.builder.dim("projected", module.builder.size("hidden"))
    module.module.output(_square(module, x))


def _square(module: SequenceModule, x: Tensor) -> Tensor:
    """A second layer of one width; its inputs have another name, as rules tell dims apart."""
    weight = module.module.parameter("fc2.w", "projected", "hidden")
    return module.op("fc2", "linear_bias", x, weight, module.module.parameter("fc2.b", "projected"))


def _embed_text(module: SequenceModule) -> None:
    image = module.module.input("image", "batch", "patches", "projected")
    ids = module.module.data("ids", "batch", "text", dtype="int64")
    text = module.op("tokens", "embedding", ids, module.module.parameter("w", "vocab", "hidden"))
    x = module.op("join", _JOIN, image, text, dims={"s": "seq", "h": "hidden"})
    module.module.output(x)


def _layer(layer: SequenceModule) -> None:
    x = layer.module.input("x", "batch", "seq", "hidden")
    q, k, v = layer.qkv("attn.qkv", layer.rms_norm("attn.norm", x))
    tables = [
        layer.module.data("rotary_cos", "seq", "head_dim", dtype="fp32"),
        layer.module.data("rotary_sin", "seq", "head_dim", dtype="fp32"),
        layer.module.data("rotary_pair", "head_dim", dtype="int64"),
    ]
    q = layer.op("attn.rotary_q", "rotary", q, *tables)
    k = layer.op("attn.rotary_k", "rotary_kv", k, *tables)
    y = layer.op(
        "attn.core", "attention", q, k, v, dims={"t": "kv_seq"}, recompute_group="core_attention"
    )
    x = layer.op("attn.residual", "residual_add", layer.project("attn.proj", y), x)
    y = layer.rms_norm("mlp.norm", x)
    weights = [layer.module.parameter(f"mlp.{w}", "ffn", "hidden") for w in ("wg", "wu")]
    gate, up = layer.module.op("mlp.fc1", "gated_linear", y, *weights)
    y = layer.linear("mlp.fc2", layer.op("mlp.act", "swiglu", gate, up), "hidden")
    layer.module.output(layer.op("mlp.residual", "residual_add", y, x))


def _head(head: SequenceModule) -> None:
    x = head.rms_norm("norm", head.module.input("x", "batch", "seq", "hidden"))
    logits = head.op("logits", "linear", x, head.module.parameter("w", "vocab", "hidden"))
    label = head.module.data("label", "batch", "seq", dtype="int64")
    head.op("loss", "cross_entropy", logits, label)
