"""Small models written by hand, each for something that presets lack or have in large."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import plancast as pc
from plancast.builder import GraphBuilder
from plancast.zoo.images import ImageModule

TRANSFORMERS = (
    "llama3-8b-l4", "gpt2", "mixtral-8x7b-l4", "deepseek-v2-lite-l4", "gpt-oss-20b-l6",
    "gemma3-1b-l6", "gpt-neox-20b-l4", "bert-base-l4", "qwen3-30b-a3b-l2",
)  # fmt: skip
_SIZES: dict[str, Any] = {
    "layers": 4, "hidden": 64, "heads": 4, "kv_heads": 2, "ffn": 192, "vocab": 480, "seq": 48,
}  # fmt: skip
_EXPERTS = {"experts": 4, "topk": 2, "moe_ffn": 96}
_TRANSFORMERS: dict[str, dict[str, Any]] = {
    "tiny-gpt": {"tied_embeddings": True},
    "tiny-llama": {"norm": "rmsnorm", "mlp": "swiglu", "position": "rope"},
    "tiny-parallel": {"parallel_residual": True, "layers": 6},
    "tiny-windows": {"window": 8, "window_pattern": "wwf", "layers": 7, "attention_sinks": True},
    "tiny-experts": {**_EXPERTS, "shared_experts": 1, "dense_layers": 1, "mlp": "swiglu"},
    "tiny-every-other": {**_EXPERTS, "moe_every": 2, "router_score": "sigmoid", "mlp": "swiglu"},
}


def _unet() -> pc.Model:
    """Skip connections inside of one module."""
    builder = GraphBuilder("unet", classes=12)
    net = ImageModule(builder, "net")
    x = net.image(32)
    skips = []
    for level in range(3):
        x = net.conv_norm_relu(f"down{level}", x, 8 << level, 3)
        skips.append(x)
        x = net.conv_norm_relu(f"step{level}", x, 8 << level, 3)
    for level in reversed(range(3)):
        x = net.conv_norm_relu(f"up{level}", x, 8 << level, 3)
        x = net.op(f"join{level}", "add", x, skips[level])
    net.classes(net.op("pool", "global_avg_pool", x))
    return pc.Model.from_graph(builder.graph())


def _two_lists() -> pc.Model:
    """Two lists of layers, a weight that the first and the last module share, no loss."""
    net = GraphBuilder("two-lists", seq=24, hidden=48, ffn=96, vocab=96)
    start = net.module("start")
    x = start.data("ids", "batch", "seq", dtype="int64")
    table = start.parameter("table", "vocab", "hidden")
    start.output(start.op("tokens", "embedding", x, table))
    for path, repeat in (("first", 3), ("second.layers", 4)):
        layer = net.module(path, repeat=repeat, in_list=True)
        x = layer.input("x", "batch", "seq", "hidden")
        y = layer.op("norm", "rms_norm", x, layer.parameter("gamma", "hidden"))
        y = layer.op("fc1", "linear", y, layer.parameter("w1", "ffn", "hidden"))
        y = layer.op("act", "gelu", y)
        y = layer.op("fc2", "linear", y, layer.parameter("w2", "hidden", "ffn"))
        layer.output(layer.op("residual", "residual_add", y, x))
    end = net.module("end")
    x = end.input("x", "batch", "seq", "hidden")
    end.output(end.op("logits", "linear", x, end.parameter("w", "vocab", "hidden")))
    net.tie("start.table", "end.w")
    return pc.Model.from_graph(net.graph())


def _wide_and_deep() -> pc.Model:
    """Two branches over one input in one module that is no list."""
    net = GraphBuilder("wide-and-deep", seq=12, features=64, hidden=96, classes=24)
    body = net.module("body")
    x = body.input("x", "batch", "seq", "features")
    wide = body.op("wide.fc", "linear", x, body.parameter("wide.w", "classes", "features"))
    y = body.op("deep.fc1", "linear", x, body.parameter("deep.w1", "hidden", "features"))
    y = body.op("deep.act", "gelu", y)
    y = body.op("deep.fc2", "linear", y, body.parameter("deep.w2", "classes", "hidden"))
    body.output(body.op("sum", "residual_add", wide, y))
    return pc.Model.from_graph(net.graph())


_BUILT: dict[str, Callable[[], pc.Model]] = {
    "small-unet": _unet,
    "small-two-lists": _two_lists,
    "small-wide-and-deep": _wide_and_deep,
}
ALL = (*_TRANSFORMERS, *_BUILT)
RANDOM = "random-graph-"


def _random_graph(name: str) -> pc.Model:
    """Lists of layers of random ops over random sizes; some residual, some with two branches."""
    rng = random.Random(name)
    sizes = {"seq": rng.choice((8, 24, 100)), "vocab": rng.choice((64, 97, 480))}
    sizes |= {"hidden": rng.choice((16, 48, 60)), "ffn": rng.choice((30, 64, 256))}
    net = GraphBuilder(name, **sizes)
    start = net.module("start")
    x = start.data("ids", "batch", "seq", dtype="int64")
    table = start.parameter("table", "vocab", "hidden")
    start.output(start.op("tokens", "embedding", x, table))
    for number in range(rng.randrange(1, 4)):
        layer = net.module(f"part{number}.layers", repeat=rng.randrange(1, 7), in_list=True)
        x = y = layer.input("x", "batch", "seq", "hidden")
        for at in range(rng.randrange(1, 6)):
            y = _random_step(rng, layer, f"s{at}", y)
        layer.output(layer.op("residual", "residual_add", y, x))
    end = net.module("end")
    x = end.input("x", "batch", "seq", "hidden")
    end.output(end.op("logits", "linear", x, end.parameter("w", "vocab", "hidden")))
    if rng.random() < 0.4:
        net.tie("start.table", "end.w")
    return pc.Model.from_graph(net.graph())


def _random_step(rng: random.Random, layer: Any, at: str, x: Any) -> Any:
    kind = rng.choice(("norm", "mlp", "act", "dropout", "branches"))
    if kind == "norm":
        return layer.op(f"{at}.norm", "rms_norm", x, layer.parameter(f"{at}.gamma", "hidden"))
    if kind == "act":
        return layer.op(f"{at}.act", rng.choice(("gelu", "relu", "silu")), x)
    if kind == "dropout":
        return layer.op(f"{at}.drop", "dropout", x)
    up = layer.parameter(f"{at}.up", "ffn", "hidden")
    down = layer.parameter(f"{at}.down", "hidden", "ffn")
    y = layer.op(f"{at}.fc2", "linear", layer.op(f"{at}.fc1", "linear", x, up), down)
    return y if kind == "mlp" else layer.op(f"{at}.sum", "residual_add", y, x)


def build(name: str) -> pc.Model:
    """One of `ALL`, or the random graph of a name that begins with `RANDOM`."""
    if name.startswith(RANDOM):
        return _random_graph(name)
    if name in _BUILT:
        return _BUILT[name]()
    return pc.Model.from_config(name=name, **{**_SIZES, **_TRANSFORMERS[name]})


@functools.cache
def model_of(name: str) -> pc.Model:
    """By name: by hand, a random graph, a file, or a preset (`NAME@SEQ`: of that length)."""
    if name in ALL or name.startswith(RANDOM):
        return build(name)
    if "/" in name:
        return pc.Model.open(name)
    name, _, seq = name.partition("@")
    return pc.Model.preset(name, seq=int(seq) if seq else 256 if name in TRANSFORMERS else None)
