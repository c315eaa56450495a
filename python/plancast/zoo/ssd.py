"""SSD: detection in one pass (Liu et al. 2016), with a residual net before it.

As NVIDIA's examples build SSD300: ResNet-50 up to its third stage, which keeps its size, and
five more maps, each half as large as the one before or without its border.
"""

from __future__ import annotations

from collections.abc import Sequence

from plancast.builder import GraphBuilder, Tensor
from plancast.zoo.images import ImageModule
from plancast.zoo.resnet import Block, write_stem

# Channels between, channels, stride and border of the maps behind the first.
_MAPS = ((256, 512, 2, 1), (256, 512, 2, 1), (128, 256, 2, 1), (128, 256, 1, 0), (128, 256, 1, 0))
# Boxes at a position of each map.
_BOXES = (4, 6, 6, 6, 4, 4)
_CORNERS = 4


def ssd(
    name: str, *, image: int = 300, blocks: Sequence[int] = (3, 4, 6), classes: int = 81
) -> GraphBuilder:
    """A detector of boxes over six maps.

    The loss is taken map by map: cross-entropy over the classes of each box, and the error of its
    corners. Which boxes count (hard negatives) is not chosen.

    Args:
      name: the model's name.
      image: height and width of the pictures, pixels.
      blocks: blocks of the residual net's stages.
      classes: classes of a box, the background among them.
    """
    builder = GraphBuilder(name, classes=classes, corners=_CORNERS)
    shape = write_stem(builder, image)
    for stage, count in enumerate(blocks):
        planes = 64 * 2**stage
        block = Block(planes, planes * 4, True, 1, 0)
        # The last stage keeps the size of its images.
        stride = 2 if 0 < stage < len(blocks) - 1 else 1
        shape = block.write_stage(builder, f"layer{stage + 1}", shape, count, stride=stride)
    detector = ImageModule(builder, "detector")
    x = detector.input(*shape)
    for number, boxes in enumerate(_BOXES):
        if number > 0:
            between, channels, stride, border = _MAPS[number - 1]
            x = detector.conv_norm_relu(f"map{number}.conv1", x, between)
            x = detector.conv_norm_relu(
                f"map{number}.conv2", x, channels, 3, stride=stride, pad=border
            )
        _read(detector, number, x, boxes, classes)
    return builder


def _read(detector: ImageModule, number: int, x: Tensor, boxes: int, classes: int) -> None:
    """Classes and corners of the boxes at each position, and their losses."""
    builder, module = detector.builder, detector.module
    count = builder.dim(f"boxes{boxes}", boxes)
    height, width = x.dims[2:]
    scores = detector.conv(f"conf{number}", x, boxes * classes, 3, bias=True)
    scores = detector.op(
        f"conf{number}.boxes", "split_dim", scores, dims={"i": "classes", "j": count}
    )
    label = module.data(f"label{number}", "batch", count, height, width, dtype="int64")
    detector.op(f"conf{number}.loss", "pixel_loss", scores, label)
    corners = detector.conv(f"loc{number}", x, boxes * _CORNERS, 3, bias=True)
    corners = detector.op(
        f"loc{number}.boxes", "split_dim", corners, dims={"i": "corners", "j": count}
    )
    place = module.data(f"place{number}", "batch", "corners", count, height, width, dtype="fp32")
    detector.op(f"loc{number}.loss", "squared_error", corners, place)
