"""Plans over the zoo's graphs: by the short form, and split by hand."""

from __future__ import annotations

import random

import plancast as pc
import pytest
from plancast.zoo import catalogue

MACHINE = pc.Machine.preset("dgx-a100-80g:1x4")

# A small member of every family, in its own arguments.
SMALL = {
    "alexnet": {},
    "dlrm": {
        "vocabularies": [1000, 77, 3], "embedding_dim": 16, "dense": 13, "bottom": [32, 16],
        "top": [64, 32, 1],
    },
    "efficientnet": {"image": 64, "width": 0.5, "depth": 0.5},
    "inception_v3": {"image": 299},
    "llava": {
        "seq": 32, "image": 56, "patch": 14, "vision_layers": 2, "vision_hidden": 32,
        "vision_heads": 2, "vision_ffn": 64, "layers": 2, "hidden": 64, "heads": 4, "kv_heads": 2,
        "ffn": 128, "vocab": 512,
    },
    "ncf": {"users": 64, "items": 32, "factors": 8, "layers": [32, 16, 8]},
    "resnet": {"blocks": [2, 1, 2, 1], "image": 64, "groups": 4, "group_width": 16, "squeeze": 16},
    "ssd": {"image": 300, "blocks": [2, 1, 2], "classes": 5},
    "t5": {
        "layers": 2, "hidden": 64, "heads": 4, "head_dim": 16, "ffn": 128, "vocab": 512,
        "seq": 32, "target_seq": 16,
    },
    "vgg": {"stages": [1, 1, 2, 1, 1]},
    "wide_deep": {
        "vocabularies": [512, 64, 3], "embedding_dims": [32, 16, 19], "dense": 13,
        "layers": [64, 32],
    },
    "vit": {"patch": 16, "layers": 3, "hidden": 64, "heads": 4, "ffn": 256, "image": 64},
}  # fmt: skip


def model(family: str) -> pc.Model:
    return pc.Model.from_graph(catalogue.family(family, family, **SMALL[family]).graph())


def predict(model: pc.Model, strategy: pc.Strategy | str, **options) -> pc.Forecast:
    return pc.predict(model, MACHINE, strategy, **options)


@pytest.mark.parametrize("family", SMALL)
def test_data_parallel_is_a_word(family):
    """Four times the samples on four GPUs: the same kernels and an exchange of gradients."""
    one = pc.predict(model(family), pc.Machine.preset("dgx-a100-80g:1x1"), "dp=1,mb=4")
    four = predict(model(family), "dp=4,mb=4")
    assert four.breakdown()["compute"] == pytest.approx(one.breakdown()["compute"])
    assert four.iteration_time > one.iteration_time
    assert sum(four.breakdown().values()) == pytest.approx(four.iteration_time)


