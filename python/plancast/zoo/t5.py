"""T5 (Raffel et al. 2019) and its version 1.1, on which Flan-T5 builds, as Hugging Face has them.

An encoder and a decoder. The encoder's result and the relative position bias, which the
layers of one side share, go through the ports of every layer that reads them.
"""

from __future__ import annotations

from plancast.builder import GraphBuilder, Tensor
from plancast.zoo.sequences import CORE, SequenceModule, add_heads

# One value for every head and distance (in buckets), which all layers of a side add to
# their scores; the mask of padding, and of the future in the decoder, is added once.
_RELATIVE_BIAS = """
relative_bias(bucket:i64, mask, param w) -> (y) {
  bias[g,s,t] += w[v,g] * [v == bucket[s,t]]
  y[b,g,r,s,t] = bias[g,s,t] + mask[b,t]
  save bucket
}
"""


def t5(
    name: str,
    *,
    seq: int = 512,
    target_seq: int = 114,
    layers: int,
    decoder_layers: int | None = None,
    hidden: int,
    heads: int,
    head_dim: int,
    ffn: int,
    vocab: int = 32128,
    buckets: int = 32,
    gated: bool = False,
    tied: bool = True,
) -> GraphBuilder:
    """A T5.

    Args:
      name: the model's name.
      seq: tokens that the encoder reads.
      target_seq: tokens that the decoder writes; 114 for 512, as in its pre-training.
      layers: layers of the encoder.
      decoder_layers: layers of the decoder; as many by default.
      hidden: width of the residual stream.
      heads: attention heads.
      head_dim: size of a head; heads need not fill the stream.
      ffn: width of the feed-forward layers, of one half where gated.
      vocab: tokens of the vocabulary.
      buckets: distances that the position bias tells apart.
      gated: feed-forward layers with a gated gelu (version 1.1), else with a relu.
      tied: the logits use the embedding (version 1.0).
    """
    builder = GraphBuilder(
        name, hidden=hidden, ffn=ffn, vocab=vocab, buckets=buckets, seq=seq, kv_seq=seq
    )
    builder.dim("target_seq", target_seq)
    builder.dim("target_kv_seq", target_seq)
    add_heads(builder, heads, head_dim)
    encoder = SequenceModule(builder, "encoder.embedding")
    x = _tokens(encoder, "seq")
    encoder.module.output(x, _bias(encoder, "seq", "kv_seq"))
    layer = SequenceModule(builder, "encoder.layers", repeat=layers, in_list=True)
    x, bias = _stream(layer, "seq"), _bias_port(layer, "seq", "kv_seq")
    x = _feed_forward(layer, _self_attention(layer, x, bias, "kv_seq"), gated)
    layer.module.output(x, bias)
    final = SequenceModule(builder, "encoder.final")
    x = _stream(final, "seq")
    _bias_port(final, "seq", "kv_seq")
    final.module.output(_dropout(final, "dropout", final.rms_norm("norm", x)))
    _decoder(builder, layers if decoder_layers is None else decoder_layers, gated)
    builder.tie("encoder.embedding.w", "decoder.embedding.w")
    if tied:
        builder.tie("encoder.embedding.w", "head.w")
    return builder


def _decoder(builder: GraphBuilder, layers: int, gated: bool) -> None:
    embedding = SequenceModule(builder, "decoder.embedding")
    memory = _stream(embedding, "seq", "memory")
    y = _tokens(embedding, "target_seq")
    embedding.module.output(y, _bias(embedding, "target_seq", "target_kv_seq"), memory)
    layer = SequenceModule(builder, "decoder.layers", repeat=layers, in_list=True)
    y, bias = _stream(layer, "target_seq"), _bias_port(layer, "target_seq", "target_kv_seq")
    memory = _stream(layer, "seq", "memory")
    y = _self_attention(layer, y, bias, "target_kv_seq")
    y = _feed_forward(layer, _cross_attention(layer, y, memory), gated)
    layer.module.output(y, bias, memory)
    head = SequenceModule(builder, "head")
    y = _stream(head, "target_seq")
    _bias_port(head, "target_seq", "target_kv_seq")
    _stream(head, "seq", "memory")
    y = _dropout(head, "dropout", head.rms_norm("norm", y))
    logits = head.op("logits", "linear", y, head.module.parameter("w", "vocab", "hidden"))
    label = head.module.data("label", "batch", "target_seq", dtype="int64")
    head.op("loss", "cross_entropy", logits, label)


