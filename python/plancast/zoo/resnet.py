"""Residual nets: He et al. 2015, ResNeXt (Xie et al. 2016), SE-ResNeXt (Hu et al. 2017).

As torchvision builds them: the stride of a block is in its 3x3 convolution (v1.5).
"""

from __future__ import annotations

from collections.abc import Sequence

from plancast.builder import GraphBuilder
from plancast.zoo.images import ImageModule


def resnet(
    name: str,
    *,
    image: int = 224,
    blocks: Sequence[int],
    bottleneck: bool = True,
    groups: int = 1,
    group_width: int = 64,
    squeeze: int = 0,
    classes: int = 1000,
) -> GraphBuilder:
    """A residual net for square images of `image` pixels.

    Args:
      name: the model's name.
      image: height and width of the pictures, pixels.
      blocks: blocks of each of the four stages.
      bottleneck: blocks of 1x1, 3x3, 1x1; else of two 3x3.
      groups: groups of the middle convolution (cardinality).
      group_width: channels of a group in the first stage.
      squeeze: squeeze-and-excitation with this reduction; 0: none.
      classes: classes that are told apart.
    """
    builder = GraphBuilder(name, classes=classes)
    shape = write_stem(builder, image)
    for stage, count in enumerate(blocks):
        planes = 64 * 2**stage
        middle = planes * group_width // 64 * groups if bottleneck else planes
        block = Block(middle, planes * (4 if bottleneck else 1), bottleneck, groups, squeeze)
        stride = 1 if stage == 0 else 2
        shape = block.write_stage(builder, f"layer{stage + 1}", shape, count, stride=stride)
    head = ImageModule(builder, "head")
    x = head.op("pool", "global_avg_pool", head.input(*shape))
    head.classes(x)
    return builder


def write_stem(builder: GraphBuilder, image: int) -> tuple[int, int, int]:
    """What comes before the blocks; gives the shape of its result."""
    stem = ImageModule(builder, "stem")
    x = stem.conv_norm_relu("conv1", stem.image(image), 64, 7, stride=2)
    x = stem.pool("pool", x, 3, stride=2, pad=1)
    stem.output(x)
    return stem.shape(x)


class Block:
    """One residual block, whatever its stride."""

    def __init__(
        self, middle: int, channels: int, bottleneck: bool, groups: int, squeeze: int
    ) -> None:
        self.middle, self.channels = middle, channels
        self.bottleneck, self.groups, self.squeeze = bottleneck, groups, squeeze

    def write(
        self, layers: ImageModule, shape: tuple[int, int, int], *, stride: int
    ) -> tuple[int, int, int]:
        """Writes the block into a module; gives the shape of its result."""
        x = layers.input(*shape)
        skip = x
        if stride > 1 or shape[0] != self.channels:
            skip = layers.conv("downsample", x, self.channels, stride=stride)
            skip = layers.norm("downsample.norm", skip)
        if self.bottleneck:
            y = layers.conv_norm_relu("conv1", x, self.middle)
            y = layers.conv_norm_relu("conv2", y, self.middle, 3, stride=stride, groups=self.groups)
            y = layers.conv("conv3", y, self.channels)
        else:
            y = layers.conv_norm_relu("conv1", x, self.channels, 3, stride=stride)
            y = layers.conv("conv2", y, self.channels, 3)
        label = "" if self.squeeze else "bn_add_relu"
        y = layers.norm("norm", y, fusion=label)
        if self.squeeze:
            y = layers.excite("se", y, self.channels // self.squeeze, "relu_nd")
        y = layers.op("add", "add", y, skip, fusion="bn_add_relu")
        y = layers.relu("relu", y, fusion="bn_add_relu")
        layers.output(y)
        return layers.shape(y)

    def write_stage(
        self,
        builder: GraphBuilder,
        path: str,
        shape: tuple[int, int, int],
        count: int,
        *,
        stride: int,
    ) -> tuple[int, int, int]:
        """Writes so many blocks, of which the first has the stride; gives the last one's shape."""
        first = ImageModule(builder, f"{path}.first", in_list=True)
        shape = self.write(first, shape, stride=stride)
        if count > 1:
            rest = ImageModule(builder, f"{path}.rest", repeat=count - 1, in_list=True)
            shape = self.write(rest, shape, stride=1)
        return shape