@pytest.mark.parametrize("family", SMALL)
def test_shortcuts_change_no_digit_of_random_plans(family):
    """Random splits of any dims that divide, pipelines and micro-batches."""
    chosen = random.Random(f"plans of {family}")
    net = model(family)
    divisible = [dim for dim, size in net.dims.items() if size == 0 or size % 2 == 0]
    done = 0
    for _ in range(6):
        pp, tp = chosen.choice([(1, 2), (2, 2), (1, 4), (2, 1)])
        strategy = pc.Strategy.parse(f"dp={4 // pp // tp},tp={tp},pp={pp},mb=4")
        for _ in range(chosen.randrange(3) if tp == 2 else 0):
            strategy["*"].split(tp=[chosen.choice(divisible) for _ in range(3)])
        batch = 4 * chosen.choice([2, 4]) * (4 // pp // tp)
        try:
            forecast = predict(net, strategy, batch=batch)
        except pc.InputError as error:  # a part of one element, a net of one module
            assert any(reason in str(error) for reason in ("more parts than", "more than the 1"))
            continue
        plain = predict(net, strategy, batch=batch, shortcuts=False)
        assert forecast.breakdown() == plain.breakdown()
        assert forecast.peak_memory == plain.peak_memory
        done += 1
    assert done >= 2


def heights(net: pc.Model) -> list[str]:
    return [dim for dim in net.dims if dim.startswith("height")]


def test_strips_of_an_image_exchange_their_borders():
    net = pc.Model.preset("resnet50", image=1024)
    whole = predict(net, "dp=1,tp=4,mb=1")
    strips = pc.Strategy.parse("dp=1,tp=4,mb=1")
    strips["*"].split(tp=heights(net))
    forecast = predict(net, strips)
    assert forecast.breakdown()["exposed_tp"] > 0
    assert forecast.breakdown()["compute"] < whole.breakdown()["compute"] / 2
    assert forecast.peak_memory < whole.peak_memory


@pytest.mark.parametrize("profile", ["ddp", "nvidia-pytorch", "megatron-core"])
def test_samples_are_split_over_any_axis_alike(profile):
    """Gradients are reduced in the same buckets, beside the same kernels."""
    net = pc.Model.preset("vgg19")
    by_hand = pc.Strategy.parse("dp=1,tp=4,mb=64,overlap=grad")
    by_hand["*"].split(tp="batch")
    hand = predict(net, by_hand, batch=64, profile=profile)
    words = predict(net, "dp=4,mb=16,overlap=grad", batch=64, profile=profile)
    # But for the norm of gradients, which ranks of tp agree on and the host waits for.
    assert hand.iteration_time == pytest.approx(words.iteration_time, rel=0.01)
    exposed = [forecast.breakdown()["exposed_dp"] for forecast in (hand, words)]
    assert exposed[0] == pytest.approx(exposed[1], abs=2e-4)
    assert hand.peak_memory == words.peak_memory


def test_blocks_keep_one_copy_of_what_they_hand_on():
    """ResNet-50: the result of a block is the input of the next, half precision, 256 images."""
    net = pc.Model.preset("resnet50")
    forecast = pc.predict(net, pc.Machine.preset("dgx-a100-80g:1x1"), "dp=1,mb=256", dtype="fp16")
    # Products' results (batch norms read them) and results of relus, of one image.
    stem = 2 * 64 * 112**2 + 64 * 56**2
    saved = stem
    for planes, blocks, size in ((64, 3, 56), (128, 4, 28), (256, 6, 14), (512, 3, 7)):
        area = size**2
        saved += blocks * 2 * (2 * planes + 4 * planes) * area + 4 * planes * area
        if planes > 64:  # the first product of the first block is before the stride
            saved += 2 * planes * 3 * area
    assert forecast.memory[0].activations == pytest.approx(saved * 256 * 2, rel=0.02)


def test_channels_are_split_like_a_linear_layer():
    """Output channels cut on four GPUs: a quarter of the weights each, results gathered."""
    net = pc.Model.preset("vgg19")
    strategy = pc.Strategy.parse("dp=1,tp=4,mb=8")
    strategy["head.fc1"].split(tp="hidden1")
    strategy["head.relu1"].split(tp="hidden1")
    strategy["head.dropout1"].split(tp="hidden1")
    strategy["head.fc2"].split(tp="hidden1")
    forecast = predict(net, strategy, cuda_graphs=True)  # else the host decides
    whole = predict(net, "dp=1,tp=4,mb=8", cuda_graphs=True)
    saved = 4096 * (512 * 7 * 7 + 1) + 4096 * 4096
    bytes_of_weights = [f.memory[0].parameters for f in (whole, forecast)]
    assert bytes_of_weights[0] - bytes_of_weights[1] == pytest.approx(2 * saved * 3 / 4, rel=1e-3)
    assert forecast.breakdown()["exposed_tp"] > 0


@pytest.mark.parametrize("by", ["rows", "columns"])
def test_tables_are_split_by_rows_or_columns(by):
    """Each GPU holds a part of every large table; the rows of all samples meet in an exchange."""
    net = pc.Model.preset("dlrm")
    strategy = pc.Strategy.parse("dp=1,tp=4,mb=4096")
    strategy["*"].split(tp="batch")
    large = [dim for dim, rows in net.dims.items() if dim.startswith("vocab") and rows > 1000]
    for dim in large:
        table = dim.replace("vocab_", "embedding.table")
        strategy[table].split(tp=dim if by == "rows" else "embedding_dim")
    forecast = predict(net, strategy)
    quarter = 187_767_399 * 128 * 2 / 4
    assert forecast.memory[0].parameters == pytest.approx(quarter, rel=1e-3)
    assert forecast.breakdown()["exposed_tp"] > 0


def test_cross_attention_feeds_the_encoder():
    """The gradient of the encoder's result is what all decoder layers give together."""
    forecast = predict(model("t5"), "dp=4,mb=4")
    # Without the gradient of the inputs, which have none, backward is two times forward.
    assert forecast.hfu == pytest.approx(forecast.mfu, rel=0.02)


def test_fused_batch_norm_and_channels_last_are_for_half_precision():
    """NVIDIA's MXNet fuses what its PyTorch example does not, and only in fp16."""
    net, seconds = pc.Model.preset("resnet50"), {}
    for profile in ("nvidia-mxnet", "nvidia-pytorch"):
        for dtype in ("fp16", "tf32"):
            forecast = predict(net, "dp=4,mb=128", profile=profile, dtype=dtype)
            seconds[profile, dtype] = forecast.breakdown()["compute"]
    assert seconds["nvidia-mxnet", "fp16"] < 0.95 * seconds["nvidia-pytorch", "fp16"]
    assert seconds["nvidia-mxnet", "tf32"] == pytest.approx(
        seconds["nvidia-pytorch", "tf32"], rel=1e-2
    )
