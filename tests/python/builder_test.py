"""Models described op by op, with rules of the package and of the user."""

from __future__ import annotations

import plancast as pc
import pytest

MACHINE = pc.Machine.preset("dgx-a100-80g:1x4")


def mlp(layers=2, act="gelu"):
    builder = pc.Model.builder("mlp", seq=128, hidden=256, ffn=1024)
    layer = builder.module("layers", repeat=layers)
    x = layer.input("x", "batch", "seq", "hidden")
    h = layer.op("mlp.fc1", "linear", x, layer.parameter("w1", "ffn", "hidden"))
    h = layer.op("mlp.act", act, h)
    y = layer.op("mlp.fc2", "linear", h, layer.parameter("w2", "hidden", "ffn"))
    layer.output(y)
    return builder.build()


def test_parameters_are_counted():
    assert mlp().parameters == 2 * 2 * 256 * 1024


def test_a_hand_written_split_is_predicted():
    strategy = pc.Strategy.parse("dp=1,tp=4,mb=4")
    strategy["layers.*.mlp"].split(tp=["ffn"])
    forecast = pc.predict(mlp(), MACHINE, strategy, batch=4)
    assert forecast.iteration_time > 0
    assert sum(forecast.breakdown().values()) == pytest.approx(forecast.iteration_time)


def test_equal_models_are_equal():
    assert mlp() == mlp()
    assert mlp() != mlp(layers=3)


def test_a_rule_of_the_user_is_split_and_priced():
    rule = """
    scaled_product(a, param b, param c) -> (y) {
      y[i,j,n] += a[i,j,k] * b[n,k] * c[n]
      save a, b, c
    }
    """
    builder = pc.Model.builder("own", seq=64, hidden=128, out=256)
    module = builder.module("layers", repeat=1)
    x = module.input("x", "batch", "seq", "hidden")
    y = module.op(
        "mix", rule, x, module.parameter("b", "out", "hidden"), module.parameter("c", "out")
    )
    module.output(y)
    model = builder.build()
    assert model.parameters == 256 * 128 + 256
    strategy = pc.Strategy.parse("dp=1,tp=4,mb=1")
    strategy["layers.mix"].split(tp="out")
    forecast = pc.predict(model, MACHINE, strategy, batch=1)
    assert forecast.iteration_time > 0


def convolutions(batch_norm="batch_norm"):
    """Two 3x3 convolutions of 56 x 56 images, as in a ResNet block."""
    builder = pc.Model.builder("cnn", channels=64, height=56, width=56, window=3)
    block = builder.module("layers", repeat=2)
    y = x = block.input("x", "batch", "channels", "height", "width")
    for number in (1, 2):
        weight = block.parameter(f"w{number}", "channels", "channels", "window", "window")
        positions = {"i": "height", "j": "width", "n": "channels"}
        y = block.op(f"conv{number}", "conv2d(pad=1)", y, weight, dims=positions)
        if batch_norm:
            scales = [block.parameter(f"{name}{number}", "channels") for name in ("gamma", "beta")]
            groups = {"g": "replicas", "b": "replica_batch"} if "local" in batch_norm else {}
            y = block.op(f"bn{number}", batch_norm, y, *scales, dims=groups)
        y = block.op(f"relu{number}", "relu_nd", y)
    block.output(block.op("add", "add", y, x))
    return builder.build()


def test_a_convolutional_net_is_predicted():
    model = convolutions()
    assert model.parameters == 2 * 2 * (64 * 64 * 9 + 2 * 64)
    forecast = pc.predict(model, MACHINE, pc.Strategy.parse("dp=4,mb=8"), batch=32)
    assert forecast.iteration_time > 0


def test_local_statistics_are_not_reduced():
    strategy = pc.Strategy.parse("dp=4,mb=8")
    times = {}
    for rule in ("batch_norm", "batch_norm_local"):
        forecast = pc.predict(convolutions(rule), MACHINE, strategy, batch=32)
        times[rule] = forecast.iteration_time
    assert times["batch_norm_local"] < times["batch_norm"]


def test_a_spatial_split_exchanges_halos():
    model = convolutions(batch_norm=None)
    strategy = pc.Strategy.parse("dp=1,tp=4,mb=8")
    strategy["layers.*"].split(tp="height")
    times = {}
    for name, chosen in (("split", strategy), ("whole", pc.Strategy.parse("dp=1,tp=4,mb=8"))):
        forecast = pc.predict(model, MACHINE, chosen, batch=8)
        times[name] = forecast.breakdown()["compute"]
    assert times["split"] < times["whole"] / 2


