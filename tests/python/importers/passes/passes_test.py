"""Composite ops that passes make of simple ones."""

from __future__ import annotations

from graphs import Sketch, ops
from plancast.importers import make


def rms_norm(s, x, gamma=True, plus_one=False):
    square = s.op("power", x, number=2)
    mean = make.reduce(s.graph, "mean", square, [-1], True)
    rstd = s.op("rsqrt_nd", s.op("shift", mean))
    y = make.elementwise(s.graph, "multiply", x, rstd)
    if not gamma:
        return y
    weight = s.parameter("gamma", x.shape[-1])
    if plus_one:
        weight = s.op("shift", weight)
    return make.elementwise(s.graph, "multiply", weight, y)


def test_rms_norm_written_out():
    s = Sketch()
    model = s.model(rms_norm(s, s.x))
    assert ops(model) == ["embedding_nd", "rms_norm_nd", "squared_error"]
    assert model.parameters == 64000 + 64


def test_rms_norm_without_weight_or_with_one_plus_it():
    s = Sketch()
    assert ops(s.model(rms_norm(s, s.x, gamma=False)))[1] == "rms_norm_plain"
    s = Sketch()
    assert ops(s.model(rms_norm(s, s.x, plus_one=True)))[1:-1] == ["rms_norm_nd"]


def test_layer_norm_written_out():
    s = Sketch()
    mean = make.reduce(s.graph, "mean", s.x, [-1], True)
    x = make.elementwise(s.graph, "subtract", s.x, mean)
    variance = make.reduce(s.graph, "mean", s.op("power", x, number=2), [-1], True)
    root = s.op("sqrt_nd", s.op("shift", variance))
    y = make.elementwise(s.graph, "divide", x, root)
    y = make.elementwise(s.graph, "multiply", y, s.parameter("gamma", 64))
    y = make.elementwise(s.graph, "add", y, s.parameter("beta", 64))
    assert ops(s.model(y))[1:-1] == ["layer_norm_nd"]


def rotated(s, x):
    """x * cos + rotate_half(x) * sin, as transformers write it."""
    cos, sin = s.data("cos", 1, 1, *x.shape[2:]), s.data("sin", 1, 1, *x.shape[2:])
    half = x.shape[-1] // 2
    first = make.slice_dim(s.graph, x, 3, 0, half)
    second = make.slice_dim(s.graph, x, 3, half, 2 * half)
    turned = make.concat(s.graph, [s.op("negate", second), first], 3)
    left = make.elementwise(s.graph, "multiply", x, cos)
    return make.elementwise(
        s.graph, "add", left, make.elementwise(s.graph, "multiply", turned, sin)
    )


