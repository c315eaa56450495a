"""Layers of convolutional nets: sizes follow from window, stride and padding."""

from __future__ import annotations

from collections.abc import Sequence

from plancast.builder import Tensor
from plancast.errors import InputError
from plancast.zoo.modules import ZooModule

# A square window, or one of so many rows and columns.
Window = int | tuple[int, int]

BATCH, RGB = "batch", "rgb"


class ImageModule(ZooModule):
    """A module of a net for images; activations run over batch, channels, height, width.

    Dims are named by their size, so that layers of one size share them: `channels64`,
    `height56`, `width56`, `window3`. Batch norm has statistics of each data-parallel
    replica. Convolution, batch norm and what follows element by element carry fusion
    labels: `bn_relu`, `bn_add_relu`.
    """

    def image(self, size: int) -> Tensor:
        """The pictures of the training data."""
        self.builder.dim(RGB, 3)
        return self.module.data("image", BATCH, RGB, *self._positions(size, size))

    def input(self, channels: int, height: int, width: int) -> Tensor:
        """What the previous module gives."""
        return self.module.input(
            "x", BATCH, self._channels(channels), *self._positions(height, width)
        )

    def output(self, *tensors: Tensor) -> None:
        """What the next module gets."""
        self.module.output(*tensors)

    def shape(self, x: Tensor) -> tuple[int, int, int]:
        """Channels, height, width."""
        channels, height, width = (self.builder.size(dim) for dim in x.dims[1:])
        return channels, height, width

    def conv(
        self,
        name: str,
        x: Tensor,
        channels: int,
        window: Window = 1,
        *,
        stride: int = 1,
        pad: Window | None = None,
        groups: int = 1,
        bias: bool = False,
    ) -> Tensor:
        """A convolution; `pad` keeps the size at stride 1 where it is not given."""
        rows, columns = _pair(window)
        pad_rows, pad_columns = (rows // 2, columns // 2) if pad is None else _pair(pad)
        inputs = self.shape(x)[0]
        dims = self._reached(name, x, (rows, columns), stride, (pad_rows, pad_columns))
        call = f"stride={stride}, pad={pad_rows}, pad_w={pad_columns}"
        windows = (
            self.builder.dim(f"window{rows}", rows),
            self.builder.dim(f"window{columns}", columns),
        )
        outputs = self._channels(channels)
        if groups == 1:
            weight = self.module.parameter(f"{name}.w", outputs, x.dims[1], *windows)
            y = self.op(name, f"conv2d({call})", x, weight, dims=dims)
        else:
            each_in = self.builder.dim(f"of_group{inputs // groups}", inputs // groups)
            each_out = self.builder.dim(f"of_group{channels // groups}", channels // groups)
            weight = self.module.parameter(f"{name}.w", outputs, each_in, *windows)
            dims |= {"g": self.builder.dim(f"groups{groups}", groups), "n": each_out}
            y = self.op(name, f"conv2d_grouped({call})", x, weight, dims=dims)
        if bias:
            shift = self.module.parameter(f"{name}.b", outputs)
            y = self.op(f"{name}.bias", "channel_bias", y, shift)
        return y

    def depthwise(self, name: str, x: Tensor, window: int, *, stride: int = 1) -> Tensor:
        """A convolution of each channel by itself."""
        dims = self._reached(name, x, (window, window), stride, (window // 2, window // 2))
        side = self.builder.dim(f"window{window}", window)
        weight = self.module.parameter(f"{name}.w", x.dims[1], side, side)
        call = f"conv2d_depthwise(stride={stride}, pad={window // 2})"
        return self.op(name, call, x, weight, dims=dims)

    def excite(self, name: str, x: Tensor, reduced: int, act: str) -> Tensor:
        """Scales the channels by what two small layers make of their means."""
        hidden = self.builder.dim(f"squeezed{reduced}", reduced)
        z = self.op(f"{name}.pool", "global_avg_pool", x)
        z = self.op(f"{name}.act", act, self.linear(f"{name}.reduce", z, hidden))
        z = self.op(f"{name}.gate", "sigmoid_nd", self.linear(f"{name}.expand", z, x.dims[1]))
        return self.op(f"{name}.scale", "multiply_channels", x, z)

    def norm(self, name: str, x: Tensor, *, fusion: str = "") -> Tensor:
        """Batch norm over the samples of one replica."""
        gamma, beta = (
            self.module.parameter(f"{name}.{which}", x.dims[1]) for which in ("gamma", "beta")
        )
        local = {"g": "replicas", "b": "replica_batch"}
        return self.op(name, "batch_norm_local", x, gamma, beta, dims=local, fusion=fusion)

    def conv_norm_relu(
        self,
        name: str,
        x: Tensor,
        channels: int,
        window: Window = 1,
        *,
        stride: int = 1,
        pad: Window | None = None,
        groups: int = 1,
    ) -> Tensor:
        """Convolution without bias, batch norm, relu."""
        y = self.conv(name, x, channels, window, stride=stride, pad=pad, groups=groups)
        y = self.norm(f"{name}.norm", y, fusion="bn_relu")
        return self.relu(f"{name}.relu", y, fusion="bn_relu")

    def relu(self, name: str, x: Tensor, *, fusion: str = "") -> Tensor:
        """max(x, 0)."""
        return self.op(name, "relu_nd", x, fusion=fusion)

    def pool(
        self, name: str, x: Tensor, window: int, *, stride: int, pad: int = 0, kind: str = "max"
    ) -> Tensor:
        """Maximum or mean (`kind` `max`, `avg`) over windows."""
        dims = self._reached(name, x, (window, window), stride, (pad, pad))
        side = self.builder.dim(f"window{window}", window)
        call = f"{kind}_pool2d(stride={stride}, pad={pad})"
        return self.op(name, call, x, dims={**dims, "k": side, "u": side})

    def concat(self, name: str, parts: Sequence[Tensor]) -> Tensor:
        """Side by side along the channels, up to four at once."""
        if len(parts) == 1:
            return parts[0]
        total = sum(self.shape(part)[0] for part in parts)
        dims = {"h": self._channels(total)}
        return self.op(name, f"concat{len(parts)}", *parts, dims=dims)

    def flatten(self, name: str, x: Tensor) -> Tensor:
        """Channels and positions as one dim of features."""
        channels, height, width = self.shape(x)
        features = channels * height * width
        dim = self.builder.dim(f"features{features}", features)
        return self.op(name, "flatten", x, dims={"f": dim})

    def linear(self, name: str, x: Tensor, features: str) -> Tensor:
        """A linear layer with bias from (batch, inputs) to (batch, `features`)."""
        weight = self.module.parameter(f"{name}.w", features, x.dims[1])
        bias = self.module.parameter(f"{name}.b", features)
        return self.op(name, "linear_bias_nd", x, weight, bias)

    def classes(self, x: Tensor, name: str = "fc") -> None:
        """Logits of the classes and their loss."""
        logits = self.linear(name, x, "classes")
        label = self.module.data(f"{name}.label", BATCH, dtype="int64")
        self.op(f"{name}.loss", "classification_loss", logits, label)

    def _channels(self, count: int) -> str:
        return self.builder.dim(f"channels{count}", count)

    def _positions(self, height: int, width: int) -> tuple[str, str]:
        return self.builder.dim(f"height{height}", height), self.builder.dim(f"width{width}", width)

    def _reached(
        self, name: str, x: Tensor, window: tuple[int, int], stride: int, pad: tuple[int, int]
    ) -> dict[str, str]:
        """Dims of the positions of a result."""
        sizes = []
        for size, side, border in zip(self.shape(x)[1:], window, pad, strict=True):
            reached = (size + 2 * border - side) // stride + 1
            if reached < 1:
                raise InputError(
                    f"`{self.module.path}.{name}`: a window of {side} does not fit an image "
                    f"of {size}. Use larger images."
                )
            sizes.append(reached)
        height, width = self._positions(*sizes)
        return {"i": height, "j": width}


def _pair(window: Window) -> tuple[int, int]:
    return (window, window) if isinstance(window, int) else window