def test_sizes_that_no_argument_has_are_named():
    builder = pc.Model.builder("cnn", channels=8, height=16, window=3)
    module = builder.module("layers")
    x = module.input("x", "batch", "channels", "height")
    weight = module.parameter("w", "channels", "channels", "window")
    with pytest.raises(pc.InputError, match="do not say the size of factor `i` of `conv1d`"):
        module.op("conv", "conv1d(pad=1)", x, weight)
    with pytest.raises(pc.InputError, match="no factor `z` in `conv1d`"):
        module.op("conv", "conv1d(pad=1)", x, weight, dims={"z": "height"})
    with pytest.raises(pc.InputError, match=r"no attribute `padding`.*Did you mean `pad`"):
        module.op("conv", "conv1d(padding=1)", x, weight, dims={"i": "height"})


def test_mistakes_name_the_op():
    builder = pc.Model.builder("wrong", seq=128, hidden=256, ffn=1024)
    layer = builder.module("layers")
    x = layer.input("x", "batch", "seq", "hidden")
    with pytest.raises(pc.InputError, match="no dim `ffm`"):
        layer.parameter("w", "ffm", "hidden")
    weight = layer.parameter("w", "ffn", "ffn")
    with pytest.raises(pc.InputError, match=r"`layers.fc1`.*takes 2 tensors"):
        layer.op("fc1", "linear", x)
    with pytest.raises(pc.InputError, match=r"`layers.fc1`.*`ffn` where an earlier.*`hidden`"):
        layer.op("fc1", "linear", x, weight)
    with pytest.raises(pc.InputError, match="Did you mean `linear`"):
        layer.op("fc1", "linaer", x, weight)
    with pytest.raises(pc.InputError, match=r"Sizes are whole and positive"):
        pc.Model.builder("wrong", seq=0)
    with pytest.raises(pc.InputError, match="two modules"):
        builder.module("layers")


@pytest.mark.parametrize("size", [-1, 1.5, "many", 10**30])
def test_sizes_nobody_can_mean(size):
    with pytest.raises(pc.InputError, match=r"Sizes are whole and positive|give a whole number"):
        pc.Model.builder("x", seq=size)


def test_dims_can_be_added_on_the_way():
    builder = pc.Model.builder("net", channels=8)
    assert builder.dim("height", 16) == "height"
    assert builder.dim("height", 16) == "height"
    assert builder.size("height") == 16
    assert builder.size("batch") == 0
    with pytest.raises(pc.InputError, match="`height` of `net` has size 16 already"):
        builder.dim("height", 32)
    with pytest.raises(pc.InputError, match="no dim `width`"):
        builder.size("width")


def test_two_names_of_one_size_stand_for_each_other():
    """The positions of the keys are a dim apart from those of the queries."""
    builder = pc.Model.builder("net", seq=16, kv_seq=16, other=8, heads=2, one=1, size=4)
    module = builder.module("m")
    q = module.input("q", "batch", "seq", "heads", "one", "size")
    k = module.input("k", "batch", "seq", "heads", "size")
    module.op("scores", "scores", q, k, dims={"t": "kv_seq"})
    with pytest.raises(pc.InputError, match="has `seq` where an earlier argument has `other`"):
        module.op("wrong", "scores", q, k, dims={"t": "other"})


def test_single_modules_may_be_shared_out_as_a_list():
    builder = pc.Model.builder("net", hidden=64, seq=8)
    for path in ("first", "second"):
        module = builder.module(path, in_list=path == "second")
        x = module.input("x", "batch", "seq", "hidden")
        weight = module.parameter("w", "hidden", "hidden")
        module.output(module.op("fc", "linear", x, weight))
    model = builder.build()
    assert model.layers == 1
    strategy = pc.Strategy.parse("dp=4,mb=1")
    strategy["second.*.fc"].recompute("full")
    assert pc.predict(model, MACHINE, strategy).breakdown()["recompute"] > 0


def test_element_types_have_the_names_of_rules():
    builder = pc.ModelBuilder("typed", seq=8, hidden=16)
    layer = builder.module("layers", repeat=2)
    x = layer.input("x", "batch", "seq", "hidden", dtype="f32")
    rule = "squash(x:f32) -> (y:f32) { y[b,s,h] = tanh(x[b,s,h]); save y }"
    layer.output(layer.op("squash", rule, x))
    assert builder.build().parameters == 0
    with pytest.raises(pc.InputError, match=r"`layers\.z` has no element type `float`"):
        layer.data("z", "batch", dtype="float")
