"""Operators of layers: products, convolutions, norms, attention, losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plancast.importers import make
from plancast.importers.aten.reader import Op, Reader, handles
from plancast.importers.ir import Value
from plancast.importers.make_layers import convolution, norm


@handles("linear")
def _linear(reader: Reader, op: Op) -> Value:
    return make.linear(reader.graph, op["input"], op["weight"], op["bias"], **op.where)


@handles("matmul", "mm", "bmm")
def _matmul(reader: Reader, op: Op) -> Value:
    other = op["mat2"] if op["mat2"] is not None else op["other"]
    return make.matmul(reader.graph, op["self"], other, **op.where)


@handles("addmm", "baddbmm", "addbmm")
def _addmm(reader: Reader, op: Op) -> Value | None:
    if op.name == "addbmm":
        return None
    x = op["mat1"] if op["mat1"] is not None else op["batch1"]
    z = op["mat2"] if op["mat2"] is not None else op["batch2"]
    if op.name == "addmm" and len(op["self"].shape) == 1:
        weight = reader.graph.permute(z, 1, 0)
        return make.linear(reader.graph, x, weight, op["self"], **op.where)
    y = make.matmul(reader.graph, x, z, **op.where)
    if op["beta"] == 0 or op["self"].kind == "data":
        return y
    return make.elementwise(reader.graph, "add", y, op["self"], **op.where)


@handles("einsum")
def _einsum(reader: Reader, op: Op) -> Value | None:
    equation, values = op["equation"].replace(" ", ""), op["tensors"]
    if "." in equation or "->" not in equation or len(values) > 2:
        return None
    left, right = equation.split("->")
    terms = left.split(",")
    if any(len(set(term)) != len(term) for term in [*terms, right]):
        return None
    index = [",".join(f"f{letter}" for letter in term) for term in [*terms, right]]
    names = [f"x{number}" for number in range(len(terms))]
    product = " * ".join(f"{name}[{term}]" for name, term in zip(names, index, strict=False))
    how = "+=" if set(left) - set(right) - {","} else "="
    save = f" save {', '.join(names)}\n" if len(names) > 1 else ""
    text = f"einsum({', '.join(names)}) -> (y) {{\n y[{index[-1]}] {how} {product}\n{save}}}"
    return reader.graph.add(text, values, [op.shape], **op.where).output


def _pair(numbers: Any, rank: int) -> list[int]:
    listed = list(numbers) if isinstance(numbers, Sequence) else [numbers]
    if None in listed or not listed:
        listed = [1]
    return listed * rank if len(listed) == 1 else listed


@handles("conv1d", "conv2d", "conv3d", "convolution", "conv_transpose1d", "conv_transpose2d")
def _convolution(reader: Reader, op: Op) -> Value | None:
    x, w, bias = op["input"], op["weight"], op["bias"]
    rank = len(x.shape) - 2
    groups = op["groups"] or 1
    stride, dilation = _pair(op["stride"], rank), _pair(op["dilation"], rank)
    transposed = op.name.startswith("conv_transpose") or bool(op["transposed"])
    if op["padding"] == "same":
        pad = [(w.shape[2 + d] - 1) * dilation[d] // 2 for d in range(rank)]
    else:
        pad = [0] * rank if op["padding"] == "valid" else _pair(op["padding"] or 0, rank)
    return convolution(
        reader.graph, x, w, bias, op.shape, stride, dilation, pad, groups, transposed, **op.where
    )


@handles("layer_norm", "native_layer_norm")
def _layer_norm(reader: Reader, op: Op) -> Any:
    x, dims = op["input"], len(op["normalized_shape"])
    gamma, beta = op["weight"], op["bias"]
    if dims != 1:
        flat = reader.graph.reshape(x, *x.shape[:-dims], _product(x.shape[-dims:]))
        gamma = gamma and reader.graph.reshape(gamma, gamma.elements)
        beta = beta and reader.graph.reshape(beta, beta.elements)
        y = norm(reader.graph, "layer_norm_nd", flat, gamma, beta, **op.where)
        y = reader.graph.reshape(y, *x.shape)
    else:
        y = norm(reader.graph, "layer_norm_nd", x, gamma, beta, **op.where)
    return y if op.name == "layer_norm" else [y, None, None]


@handles("rms_norm", "_fused_rms_norm")
def _rms_norm(reader: Reader, op: Op) -> Any:
    y = norm(reader.graph, "rms_norm_nd", op["input"], op["weight"], None, **op.where)
    return y if op.name == "rms_norm" else [y, None]


@handles(
    "batch_norm", "native_batch_norm", "_native_batch_norm_legit_functional",
    "cudnn_batch_norm", "_batch_norm_with_update_functional", "_native_batch_norm_legit",
)  # fmt: skip
def _batch_norm(reader: Reader, op: Op) -> Any:
    x = op["input"]
    if op["weight"] is None:
        return None
    plan_dims = {"g": "replicas", "b": "replica_batch"}  # statistics of each replica's own
    node = reader.graph.add(
        "batch_norm_local",
        [x, op["weight"], op["bias"]],
        [x.shape],
        plan_dims=plan_dims,
        **op.where,
    )
    return node.output if op.name in ("batch_norm", "cudnn_batch_norm") else [node.output] * 5


@handles("group_norm")
def _group_norm(reader: Reader, op: Op) -> Value | None:
    x = op["input"]
    if op["weight"] is None:
        return None
    sizes = {"g": op["num_groups"], "c": x.shape[1] // op["num_groups"]}
    return reader.graph.add(
        "group_norm", [x, op["weight"], op["bias"]], [x.shape], sizes=sizes, **op.where
    ).output


@handles("embedding")
def _embedding(reader: Reader, op: Op) -> Value:
    ids, w = op["indices"], op["weight"]
    shape = (*ids.shape, w.shape[1])
    w.sparse = w.kind == "parameter" and bool(op["sparse"])
    return reader.graph.add("embedding_nd", [ids, w], [shape], **op.where).output


@handles("embedding_bag", "_embedding_bag")
def _embedding_bag(reader: Reader, op: Op) -> Any:
    ids, w, bags = op["indices"], op["weight"], op.shape[0]
    rule = {0: "embedding_bag", None: "embedding_bag", 1: "embedding_bag_mean"}.get(op["mode"])
    if rule is None or op["per_sample_weights"] is not None or ids.elements % bags:
        return None
    # Bags of one size, as a table; exporters hand over ids in one row and where bags begin.
    w.sparse = w.kind == "parameter" and bool(op["sparse"])
    table_ = Value((bags, ids.elements // bags), "int64", "data", "ids", batched=True)
    y = reader.graph.add(rule, [table_, w], [op.shape], **op.where).output
    return [y, None, None, None]


@handles("dropout", "dropout_", "native_dropout", "alpha_dropout", "feature_dropout")
def _dropout(reader: Reader, op: Op) -> Any:
    x = op["input"] if op["input"] is not None else op["self"]
    share = op["p"]
    if share and op["train"]:
        x = reader.graph.add("dropout_nd", [x], [x.shape], **op.where).output
    return [x, None] if op.name == "native_dropout" else x


@handles("softmax", "_softmax", "_safe_softmax")
def _softmax(reader: Reader, op: Op) -> Value:
    return make.softmax(reader.graph, op["self"], op["dim"], **op.where)


@handles("log_softmax", "_log_softmax")
def _log_softmax(reader: Reader, op: Op) -> Value:
    return make.softmax(reader.graph, op["self"], op["dim"], "log_softmax", **op.where)


@handles("gelu")
def _gelu(reader: Reader, op: Op) -> Value:
    rule = "gelu_tanh_nd" if op["approximate"] == "tanh" else "gelu_nd"
    return reader.graph.add(rule, [op["self"]], [op["self"].shape], **op.where).output


@handles("glu")
def _glu(reader: Reader, op: Op) -> Value:
    x = op["self"]
    dim = make.positive(-1 if op["dim"] is None else op["dim"], len(x.shape))
    half = x.shape[dim] // 2
    first, second = make.split(reader.graph, x, dim, [half, half], **op.where)
    gate = reader.graph.add("sigmoid_nd", [second], [second.shape], **op.where).output
    return make.elementwise(reader.graph, "multiply", first, gate, **op.where)


@handles("prelu")
def _prelu(reader: Reader, op: Op) -> Value | None:
    x, w = op["self"], op["weight"]
    if w.elements == 1:
        return reader.graph.add("leaky_relu", [x], [x.shape], **op.where).output
    return reader.graph.add("prelu", [x, w], [x.shape], **op.where).output


@handles("mean", "sum", "amax", "max", "logsumexp")
def _reduce(reader: Reader, op: Op) -> Value | None:
    kind = {"amax": "max"}.get(op.name, op.name)
    dims = op["dim"]
    if kind == "logsumexp" or (op.name == "max" and (dims is not None or op["other"] is not None)):
        return None
    listed = [] if dims is None else list(dims) if isinstance(dims, Sequence) else [dims]
    return make.reduce(reader.graph, kind, op["self"], listed, bool(op["keepdim"]), **op.where)


@handles("max_pool2d", "max_pool2d_with_indices", "avg_pool2d", "max_pool1d", "avg_pool1d")
def _pool(reader: Reader, op: Op) -> Any:
    x = op["self"]
    rank = len(x.shape) - 2
    window = _pair(op["kernel_size"], rank)
    stride = _pair(op["stride"], rank) if op["stride"] else window
    pad, dilation = _pair(op["padding"] or 0, rank), _pair(op["dilation"] or 1, rank)
    words = [f"stride={stride[0]}", f"pad={pad[0]}"]
    if rank == 2:
        words += [f"stride_w={stride[1]}", f"pad_w={pad[1]}"]
    if op.name.startswith("max"):
        words.append(f"dilation={dilation[0]}")
        if rank == 2:
            words.append(f"dilation_w={dilation[1]}")
    name = op.name.removesuffix("_with_indices")
    sizes = dict(zip("ku", window, strict=False))
    call = f"{name}({', '.join(words)})"
    y = reader.graph.add(call, [x], [op.shape], sizes=sizes, **op.where).output
    return [y, None] if op.name.endswith("indices") else y


@handles("adaptive_avg_pool2d", "_adaptive_avg_pool2d", "adaptive_avg_pool1d")
def _adaptive(reader: Reader, op: Op) -> Value | None:
    x = op["self"]
    if all(size == 1 for size in op.shape[2:]):
        y = reader.graph.add("global_avg_pool", [x], [x.shape[:2]], **op.where).output
        return reader.graph.reshape(y, *op.shape)
    if len(x.shape) != 4 or any(a % b for a, b in zip(x.shape[2:], op.shape[2:], strict=True)):
        return None
    sizes = {"k": x.shape[2] // op.shape[2], "u": x.shape[3] // op.shape[3]}
    return reader.graph.add("adaptive_avg_pool2d", [x], [op.shape], sizes=sizes, **op.where).output


@handles("upsample_nearest2d", "_upsample_nearest_exact2d")
def _upsample(reader: Reader, op: Op) -> Value | None:
    x = op["self"] if op["self"] is not None else op["input"]
    if any(b % a for a, b in zip(x.shape[2:], op.shape[2:], strict=True)):
        return None
    sizes = {"k": op.shape[2] // x.shape[2], "u": op.shape[3] // x.shape[3]}
    return reader.graph.add("upsample_nearest2d", [x], [op.shape], sizes=sizes, **op.where).output


@handles("scaled_dot_product_attention")
def _attention(reader: Reader, op: Op) -> Value:
    values = [op["query"], op["key"], op["value"]]
    mask = op["attn_mask"]
    if mask is not None:
        values.append(mask)
    return reader.graph.add(
        "sdpa", values, [op.shape], causal=bool(op["is_causal"]), **op.where
    ).output


@handles("cross_entropy_loss", "nll_loss", "nll_loss_nd", "nll_loss_forward")
def _cross_entropy(reader: Reader, op: Op) -> Value | None:
    x, target = op["self"], op["target"]
    if target.kind != "data" or len(target.shape) != len(x.shape) - 1:
        return None
    order = [0, *range(2, len(x.shape)), 1]
    x = reader.graph.permute(x, *order)
    rule = "cross_entropy" if op.name == "cross_entropy_loss" else "nll"
    # The mean of a handful of numbers is no node of its own.
    return reader.graph.add(rule, [x, target], [target.shape], label="loss", **op.where).output


@handles("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
def _squared(reader: Reader, op: Op) -> Value:
    return make.elementwise(reader.graph, "squared_error", op["self"], op["target"], **op.where)


@handles("binary_cross_entropy_with_logits", "binary_cross_entropy")
def _binary(reader: Reader, op: Op) -> Value:
    return make.elementwise(reader.graph, "binary_loss", op["self"], op["target"], **op.where)


@handles("masked_fill", "where")
def _masked(reader: Reader, op: Op) -> Value | None:
    if op.name == "masked_fill":
        return make.elementwise(reader.graph, "masked_fill", op["self"], op["mask"], **op.where)
    x, z, mask = op["self"], op["other"], op["condition"]
    if not isinstance(x, Value) or not isinstance(z, Value):
        kept = x if isinstance(x, Value) else z
        return make.elementwise(reader.graph, "masked_fill", kept, mask, **op.where)
    return make.elementwise(reader.graph, "select_where", mask, x, z, **op.where)


def _product(sizes: Sequence[int]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count