def attention(s, x, *, heads=8, groups=8, rotary=False, bias=False, causal=True):
    width = 64 // heads
    q = s.heads(s.linear(x, "q", 64, bias), heads)
    k = s.heads(s.linear(x, "k", groups * width, bias), groups)
    v = s.heads(s.linear(x, "v", groups * width, bias), groups)
    if rotary:
        q, k = rotated(s, q), rotated(s, k)
    if groups < heads:
        k, v = repeated(s, k, heads // groups), repeated(s, v, heads // groups)
    y = s.op("sdpa", q, k, v, causal=causal)
    y = s.graph.reshape(s.graph.permute(y, 0, 2, 1, 3), 3, 16, 64)
    return s.linear(y, "o", 64)


def repeated(s, x, times):
    batch, heads, seq, width = x.shape
    thin = s.graph.reshape(x, batch, heads, 1, seq, width)
    wide = s.graph.view(thin, "expand", (batch, heads, times, seq, width))
    return s.graph.reshape(wide, batch, heads * times, seq, width)


def test_attention_has_one_projection():
    s = Sketch()
    model = s.model(attention(s, s.x))
    assert ops(model)[1:4] == ["qkv_linear", "attention", "linear_nd"]
    assert model.dims["kv_heads"] == 8
    assert model.dims["kv_seq"] == 16
    s = Sketch()
    assert ops(s.model(attention(s, s.x, bias=True, causal=False)))[1:3] == [
        "qkv_linear_bias",
        "attention_full",
    ]


def test_rotation_and_grouped_heads():
    s = Sketch()
    model = s.model(attention(s, s.x, heads=8, groups=2, rotary=True))
    assert ops(model)[1:6] == ["qkv_linear", "rotary_kv", "rotary_kv", "attention", "linear_nd"]
    assert (model.dims["kv_heads"], model.dims["heads_per_kv"]) == (2, 4)


def test_attention_written_out():
    s = Sketch()
    q, k, v = (s.heads(s.linear(s.x, name, 64), 4) for name in "qkv")
    scores = make.matmul(s.graph, q, s.graph.permute(k, 0, 1, 3, 2))
    scores = s.op("scale_nd", scores)
    mask = s.data("mask", 1, 1, 16, 16)
    scores = make.elementwise(s.graph, "add", scores, mask)
    y = make.matmul(s.graph, s.op("softmax_nd", scores), v)
    y = s.graph.reshape(s.graph.permute(y, 0, 2, 1, 3), 3, 16, 64)
    assert ops(s.model(y))[1:-1] == ["qkv_linear", "scores", "softmax", "context", "merge_heads"]


def test_capped_scores():
    s = Sketch()
    q, k, v = (s.heads(s.linear(s.x, name, 64), 4) for name in "qkv")
    scores = make.matmul(s.graph, q, s.graph.permute(k, 0, 1, 3, 2))
    scores = s.op("scale_nd", s.op("tanh_nd", s.op("scale_nd", scores)))
    y = make.matmul(s.graph, s.op("softmax_nd", scores), v)
    y = s.graph.reshape(s.graph.permute(y, 0, 2, 1, 3), 3, 16, 64)
    assert ops(s.model(y))[1:-1] == [
        "qkv_linear", "scores", "scores_softcap", "softmax", "context", "merge_heads",
    ]  # fmt: skip


def test_a_learned_bias_stays():
    s = Sketch()
    q, k, v = (s.heads(s.linear(s.x, name, 64), 4) for name in "qkv")
    bias = s.parameter("bias", 1, 4, 16, 16)
    y = s.op("sdpa", q, k, v, bias)
    y = s.graph.reshape(s.graph.permute(y, 0, 2, 1, 3), 3, 16, 64)
    assert ops(s.model(y))[1:-1] == [
        "qkv_linear", "scores", "add", "softmax", "context", "merge_heads",
    ]  # fmt: skip


def test_gated_layers():
    s = Sketch()
    gate, up = s.linear(s.x, "gate", 256), s.linear(s.x, "up", 256)
    y = make.elementwise(s.graph, "multiply", s.op("silu_nd", gate), up)
    model = s.model(s.linear(y, "down", 64))
    assert ops(model)[1:4] == ["gated_linear", "swiglu", "linear_nd"]
    assert model.dims["ffn"] == 256


def test_a_fused_weight_is_split():
    s = Sketch()
    wide = s.linear(s.x, "gate_up", 512)
    gate, up = make.split(s.graph, wide, 2, [256, 256])
    y = make.elementwise(s.graph, "multiply", s.op("silu_nd", gate), up)
    model = s.model(y)
    assert ops(model)[1:3] == ["gated_linear", "swiglu"]
    assert model.parameters == 64000 + 512 * 64


def test_a_fused_weight_of_three_is_split_through_views():
    s = Sketch()
    wide = s.graph.reshape(s.linear(s.x, "qkv", 192), 3, 16, 3, 4, 16)
    wide = s.graph.permute(wide, 2, 0, 3, 1, 4)
    q, k, v = (make.select(s.graph, wide, 0, index) for index in range(3))
    y = s.op("sdpa", q, k, v, causal=True)
    y = s.graph.reshape(s.graph.permute(y, 0, 2, 1, 3), 3, 16, 64)
    model = s.model(y)
    assert ops(model)[1:-1] == ["qkv_linear", "attention"]
    assert model.parameters == 64000 + 192 * 64


def test_activations_written_out():
    for core, rule in (("tanh_nd", "gelu_tanh_nd"), ("erf(x)", "gelu_nd")):
        s = Sketch()
        x = s.linear(s.x, "fc1", 256)
        inner = make.elementwise(s.graph, "add", x, s.op("scale_nd", s.op("power", x, number=3)))
        if core == "tanh_nd":
            curve = s.op("tanh_nd", s.op("scale_nd", inner))
        else:
            curve = make.formula(s.graph, "erf", "erf(x[...])", s.op("scale_nd", x))
        y = make.elementwise(s.graph, "multiply", s.op("scale_nd", x), s.op("shift", curve))
        assert ops(s.model(y))[2] == rule


def test_biases_wait_for_the_sum_over_ranks():
    s = Sketch()
    h = s.op("gelu_nd", s.linear(s.x, "fc1", 256, bias=True))
    y = make.elementwise(s.graph, "add", s.linear(h, "fc2", 64, bias=True), s.x)
    model = s.model(y)
    assert ops(model)[1:-1] == [
        "linear_nd", "bias_add", "gelu_nd", "linear_nd", "bias_add", "add",
    ]  # fmt: skip
    assert str(model).count("fusion=bias_gelu") == 2
    assert str(model).count("fusion=bias_dropout_add") == 2


def test_losses():
    s = Sketch()
    assert ops(s.model(s.linear(s.x, "head", 1000)))[-1] == "cross_entropy"
    s = Sketch()
    assert ops(s.model(s.x))[-1] == "squared_error"
