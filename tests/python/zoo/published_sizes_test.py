"""Parameters and multiplications of the zoo's models, as their publishers count them."""

from __future__ import annotations

from itertools import pairwise

import plancast as pc
import pytest

MACHINE = pc.Machine.preset("dgx-a100-80g:1x1")

# torchvision's documentation of its weights: parameters, and 1e9 multiply-adds of one image
# at the size that the preset takes. timm lists the two models that torchvision lacks.
TORCHVISION = {
    "alexnet": (61_100_840, 0.71),
    "resnet18": (11_689_512, 1.81),
    "resnet34": (21_797_672, 3.66),
    "resnet50": (25_557_032, 4.09),
    "resnet101": (44_549_160, 7.80),
    "resnet152": (60_192_808, 11.51),
    "resnext50-32x4d": (25_028_904, 4.23),
    "resnext101-32x8d": (88_791_336, 16.41),
    "vgg16": (138_357_544, 15.47),
    "vgg19": (143_667_240, 19.63),
}
VIT = {
    "vit-b-16": (86_567_656, 17.56),
    "vit-b-32": (88_224_232, 4.41),
    "vit-l-16": (304_326_632, 61.55),
}
# torchvision's, without the multiplications: those of depthwise convolutions are no matrix
# products, which alone are counted.
SEPARABLE = {"efficientnet-b0": 5_288_548, "efficientnet-b4": 19_341_616}
TIMM = {"resnext101-32x4d": 44_177_704, "se-resnext101-32x4d": 48_955_416}


# NVIDIA's examples: ResNet-50 up to its third stage, five maps behind it, and six pairs of 3 x 3
# convolutions with biases that read 4 or 6 boxes of 81 classes and four corners at each position.
SSD_CHANNELS = (1024, 512, 512, 256, 256, 256)
SSD_BETWEEN = (256, 256, 128, 128, 128)


def test_ssd_is_a_residual_net_with_maps_behind_it():
    resnet = TORCHVISION["resnet50"][0]
    last_stage = 14_964_736  # torchvision's layer4
    trunk = resnet - last_stage - (2048 * 1000 + 1000)
    maps = sum(
        before * between + 9 * between * after + 2 * (between + after)
        for before, after, between in zip(SSD_CHANNELS, SSD_CHANNELS[1:], SSD_BETWEEN, strict=False)
    )
    heads = sum(
        (9 * channels + 1) * boxes * (4 + 81)
        for channels, boxes in zip(SSD_CHANNELS, (4, 6, 6, 6, 4, 4), strict=True)
    )
    assert pc.Model.preset("ssd300").parameters == trunk + maps + heads


def multiply_adds(model: pc.Model) -> float:
    """Of one sample forward, from what a forecast counts (forward and backward are three)."""
    forecast = pc.predict(model, MACHINE, pc.Strategy.parse("dp=1,mb=1"), batch=1)
    return round(forecast.model_flops_per_s_per_gpu * forecast.iteration_time / 3 / 2, 3)


# Hugging Face: parameters of the released models.
T5 = {
    "t5-small": 60_506_624,
    "t5-base": 222_903_552,
    "t5-large": 737_668_096,
    "t5-3b": 2_851_598_336,
    "t5-11b": 11_307_321_344,
    "flan-t5-small": 76_961_152,
    "flan-t5-base": 247_577_856,
    "flan-t5-large": 783_150_080,
    "flan-t5-xl": 2_849_757_184,
    "flan-t5-xxl": 11_135_332_352,
}


@pytest.mark.parametrize("name", [*TORCHVISION, *VIT])
def test_sizes_are_those_of_torchvision(name):
    parameters, giga = {**TORCHVISION, **VIT}[name]
    model = pc.Model.preset(name)
    assert model.parameters == parameters
    assert round(multiply_adds(model) / 1e9, 2) == giga


@pytest.mark.parametrize("name", [*TIMM, *SEPARABLE])
def test_parameters_are_those_of_the_libraries(name):
    assert pc.Model.preset(name).parameters == {**TIMM, **SEPARABLE}[name]


