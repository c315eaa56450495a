"""EfficientNet (Tan and Le 2019), as in torchvision."""

from __future__ import annotations

import math

from plancast.builder import GraphBuilder, Tensor
from plancast.zoo.images import ImageModule

# Expansion, window, stride, channels, blocks of each stage of the smallest net (table 1).
_STAGES = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)


def efficientnet(
    name: str, *, image: int, width: float, depth: float, classes: int = 1000
) -> GraphBuilder:
    """An EfficientNet for square images.

    Args:
      name: the model's name.
      image: height and width of the pictures, pixels.
      width: channels over those of the smallest.
      depth: blocks of a stage over those of the smallest.
      classes: classes that are told apart.
    """
    builder = GraphBuilder(name, classes=classes)
    stem = ImageModule(builder, "stem")
    x = _active(
        stem, "conv1", stem.conv("conv1", stem.image(image), _width(32, width), 3, stride=2)
    )
    stem.output(x)
    shape = stem.shape(x)
    for number, (expansion, window, stride, channels, blocks) in enumerate(_STAGES, start=1):
        wide, count = _width(channels, width), math.ceil(blocks * depth)
        first = ImageModule(builder, f"stage{number}.first", in_list=True)
        shape = _block(first, shape, wide, expansion, window, stride)
        if count > 1:
            rest = ImageModule(builder, f"stage{number}.rest", repeat=count - 1, in_list=True)
            shape = _block(rest, shape, wide, expansion, window, 1)
    head = ImageModule(builder, "head")
    x = head.conv("conv", head.input(*shape), 4 * shape[0])
    x = head.op("pool", "global_avg_pool", _active(head, "conv", x))
    head.classes(head.op("dropout", "dropout_nd", x))
    return builder


def _width(channels: int, factor: float) -> int:
    """The nearest multiple of 8, but no more than a tenth below."""
    wanted = channels * factor
    rounded = max(8, int(wanted + 4) // 8 * 8)
    return rounded if rounded >= 0.9 * wanted else rounded + 8


def _active(layers: ImageModule, name: str, x: Tensor) -> Tensor:
    x = layers.norm(f"{name}.norm", x, fusion="bn_silu")
    return layers.op(f"{name}.act", "silu_nd", x, fusion="bn_silu")


def _block(
    layers: ImageModule,
    shape: tuple[int, int, int],
    channels: int,
    expansion: int,
    window: int,
    stride: int,
) -> tuple[int, int, int]:
    """Expansion, a convolution of each channel, excitation, projection."""
    x = layers.input(*shape)
    y, inner = x, shape[0] * expansion
    if expansion > 1:
        y = _active(layers, "expand", layers.conv("expand", y, inner))
    y = _active(layers, "depthwise", layers.depthwise("depthwise", y, window, stride=stride))
    y = layers.excite("se", y, max(1, shape[0] // 4), "silu_nd")
    y = layers.norm("project.norm", layers.conv("project", y, channels))
    if stride == 1 and shape[0] == channels:
        y = layers.op("add", "add", layers.op("drop_path", "drop_path", y), x)
    layers.output(y)
    return layers.shape(y)
