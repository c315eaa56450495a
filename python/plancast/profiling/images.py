"""Images that make the product that a convolution is known by."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from plancast.records.kernel import Kernel

# Heights of images that nets use, the usual ones first.
_HEIGHTS = (56, 28, 14, 7, 112, 224, 35, 17, 8, 32, 64, 149, 147, 73, 71, 299)
_LARGEST = 1024


class Images(NamedTuple):
    """Arguments of `Kernel.convolution`."""

    batch: int
    in_size: tuple[int, int]
    in_channels: int
    out_channels: int
    window: tuple[int, int]
    stride: int
    out_size: tuple[int, int]


def images_of(kernel: Kernel) -> Images | None:
    """Images of which the convolution is exactly `kernel`; None if there are none such.

    >>> made = Kernel.convolution(batch=32, in_size=(28, 28), in_channels=512, out_channels=128,
    ...     window=(1, 1))
    >>> images_of(made)._replace(in_size=None, out_size=None, batch=None)[2:5]
    (512, 128, (1, 1))
    """
    sizes, which = kernel.sizes, kernel.layout.split()[0]
    if sizes["batch"] != 1:
        return None
    points = sizes["window"]
    if which == "wgrad":
        positions, outputs, inputs = sizes["k"], sizes["m"], sizes["n"] // points
    elif which == "dgrad":
        positions, outputs, inputs = sizes["m"], sizes["k"] // points, sizes["n"]
    else:
        positions, outputs, inputs = sizes["m"], sizes["n"], sizes["k"] // points
    for window in _windows(points):
        for out_size in _sizes(positions, sizes.get("width")):
            for in_size in _inputs(out_size, window, sizes["stride"]):
                images = Images(
                    positions // (out_size[0] * out_size[1]),
                    in_size,
                    inputs,
                    outputs,
                    window,
                    sizes["stride"],
                    out_size,
                )
                last = kernel.layout.endswith("nhwc")
                made = Kernel.convolution(
                    **images._asdict(), which=which, channels_last=last, dtype=kernel.dtype
                )
                if "width" not in sizes:
                    made = replace(made, shape=made.shape.replace(f" width={out_size[1]}", ""))
                if made == kernel:
                    return images
    return None


def _windows(points: int) -> Iterator[tuple[int, int]]:
    side = math.isqrt(points)
    if side * side == points:
        yield side, side
    yield 1, points


def _sizes(positions: int, width: int | None) -> Iterator[tuple[int, int]]:
    # Square ones first; of any height where the width is known.
    heights = dict.fromkeys((width or 1, *_HEIGHTS, *range(1, _LARGEST + 1)))
    for height in heights:
        size = height, width or height
        if size[0] * size[1] <= positions and positions % (size[0] * size[1]) == 0:
            yield size


def _inputs(
    out_size: tuple[int, int], window: tuple[int, int], stride: int
) -> Iterator[tuple[int, int]]:
    # Padded to keep the size, with images that stride divides or not; or not padded.
    height, width = out_size
    for less in range(stride):
        yield height * stride - less, width * stride - less
    yield (height - 1) * stride + window[0], (width - 1) * stride + window[1]