def test_the_auxiliary_classifier_of_inception_is_extra():
    """torchvision: 27,161,264 parameters with it; 5.71e9 multiply-adds, counted without."""
    assert pc.Model.preset("inception-v3").parameters == 27_161_264
    plain = pc.Model.preset("inception-v3", auxiliary=False)
    # Two convolutions, their norms, the classifier.
    extra = 768 * 128 + 2 * 128 + 128 * 768 * 25 + 2 * 768 + 768 * 1000 + 1000
    assert plain.parameters == 27_161_264 - extra
    assert round(multiply_adds(plain) / 1e9, 2) == 5.71


@pytest.mark.parametrize("name", T5)
def test_parameters_are_those_of_hugging_face(name):
    assert pc.Model.preset(name).parameters == T5[name]


def test_parameters_of_llava_are_those_of_hugging_face_less_what_is_not_read():
    """llava-hf/llava-1.5-7b-hf: 7,063,427,072, with 64 tokens more in two tables, the encoder's
    last layer and the norm behind it. The other one by Llama's 8,030,261,248 and hand."""
    layer = 4 * (1024**2 + 1024) + 2 * 1024 * 4096 + 4096 + 1024 + 4 * 1024
    unread = layer + 2 * 1024
    assert pc.Model.preset("llava-1.5-7b").parameters == 7_063_427_072 - 2 * 64 * 4096 - unread
    patches = 14 * 14 * 3 * 1024 + 1024 + 577 * 1024 + 2 * 1024
    projector = 1024 * 4096 + 4096 + 4096**2 + 4096
    beside = patches + 23 * layer + projector
    assert pc.Model.preset("llava-llama3-8b").parameters == 8_030_261_248 + beside


def test_multiplications_of_t5_by_hand():
    """Projections, attention over its own side and over the encoder, feed-forward, logits."""
    model = pc.Model.preset("t5-small", seq=512, target_seq=114)
    s, t, h, ffn, vocab = 512, 114, 512, 2048, 32128
    encoder = s * (4 * h * h + 2 * h * ffn) + 2 * s * s * h
    decoder = t * (6 * h * h + 2 * h * ffn) + s * 2 * h * h + 2 * t * t * h + 2 * t * s * h
    assert multiply_adds(model) == pytest.approx(6 * encoder + 6 * decoder + t * h * vocab)


def test_the_recommender_has_the_tables_and_layers_of_mlperf():
    """187,767,399 rows of 128; layers 13-512-256-128 and 479-1024-1024-512-256-1."""
    bottom, top = (13, 512, 256, 128), (479, 1024, 1024, 512, 256, 1)
    layers = [*pairwise(bottom), *pairwise(top)]
    weights = sum(a * b + b for a, b in layers)
    model = pc.Model.preset("dlrm")
    assert model.parameters == 187_767_399 * 128 + weights
    assert multiply_adds(model) == sum(a * b for a, b in layers) + 27 * 27 * 128
    # NVIDIA's small one, of which the example's README says "~15 GB".
    small = pc.Model.preset("dlrm-small").parameters - weights
    assert small * 4 / 2**30 == pytest.approx(15.6, abs=0.01)


def test_parameters_of_collaborative_filtering():
    """Tables of 64 and 128 features for users and items, four linear layers."""
    layers = 256 * 256 + 256 + 256 * 128 + 128 + 128 * 64 + 64 + 128 + 1
    assert pc.Model.preset("ncf").parameters == (138_493 + 26_744) * 192 + layers


def test_wide_and_deep_has_the_tables_and_layers_of_nvidias_example():
    """13 tables of 128, 64 and 19 features and a weight a value; 1056-1024 five times-1."""
    values = [300_000, 250_000, 100_000, 5_000], [4_000, 4_000, 2_500, 2_500, 2_000, 1_000, 1_000]
    rows = sum(values[0]) * 128 + (sum(values[1]) + 300) * 64 + 4 * 19
    every = sum(values[0]) + sum(values[1]) + 304
    widths = list(pairwise((1056, 1024, 1024, 1024, 1024, 1024, 1)))
    model = pc.Model.preset("wide-and-deep")
    wide, deep = every + 13 + 1, rows + sum(a * b + b for a, b in widths)
    assert model.parameters == wide + deep
    assert multiply_adds(model) == 13 + sum(a * b for a, b in widths)


def test_larger_images_change_work_and_not_parameters():
    small, large = pc.Model.preset("resnet50"), pc.Model.preset("resnet50", image=448)
    assert large.parameters == small.parameters
    head = 2048 * 1000
    assert multiply_adds(large) - head == pytest.approx(4 * (multiply_adds(small) - head))
