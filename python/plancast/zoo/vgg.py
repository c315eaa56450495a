"""VGG (Simonyan and Zisserman 2014) and AlexNet (Krizhevsky 2014, one tower), as in torchvision.

The adaptive pooling before the classifier is the identity at the sizes it was made
for, 224 pixels; larger images must give a multiple of its 7x7 or 6x6 cells.
"""

from __future__ import annotations

from collections.abc import Sequence

from plancast.builder import GraphBuilder, Tensor
from plancast.errors import InputError
from plancast.zoo.images import ImageModule


def vgg(
    name: str,
    *,
    image: int = 224,
    stages: Sequence[int],
    widths: Sequence[int] = (64, 128, 256, 512, 512),
    classes: int = 1000,
) -> GraphBuilder:
    """VGG without batch norm.

    Args:
      name: the model's name.
      image: height and width of the pictures, pixels.
      stages: 3x3 convolutions before each pooling.
      widths: channels of each stage.
      classes: classes that are told apart.
    """
    builder = GraphBuilder(name, classes=classes)
    shape = (3, image, image)
    for stage, (count, width) in enumerate(zip(stages, widths, strict=True)):
        layers = ImageModule(builder, f"stage{stage + 1}")
        x = layers.input(*shape) if stage else layers.image(image)
        for number in range(1, count + 1):
            x = layers.conv(f"conv{number}", x, width, 3, bias=True)
            x = layers.relu(f"relu{number}", x)
        x = layers.pool("pool", x, 2, stride=2)
        layers.output(x)
        shape = layers.shape(x)
    _classifier(ImageModule(builder, "head"), shape, cells=7, dropout_first=False)
    return builder


def alexnet(name: str, *, image: int = 224, classes: int = 1000) -> GraphBuilder:
    """AlexNet for square images of `image` pixels."""
    builder = GraphBuilder(name, classes=classes)
    layers = ImageModule(builder, "features")
    x = layers.conv("conv1", layers.image(image), 64, 11, stride=4, pad=2, bias=True)
    x = layers.pool("pool1", layers.relu("relu1", x), 3, stride=2)
    x = layers.conv("conv2", x, 192, 5, bias=True)
    x = layers.pool("pool2", layers.relu("relu2", x), 3, stride=2)
    for number, channels in ((3, 384), (4, 256), (5, 256)):
        x = layers.conv(f"conv{number}", x, channels, 3, bias=True)
        x = layers.relu(f"relu{number}", x)
    x = layers.pool("pool5", x, 3, stride=2)
    layers.output(x)
    _classifier(ImageModule(builder, "head"), layers.shape(x), cells=6, dropout_first=True)
    return builder


def _classifier(
    head: ImageModule, shape: tuple[int, int, int], *, cells: int, dropout_first: bool
) -> None:
    """Pooling to cells x cells, two hidden layers of 4096, classes."""
    x = head.input(*shape)
    if shape[1] % cells or shape[2] % cells:
        raise InputError(
            f"the classifier pools to {cells} x {cells} cells, and {shape[1]} x {shape[2]} "
            f"positions reach it. Use images that give a multiple of {cells}, such as 224 pixels."
        )
    if shape[1] != cells:
        side = head.builder.dim(f"window{shape[1] // cells}", shape[1] // cells)
        rows, columns = (head.builder.dim(f"{dim}{cells}", cells) for dim in ("height", "width"))
        dims = {"i": rows, "j": columns, "k": side, "u": side}
        x = head.op("pool", "adaptive_avg_pool2d", x, dims=dims)
    x = head.flatten("flatten", x)
    hidden = [head.builder.dim(f"hidden{number}", 4096) for number in (1, 2)]
    for number, features in enumerate(hidden, start=1):
        if dropout_first:
            x = _dropout(head, f"dropout{number}", x)
        x = head.op(f"relu{number}", "relu_nd", head.linear(f"fc{number}", x, features))
        if not dropout_first:
            x = _dropout(head, f"dropout{number}", x)
    head.classes(x, "fc3")


def _dropout(head: ImageModule, name: str, x: Tensor) -> Tensor:
    return head.op(name, "dropout_nd", x)
