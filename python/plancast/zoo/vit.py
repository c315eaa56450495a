"""Vision transformers (Dosovitskiy et al. 2020), as in torchvision and Hugging Face."""

from __future__ import annotations

from plancast.builder import GraphBuilder, Tensor
from plancast.errors import InputError
from plancast.zoo.images import ImageModule
from plancast.zoo.sequences import SequenceModule, add_heads, check_heads

# Positions of the image become a sequence of patches; a copy, since channels come first.
PATCHES = "patches(x) -> (y) { y[b,s,h] = x[b,h,i,j] where s == size(j) * i + j }"
# A learned vector in front of every sequence.
CLASS_TOKEN = """
class_token(x, param token) -> (y) {
  first[b,s,h] = token[u,h] where s == u
  rest[b,s,h] = x[b,j,h] where s == j + size(u)
  y[b,s,h] = first[b,s,h] + rest[b,s,h]
}
"""


def vit(
    name: str,
    *,
    image: int = 224,
    patch: int,
    layers: int,
    hidden: int,
    heads: int,
    ffn: int,
    classes: int = 1000,
    qkv_bias: bool = True,
) -> GraphBuilder:
    """A vision transformer that classifies square images.

    Args:
      name: the model's name.
      image: height and width of the pictures, pixels; a multiple of `patch`.
      patch: height and width of a patch, pixels.
      layers: encoder layers.
      hidden: width of the residual stream.
      heads: attention heads.
      ffn: width of the feed-forward layers.
      classes: classes that are told apart.
      qkv_bias: queries, keys and values have biases.
    """
    if image < patch or image % patch:
        raise InputError(f"`{name}`: images of {image} pixels are not made of patches of {patch}.")
    side = image // patch
    builder = GraphBuilder(
        name, hidden=hidden, ffn=ffn, patches=side**2, seq=side**2 + 1, one=1, classes=classes
    )
    builder.dim("kv_seq", side**2 + 1)
    add_heads(builder, heads, check_heads(name, hidden, heads))
    _embedding(builder, image, patch)
    _layer(SequenceModule(builder, "layers", repeat=layers, in_list=True), qkv_bias)
    head = SequenceModule(builder, "head")
    x = head.layer_norm("norm", head.module.input("x", "batch", "seq", "hidden"))
    x = head.op("first", "select(index=0)", x, dims={"x.1": "seq"})
    weight, bias = (
        head.module.parameter("w", "classes", "hidden"),
        head.module.parameter("b", "classes"),
    )
    logits = head.op("classifier", "linear_bias_nd", x, weight, bias)
    label = head.module.data("label", "batch", dtype="int64")
    head.op("loss", "classification_loss", logits, label)
    return builder


def _embedding(builder: GraphBuilder, image: int, patch: int) -> None:
    layers = ImageModule(builder, "embedding")
    x = layers.conv(
        "patches",
        layers.image(image),
        builder.size("hidden"),
        patch,
        stride=patch,
        pad=0,
        bias=True,
    )
    x = layers.op("sequence", PATCHES, x, dims={"s": "patches", "h": "hidden"})
    token = layers.module.parameter("class_token", "one", "hidden")
    x = layers.op("prepend", CLASS_TOKEN, x, token, dims={"s": "seq"})
    positions = layers.module.parameter("positions", "seq", "hidden")
    x = layers.op("add_positions", "position_embedding", x, positions)
    layers.output(x)


def _layer(layer: SequenceModule, qkv_bias: bool) -> None:
    x = layer.module.input("x", "batch", "seq", "hidden")
    q, k, v = layer.qkv("attn.qkv", layer.layer_norm("attn.norm", x), bias=qkv_bias)
    y = layer.op(
        "attn.core",
        "attention_full",
        q,
        k,
        v,
        dims={"t": "kv_seq"},
        recompute_group="core_attention",
    )
    x = layer.op("attn.residual", "residual_add", layer.project("attn.proj", y, bias=True), x)
    y = _mlp(layer, layer.layer_norm("mlp.norm", x))
    layer.module.output(layer.op("mlp.residual", "residual_add", y, x))


def _mlp(layer: SequenceModule, x: Tensor) -> Tensor:
    x = layer.linear("mlp.fc1", x, "ffn", bias=True)
    return layer.linear("mlp.fc2", layer.op("mlp.act", "gelu", x), "hidden", bias=True)
