"""Nodes of layers with several rules: convolutions and norms."""

from __future__ import annotations

from typing import Any

from plancast.importers.ir import Graph, Value


def convolution(
    graph: Graph,
    x: Value,
    w: Value,
    bias: Value | None,
    shape: tuple[int, ...],
    stride: list[int],
    dilation: list[int],
    pad: list[int],
    groups: int,
    transposed: bool,
    **where: Any,
) -> Value | None:
    """A convolution of one, two or three dims of positions; None if no rule says it."""
    rank = len(x.shape) - 2
    attributes = f"stride={stride[0]}, dilation={dilation[0]}, pad={pad[0]}"
    if rank == 2:
        attributes += f", stride_w={stride[1]}, dilation_w={dilation[1]}, pad_w={pad[1]}"
    elif rank == 3 and (len(set(stride)) > 1 or len(set(dilation)) > 1 or len(set(pad)) > 1):
        return None
    name = f"conv_transpose{rank}d" if transposed else f"conv{rank}d"
    sizes: dict[str, int] = {}
    if groups > 1:
        depthwise = groups == x.shape[1] == w.shape[0] and w.shape[1] == 1
        if depthwise and not transposed and rank in (1, 2):
            name += "_depthwise"
            w = graph.reshape(w, w.shape[0], *w.shape[2:])
        elif rank == 2 and not transposed:
            name += "_grouped"
            sizes = {"n": w.shape[0] // groups, "g": groups}
        else:
            return None
    elif rank == 3 and transposed:
        return None
    y = graph.add(f"{name}({attributes})", [x, w], [shape], sizes=sizes, **where).output
    if bias is not None:
        y = graph.add("channel_bias", [y, bias], [shape], label="bias", **where).output
    return y


_PLAIN = {
    "layer_norm_nd": """layer_norm_plain(x) -> (y) {
  total[...]:f32 += x[...,h]
  mean[...]:f32 = total[...] / size(h)
  squares[...]:f32 += (x[...,h] - mean[...]) * (x[...,h] - mean[...])
  rstd[...]:f32 = rsqrt(squares[...] / size(h) + eps)
  y[...,h] = (x[...,h] - mean[...]) * rstd[...]
  save x, mean, rstd
}""",
    "rms_norm_nd": """rms_norm_plain(x) -> (y) {
  squares[...]:f32 += x[...,h] * x[...,h]
  rstd[...]:f32 = rsqrt(squares[...] / size(h) + eps)
  y[...,h] = x[...,h] * rstd[...]
  save x, rstd
}""",
}


def norm(
    graph: Graph, rule: str, x: Value, gamma: Value | None, beta: Value | None, **where: Any
) -> Value:
    """Layer or RMS norm over the last dim, with the parameters it has."""
    if gamma is None:
        dims = ",".join(f"d{dim}" for dim in range(len(x.shape) - 1))
        plain = _PLAIN[rule].replace("...,", dims + "," if dims else "").replace("...", dims)
        return graph.add(plain, [x], [x.shape], roles={"h": "hidden"}, **where).output
    if rule == "layer_norm_nd" and beta is None:
        y = graph.add("rms_norm_nd", [x, gamma], [x.shape], **where)
        return y.output
    values = [x, gamma] if beta is None else [x, gamma, beta]
    return graph.add(rule, values, [x.shape], **where).output
