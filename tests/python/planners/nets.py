"""Small nets for the tests of planners."""

from __future__ import annotations

import random

import plancast as pc


def mlp(hidden: int, layers: int = 6) -> pc.Model:
    """Linear layers with bias and a relu between, each of its own dims."""
    net = pc.Model.builder("mlp", seq=1, **{f"h{i}": hidden for i in range(layers + 1)})
    module = net.module("net")
    x = module.data("x", "batch", "seq", "h0")
    for i in range(layers):
        w = module.parameter(f"w{i}", f"h{i + 1}", f"h{i}")
        x = module.op(f"fc{i}", "linear_bias", x, w, module.parameter(f"b{i}", f"h{i + 1}"))
        if i < layers - 1:
            x = module.op(f"relu{i}", "relu_nd", x)
    module.output(x)
    return net.build()


# Rules of two dims: the text, and which of the dims (batch, out, in) the weight has.
_PRODUCT = "product(x, param w) -> (y) {\n y[i,j] += x[i,k] * w[j,k]\n save x, w\n}"
_ROW = "scaled(x, param g) -> (y) {\n y[i,j] = x[i,j] * g[j]\n save x, g\n}"
_WAVE = "wave(x) -> (y) {\n y[i,j] = tanh(x[i,j])\n save y\n}"
_SUM = "plus(x, z) -> (y) { y[i,j] = x[i,j] + z[i,j] }"
_NORM = """norm(x) -> (y) {
  total[i]:f32 += x[i,j]
  y[i,j] = x[i,j] - total[i]
}"""


def random_net(
    rng: random.Random, ops: int, *, chain: bool = False, products: bool = False
) -> pc.Model:
    """Ops on matrices, each on a result of an op before it, most on the last one; of a chain all
    on the last one, and maybe only products.
    """
    net = pc.Model.builder("random")
    module = net.module("net")

    def dim(name: str) -> str:
        return net.dim(name, 2 ** rng.randint(3, 9))

    x = module.data("x", "batch", dim("d0"))
    made = [x]
    for i in range(ops):
        x = made[-1] if chain or rng.random() < 0.7 else rng.choice(made)
        kinds = ["product"] if products else ["product", "product", "wave", "row", "norm"]
        twins = [] if chain else [y for y in made if y.dims == x.dims and y is not x]
        kind = rng.choice(kinds + ["plus"] * len(twins))
        if kind == "product":
            out = dim(f"d{i + 1}")
            y = module.op(f"op{i}", _PRODUCT, x, module.parameter(f"w{i}", out, x.dims[1]))
        elif kind == "row":
            y = module.op(f"op{i}", _ROW, x, module.parameter(f"g{i}", x.dims[1]))
        elif kind == "plus":
            y = module.op(f"op{i}", _SUM, x, rng.choice(twins))
        else:
            y = module.op(f"op{i}", {"wave": _WAVE, "norm": _NORM}[kind], x)
        made.append(y)
    module.output(made[-1])
    return net.build()


def lstm_chain(hidden: int, steps: int) -> pc.Model:
    """One LSTM layer, unrolled: all steps share its weights."""
    net = pc.Model.builder("lstm", inner=hidden, hidden=hidden, gates=4)
    module = net.module("net")
    wx, wh = (module.parameter(w, "gates", "hidden", "inner") for w in ("wx", "wh"))
    biases = [module.parameter(b, "gates", "hidden") for b in ("bx", "bh")]
    h, c = module.data("h", "batch", "inner"), module.data("c", "batch", "hidden")
    for i in range(steps):
        x = module.data(f"x{i}", "batch", "inner")
        h, c = module.op(f"cell{i}", "lstm_cell", x, h, c, wx, wh, *biases)
    module.output(h)
    return net.build()


def wide_block(channels: int, size: int) -> pc.Model:
    """A residual block of two 3 x 3 convolutions over many channels (wide ResNet)."""
    net = pc.Model.builder("wide", channels=channels, middle=channels, height=size, width=size)
    window = net.dim("window", 3)
    module = net.module("block")
    x = module.data("x", "batch", "channels", "height", "width")
    y = x
    for i, (into, out) in enumerate((("channels", "middle"), ("middle", "channels"))):
        w = module.parameter(f"w{i}", out, into, window, window)
        y = module.op(f"conv{i}", "conv2d(pad=1)", y, w, dims={"i": "height", "j": "width"})
        y = module.op(f"relu{i}", "relu_nd", y)
    module.output(module.op("add", "add", y, x))
    return net.build()


def stack(layers: int) -> pc.Model:
    """A list of pairs of linear layers."""
    net = pc.Model.builder("stack", seq=8, hidden=64, ffn=256)
    layer = net.module("layers", repeat=layers)
    x = layer.input("x", "batch", "seq", "hidden")
    h = layer.op("mlp.fc1", "linear", x, layer.parameter("w1", "ffn", "hidden"))
    layer.output(layer.op("mlp.fc2", "linear", h, layer.parameter("w2", "hidden", "ffn")))
    return net.build()