def _tokens(module: SequenceModule, seq: str) -> Tensor:
    ids = module.module.data("ids", "batch", seq, dtype="int64")
    x = module.op("tokens", "embedding", ids, module.module.parameter("w", "vocab", "hidden"))
    return _dropout(module, "dropout", x)


def _bias(module: SequenceModule, queries: str, keys: str) -> Tensor:
    bucket = module.module.data("bucket", queries, keys, dtype="int64")
    mask = module.module.data("mask", "batch", keys)
    weight = module.module.parameter("relative_bias.w", "buckets", "kv_heads")
    return module.op(
        "relative_bias", _RELATIVE_BIAS, bucket, mask, weight, dims={"r": "heads_per_kv"}
    )


def _stream(module: SequenceModule, seq: str, name: str = "x") -> Tensor:
    return module.module.input(name, "batch", seq, "hidden")


def _bias_port(module: SequenceModule, queries: str, keys: str) -> Tensor:
    return module.module.input("bias", "batch", "kv_heads", "heads_per_kv", queries, keys)


def _dropout(module: SequenceModule, name: str, x: Tensor) -> Tensor:
    return module.op(name, "dropout", x)


def _self_attention(layer: SequenceModule, x: Tensor, bias: Tensor, keys: str) -> Tensor:
    q, k, v = layer.qkv("attn.qkv", layer.rms_norm("attn.norm", x))
    scores = layer.op("attn.scores", "scores", q, k, dims={"t": keys}, recompute_group=CORE)
    scores = layer.op("attn.add_bias", "add", scores, bias, recompute_group=CORE)
    return _attend(layer, "attn", x, scores, v, keys)


def _cross_attention(layer: SequenceModule, x: Tensor, memory: Tensor) -> Tensor:
    """Queries from the decoder, keys and values from what the encoder gives."""
    normed = layer.rms_norm("cross.norm", x)
    heads = ("kv_heads", "heads_per_kv", "head_dim")
    query = layer.module.parameter("cross.q.w", *heads, "hidden")
    q = layer.op("cross.q", _QUERIES, normed, query)
    weights = [layer.module.parameter(f"cross.kv.w{w}", heads[0], heads[2], "hidden") for w in "kv"]
    k, v = layer.module.op("cross.kv", _KEYS_AND_VALUES, memory, *weights)
    scores = layer.op("cross.scores", "scores", q, k, dims={"t": "kv_seq"}, recompute_group=CORE)
    return _attend(layer, "cross", x, scores, v, "kv_seq")


def _attend(
    layer: SequenceModule, path: str, x: Tensor, scores: Tensor, v: Tensor, keys: str
) -> Tensor:
    p = layer.op(f"{path}.softmax", "softmax", scores, recompute_group=CORE)
    p = layer.op(f"{path}.dropout", "attention_dropout", p, recompute_group=CORE)
    o = layer.op(f"{path}.context", "context", p, v, dims={"t": keys}, recompute_group=CORE)
    y = layer.project(f"{path}.proj", layer.op(f"{path}.merge_heads", "merge_heads", o))
    y = layer.op(f"{path}.proj_dropout", "dropout", y, fusion="bias_dropout_add")
    return layer.op(f"{path}.residual", "residual_add", y, x, fusion="bias_dropout_add")


def _feed_forward(layer: SequenceModule, x: Tensor, gated: bool) -> Tensor:
    y = layer.rms_norm("mlp.norm", x)
    if gated:
        weights = [layer.module.parameter(f"mlp.{w}", "ffn", "hidden") for w in ("wg", "wu")]
        gate, up = layer.module.op("mlp.fc1", "gated_linear", y, *weights)
        y = layer.op("mlp.act", "geglu", gate, up)
    else:
        y = layer.op("mlp.act", "relu", layer.linear("mlp.fc1", y, "ffn"))
    y = _dropout(layer, "mlp.dropout", y)
    y = layer.linear("mlp.fc2", y, "hidden")
    y = layer.op("mlp.fc2_dropout", "dropout", y, fusion="bias_dropout_add")
    return layer.op("mlp.residual", "residual_add", y, x, fusion="bias_dropout_add")


_QUERIES = """
queries(x, param w) -> (q) {
  q[b,s,g,r,d] += x[b,s,h] * w[g,r,d,h]
  save x, w
}
"""
_KEYS_AND_VALUES = """
keys_and_values(x, param wk, param wv) -> (k, v) {
  k[b,t,g,d] += x[b,t,h] * wk[g,d,h]
  v[b,t,g,e] += x[b,t,h] * wv[g,e,h]
  save x, wk, wv
}
"""
