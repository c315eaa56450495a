"""Parameters and multiplications of the zoo's models, as their publishers count them."""

from __future__ import annotations

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
TIMM = {"resnext101-32x4d": 44_177_704, "se-resnext101-32x4d": 48_955_416}


def multiply_adds(model: pc.Model) -> float:
    """Of one sample forward, from what a forecast counts (forward and backward are three)."""
    forecast = pc.predict(model, MACHINE, pc.Strategy.parse("dp=1,mb=1"), batch=1)
    return forecast.model_flops_per_s_per_gpu * forecast.iteration_time / 3 / 2


@pytest.mark.parametrize("name", TORCHVISION)
def test_sizes_are_those_of_torchvision(name):
    parameters, giga = TORCHVISION[name]
    model = pc.Model.preset(name)
    assert model.parameters == parameters
    assert round(multiply_adds(model) / 1e9, 2) == giga


@pytest.mark.parametrize("name", TIMM)
def test_parameters_are_those_of_timm(name):
    assert pc.Model.preset(name).parameters == TIMM[name]


def test_the_auxiliary_classifier_of_inception_is_extra():
    """torchvision: 27,161,264 parameters with it; 5.71e9 multiply-adds, counted without."""
    assert pc.Model.preset("inception-v3").parameters == 27_161_264
    plain = pc.Model.preset("inception-v3", auxiliary=False)
    # Two convolutions, their norms, the classifier.
    extra = 768 * 128 + 2 * 128 + 128 * 768 * 25 + 2 * 768 + 768 * 1000 + 1000
    assert plain.parameters == 27_161_264 - extra
    assert round(multiply_adds(plain) / 1e9, 2) == 5.71


def test_larger_images_change_work_and_not_parameters():
    small, large = pc.Model.preset("resnet50"), pc.Model.preset("resnet50", image=448)
    assert large.parameters == small.parameters
    head = 2048 * 1000
    assert multiply_adds(large) - head == pytest.approx(4 * (multiply_adds(small) - head))
