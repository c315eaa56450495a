"""GPT as Proteus's examples have it, written with the builder.

Learned positions, an attention mask that is data, a bias for each linear layer, no norm
before the logits, which read the token table. Ops have the names of Proteus's; its
reshapes, permutes and splits of heads are not needed here, but for one split.
"""

from __future__ import annotations

from plancast.builder import GraphBuilder, ModuleBuilder, Tensor

# Query, key and value of a head lie side by side in the rows of one weight.
_QKV = """
qkv(x, param w, param bias) -> (y) {
  a[b,s,g,c] += x[b,s,h] * w[g,c,h]
  y[b,s,g,c] = a[b,s,g,c] + bias[g,c]
  save x, w
}
"""
_SPLIT = """
split_heads(x) -> (q, k, v) {
  q[b,s,g,i] = x[b,s,g,c] where c == i
  k[b,s,g,j] = x[b,s,g,c] where c == j + size(i)
  v[b,s,g,l] = x[b,s,g,c] where c == l + size(i) + size(j)
}
"""
_SCORES = """
scores(q, k) -> (y) {
  y[b,g,s,t] += q[b,s,g,d] * k[b,t,g,d]
  save q, k
}
"""
_MASK = """
attention_mask(x, mask) -> (y) {
  y[b,g,s,t] = scale * x[b,g,s,t] + mask[b,g,s,t]
}
"""
_CONTEXT = """
context(p, v) -> (y) {
  y[b,s,g,d] += p[b,g,s,t] * v[b,t,g,d]
  save p, v
}
"""
_DENSE = """
dense(x, param w) -> (y) {
  y[b,s,n] += x[b,s,g,d] * w[n,g,d]
  save x, w
}
"""


def gpt(*, layers: int, seq: int, hidden: int, heads: int, vocab: int) -> GraphBuilder:
    """The graph; dims have the names that a short form of Megatron's splits."""
    net = GraphBuilder(
        "gpt",
        seq=seq,
        kv_seq=seq,
        positions=seq,
        hidden=hidden,
        ffn=4 * hidden,
        vocab=vocab,
        kv_heads=heads,
        head_dim=hidden // heads,
        qkv_of_head=3 * hidden // heads,
    )
    _embedding(net.module("embedding"))
    _layer(net.module("layers", repeat=layers))
    _head(net.module("head"))
    net.tie("embedding.table", "head.table")
    return net


def _embedding(module: ModuleBuilder) -> None:
    tokens = module.data("tokens", "batch", "seq", dtype="int64")
    positions = module.data("positions", "batch", "seq", dtype="int64")
    table = module.parameter("table", "vocab", "hidden")
    words = module.op("word_embeddings", "embedding", tokens, table)
    table = module.parameter("position_embeddings.weight", "positions", "hidden")
    x = module.op(
        "add", "add", words, module.op("position_embeddings", "embedding", positions, table)
    )
    module.output(module.op("dropout", "dropout_nd", x))


def _layer(module: ModuleBuilder) -> None:
    x = module.input("x", "batch", "seq", "hidden")
    y = _norm(module, "input_layernorm", x)
    y = module.op(
        "attention.qkv",
        _QKV,
        y,
        module.parameter("attention.qkv.weight", "kv_heads", "qkv_of_head", "hidden"),
        module.parameter("attention.qkv.bias", "kv_heads", "qkv_of_head"),
    )
    dims = {"i": "head_dim", "j": "head_dim", "l": "head_dim"}
    q, k, v = module.op("attention.split", _SPLIT, y, dims=dims)
    y = module.op("attention.scores", _SCORES, q, k, dims={"t": "kv_seq"})
    mask = module.data("mask", "batch", "kv_heads", "seq", "kv_seq")
    y = module.op("attention.scaled_attention_mask", _MASK, y, mask)
    y = module.op("attention.softmax", "softmax_nd", y)
    y = module.op("attention.attention_dropout", "dropout_nd", y)
    y = module.op("attention.context", _CONTEXT, y, v)
    weight = module.parameter("attention.dense.weight", "hidden", "kv_heads", "head_dim")
    y = _bias(module, "attention.dense", module.op("attention.dense", _DENSE, y, weight))
    y = module.op("attention.output_dropout", "dropout_nd", y)
    x = module.op("attention_add", "add", y, x)
    y = _norm(module, "post_attention_layernorm", x)
    weight = module.parameter("mlp.dense_h_to_4h.weight", "ffn", "hidden")
    bias = module.parameter("mlp.dense_h_to_4h.bias", "ffn")
    y = module.op("mlp.dense_h_to_4h", "linear_bias_nd", y, weight, bias)
    y = module.op("mlp.activation", "gelu_nd", y)
    weight = module.parameter("mlp.dense_4h_to_h.weight", "hidden", "ffn")
    y = _bias(module, "mlp.dense_4h_to_h", module.op("mlp.dense_4h_to_h", "linear_nd", y, weight))
    y = module.op("mlp.dropout", "dropout_nd", y)
    module.output(module.op("mlp_add", "add", y, x))


def _head(module: ModuleBuilder) -> None:
    x = module.input("x", "batch", "seq", "hidden")
    weight = module.parameter("table", "vocab", "hidden")
    logits = module.op("logits", "linear_nd", x, weight)
    labels = module.data("labels", "batch", "seq", dtype="int64")
    module.op("criterion", "cross_entropy", logits, labels)


def _norm(module: ModuleBuilder, name: str, x: Tensor) -> Tensor:
    scales = [module.parameter(f"{name}.{which}", "hidden") for which in ("weight", "bias")]
    return module.op(name, "layer_norm", x, *scales)


def _bias(module: ModuleBuilder, name: str, x: Tensor) -> Tensor:
    """The bias behind a row-parallel product: added once, to the sum."""
    return module.op(f"{name}.add_bias", "bias_add", x, module.parameter(f"{name}.bias", "hidden"))
