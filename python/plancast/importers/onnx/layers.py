"""Operators of ONNX that are layers: products, convolutions, norms, pooling."""

from __future__ import annotations

from typing import Any

from plancast.importers import make
from plancast.importers.ir import Value
from plancast.importers.make_layers import convolution, norm
from plancast.importers.onnx.reader import Op, Reader, handles


@handles("MatMul")
def _matmul(reader: Reader, op: Op) -> Value:
    return make.matmul(reader.graph, op[0], op[1], **op.where)


@handles("Gemm")
def _gemm(reader: Reader, op: Op) -> Value:
    graph, x, w = reader.graph, op[0], op[1]
    if op.number("transA"):
        x = graph.permute(x, 1, 0)
    if not op.number("transB"):
        w = graph.permute(w, 1, 0)
    bias = op[2]
    if bias is not None and len(bias.shape) == 1:
        return make.linear(graph, x, w, bias, **op.where)
    y = make.linear(graph, x, w, None, **op.where)
    return y if bias is None else make.elementwise(graph, "add", y, bias, **op.where)


@handles("Conv", "ConvTranspose")
def _conv(reader: Reader, op: Op) -> Value | None:
    x, w = op[0], op[1]
    rank = len(x.shape) - 2
    pads = op.numbers("pads") or [0] * 2 * rank
    if op.word("auto_pad") not in ("", "NOTSET", "VALID"):
        window = w.shape[2:]
        pads = [(size - 1) // 2 for size in window] * 2
    return convolution(
        reader.graph,
        x,
        w,
        op[2],
        op.shape,
        op.numbers("strides") or [1] * rank,
        op.numbers("dilations") or [1] * rank,
        pads[:rank],
        op.number("group", 1),
        op.name == "ConvTranspose",
        **op.where,
    )


@handles("LayerNormalization")
def _layer_norm(reader: Reader, op: Op) -> Value | None:
    x = op[0]
    if make.positive(op.number("axis", -1), len(x.shape)) != len(x.shape) - 1:
        return None
    return norm(reader.graph, "layer_norm_nd", x, op[1], op[2], **op.where)


@handles("SimplifiedLayerNormalization", "RMSNormalization")
def _rms_norm(reader: Reader, op: Op) -> Value:
    return norm(reader.graph, "rms_norm_nd", op[0], op[1], None, **op.where)


@handles("BatchNormalization")
def _batch_norm(reader: Reader, op: Op) -> Value:
    plan_dims = {"g": "replicas", "b": "replica_batch"}
    return reader.graph.add(
        "batch_norm_local", op.given[:3], [op.shape], plan_dims=plan_dims, **op.where
    ).output


@handles("InstanceNormalization")
def _instance_norm(reader: Reader, op: Op) -> Value:
    return reader.graph.add("instance_norm", op.given, [op.shape], **op.where).output


@handles("GroupNormalization")
def _group_norm(reader: Reader, op: Op) -> Value:
    groups = op.number("num_groups", 1)
    sizes = {"g": groups, "c": op[0].shape[1] // groups}
    return reader.graph.add("group_norm", op.given[:3], [op.shape], sizes=sizes, **op.where).output


@handles("Softmax", "LogSoftmax")
def _softmax(reader: Reader, op: Op) -> Value:
    rule = "log_softmax" if op.name == "LogSoftmax" else "softmax_nd"
    return make.softmax(reader.graph, op[0], op.number("axis", -1), rule, **op.where)


@handles("Gelu")
def _gelu(reader: Reader, op: Op) -> Value:
    rule = "gelu_tanh_nd" if op.word("approximate") == "tanh" else "gelu_nd"
    return reader.graph.add(rule, [op[0]], [op.shape], **op.where).output


@handles("PRelu")
def _prelu(reader: Reader, op: Op) -> Value:
    return reader.graph.add("leaky_relu", [op[0]], [op.shape], **op.where).output


@handles("Dropout")
def _dropout(reader: Reader, op: Op) -> Value:
    return reader.graph.add("dropout_nd", [op[0]], [op.shape], **op.where).output


@handles("ReduceMean", "ReduceSum", "ReduceMax", "GlobalAveragePool", "GlobalMaxPool")
def _reduce(reader: Reader, op: Op) -> Value:
    x = op[0]
    if op.name == "GlobalAveragePool":
        y = reader.graph.add("global_avg_pool", [x], [x.shape[:2]], **op.where).output
        return reader.graph.reshape(y, *op.shape)
    kind = {"ReduceMean": "mean", "ReduceSum": "sum"}.get(op.name, "max")
    given = reader.known.numbers(op[1].name) if op[1] is not None else op.numbers("axes")
    dims = (
        list(range(2, len(x.shape)))
        if op.name == "GlobalMaxPool"
        else [int(d) for d in given or []]
    )
    keep = op.name == "GlobalMaxPool" or bool(op.number("keepdims", 1))
    return make.reduce(reader.graph, kind, x, dims, keep, **op.where)


@handles("MaxPool", "AveragePool")
def _pool(reader: Reader, op: Op) -> Value | None:
    x = op[0]
    rank = len(x.shape) - 2
    window = op.numbers("kernel_shape")
    if rank not in (1, 2) or len(window) != rank:
        return None
    stride = op.numbers("strides") or [1] * rank
    pads = op.numbers("pads") or [0] * 2 * rank
    words = [f"stride={stride[0]}", f"pad={pads[0]}"]
    if rank == 2:
        words += [f"stride_w={stride[1]}", f"pad_w={pads[1]}"]
    name = f"{'max' if op.name == 'MaxPool' else 'avg'}_pool{rank}d"
    sizes = dict(zip("ku", window, strict=False))
    call = f"{name}({', '.join(words)})"
    return reader.graph.add(call, [x], [op.shape], sizes=sizes, **op.where).output


@handles("Attention")
def _attention(reader: Reader, op: Op) -> Value | None:
    q, k, v = op.inputs[:3]
    if q is None or k is None or v is None or len(q.shape) != 4:
        return None
    values = [q, k, v] + ([op[3]] if op[3] is not None else [])
    causal = bool(op.number("is_causal"))
    return reader.graph.add("sdpa", values, [op.shape], causal=causal, **op.where).output


@handles("SoftmaxCrossEntropyLoss")
def _cross_entropy(reader: Reader, op: Op) -> Any:
    x, target = op[0], op[1]
    order = [0, *range(2, len(x.shape)), 1]
    x = reader.graph.permute(x, *order)
    return reader.graph.add(
        "cross_entropy", [x, target], [target.shape], label="loss", **op.where
    ).output
