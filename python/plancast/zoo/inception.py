"""Inception-v3 (Szegedy et al. 2015) as torchvision builds it, with its auxiliary classifier."""

from __future__ import annotations

from collections.abc import Callable

from plancast.builder import GraphBuilder, Tensor
from plancast.zoo.images import ImageModule, Window


def inception_v3(
    name: str, *, image: int = 299, classes: int = 1000, auxiliary: bool = True
) -> GraphBuilder:
    """Inception-v3 for square images.

    Args:
      name: the model's name.
      image: height and width of the pictures, pixels.
      classes: classes that are told apart.
      auxiliary: with the second classifier, which reads the last module of 17 x 17 positions.
    """
    builder = GraphBuilder(name, classes=classes)
    stem = ImageModule(builder, "stem")
    x = stem.conv_norm_relu("conv1", stem.image(image), 32, 3, stride=2, pad=0)
    x = stem.conv_norm_relu("conv2", x, 32, 3, pad=0)
    x = stem.conv_norm_relu("conv3", x, 64, 3)
    x = stem.pool("pool1", x, 3, stride=2)
    x = stem.conv_norm_relu("conv4", x, 80)
    x = stem.conv_norm_relu("conv5", x, 192, 3, pad=0)
    x = stem.pool("pool2", x, 3, stride=2)
    stem.output(x)
    shape = stem.shape(x)
    for path, repeat, write, width in _MODULES:
        module = ImageModule(builder, path, repeat=repeat, in_list=True)
        x = module.input(*shape)
        if auxiliary and path == _READS_AUXILIARY:
            _auxiliary(module, x)
        y = module.concat("concat", write(module, x, width))
        module.output(y)
        shape = module.shape(y)
    head = ImageModule(builder, "head")
    x = head.op("pool", "global_avg_pool", head.input(*shape))
    head.classes(head.op("dropout", "dropout_nd", x))
    return builder


def _branch(
    module: ImageModule, name: str, x: Tensor, *steps: tuple[int, Window], last_stride: int = 1
) -> Tensor:
    """Convolutions one after the other: (channels, window); the last may halve the size."""
    for number, (channels, window) in enumerate(steps, start=1):
        strided = last_stride > 1 and number == len(steps)
        x = module.conv_norm_relu(
            f"{name}.conv{number}",
            x,
            channels,
            window,
            stride=last_stride if strided else 1,
            pad=0 if strided else None,
        )
    return x


def _mean_branch(module: ImageModule, x: Tensor, channels: int) -> Tensor:
    mean = module.pool("pool.mean", x, 3, stride=1, pad=1, kind="avg")
    return _branch(module, "pool", mean, (channels, 1))


def _windows_of_5(module: ImageModule, x: Tensor, pooled: int) -> list[Tensor]:
    return [
        _branch(module, "branch1", x, (64, 1)),
        _branch(module, "branch5", x, (48, 1), (64, 5)),
        _branch(module, "branch3", x, (64, 1), (96, 3), (96, 3)),
        _mean_branch(module, x, pooled),
    ]


def _to_17(module: ImageModule, x: Tensor, _: int) -> list[Tensor]:
    return [
        _branch(module, "branch3", x, (384, 3), last_stride=2),
        _branch(module, "branch3x2", x, (64, 1), (96, 3), (96, 3), last_stride=2),
        module.pool("pool.max", x, 3, stride=2),
    ]


def _windows_of_7(module: ImageModule, x: Tensor, width: int) -> list[Tensor]:
    row, column = (1, 7), (7, 1)
    return [
        _branch(module, "branch1", x, (192, 1)),
        _branch(module, "branch7", x, (width, 1), (width, row), (192, column)),
        _branch(
            module,
            "branch7x2",
            x,
            (width, 1),
            (width, column),
            (width, row),
            (width, column),
            (192, row),
        ),
        _mean_branch(module, x, 192),
    ]


def _to_8(module: ImageModule, x: Tensor, _: int) -> list[Tensor]:
    return [
        _branch(module, "branch3", x, (192, 1), (320, 3), last_stride=2),
        _branch(
            module, "branch7", x, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3), last_stride=2
        ),
        module.pool("pool.max", x, 3, stride=2),
    ]


def _spread_windows(module: ImageModule, x: Tensor, _: int) -> list[Tensor]:
    def both(name: str, x: Tensor) -> Tensor:
        parts = [_branch(module, f"{name}.{side}", x, (384, w)) for side, w in _SIDES]
        return module.concat(f"{name}.concat", parts)

    return [
        _branch(module, "branch1", x, (320, 1)),
        both("branch3", _branch(module, "branch3", x, (384, 1))),
        both("branch3x2", _branch(module, "branch3x2", x, (448, 1), (384, 3))),
        _mean_branch(module, x, 192),
    ]


def _auxiliary(module: ImageModule, x: Tensor) -> None:
    x = module.pool("aux.pool", x, 5, stride=3, kind="avg")
    x = module.conv_norm_relu("aux.conv1", x, 128)
    x = module.conv_norm_relu("aux.conv2", x, 768, 5, pad=0)
    module.classes(module.op("aux.mean", "global_avg_pool", x), "aux")


_SIDES: tuple[tuple[str, Window], ...] = (("row", (1, 3)), ("column", (3, 1)))
_Write = Callable[[ImageModule, Tensor, int], list[Tensor]]
# Path as in torchvision, copies, branches, the width that differs between modules.
_MODULES: tuple[tuple[str, int, _Write, int], ...] = (
    ("mixed5b", 1, _windows_of_5, 32),
    ("mixed5c", 1, _windows_of_5, 64),
    ("mixed5d", 1, _windows_of_5, 64),
    ("mixed6a", 1, _to_17, 0),
    ("mixed6b", 1, _windows_of_7, 128),
    ("mixed6c", 2, _windows_of_7, 160),
    ("mixed6e", 1, _windows_of_7, 192),
    ("mixed7a", 1, _to_8, 0),
    ("mixed7b", 1, _spread_windows, 0),
    ("mixed7c", 1, _spread_windows, 0),
)
_READS_AUXILIARY = "mixed7a"
