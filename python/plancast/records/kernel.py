"""What a measured kernel is known by."""

from __future__ import annotations

from dataclasses import dataclass

from plancast import _core
from plancast.checked import checked
from plancast.errors import InputError

# Bytes of an element of images and weights, by the type of the products.
_ELEMENT = {"fp32": 4, "tf32": 4}


@checked
@dataclass(frozen=True)
class Kernel:
    """One kernel on one device: everything that its time depends on but the device.

    `op` is `gemm`, `convolution`, `attention`, or `memory/RULE` and `optimizer/RULE` with the op
    rule; `shape` the sizes by name; `layout` the pass and how operands lie. Equal kernels take
    equal time. Raises InputError for what names no kernel.

    >>> Kernel.gemm(4096, 1024, 512)
    Kernel(op='gemm', shape='batch=1 m=4096 n=1024 k=512', dtype='bf16', layout='forward')
    """

    op: str
    shape: str
    dtype: str = "bf16"
    layout: str = ""

    def __post_init__(self) -> None:
        _core.check_kernel(self.key)

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The four fields."""
        return self.op, self.shape, self.dtype, self.layout

    @property
    def sizes(self) -> dict[str, int]:
        """The shape's sizes by name.

        >>> Kernel.gemm(4096, 1024, 512).sizes["n"]
        1024
        """
        return {name: int(size) for name, _, size in (w.partition("=") for w in self.shape.split())}

    @classmethod
    def gemm(
        cls,
        m: int,
        n: int,
        k: int,
        *,
        batch: int = 1,
        dtype: str = "bf16",
        which: str = "forward",
        accumulate_fp32: bool = False,
    ) -> Kernel:
        """`batch` products C[m,n] = A[m,k] B[k,n].

        Args:
          m: rows of the result.
          n: columns of the result.
          k: what is summed.
          batch: independent products.
          dtype: of the operands.
          which: `forward`, `dgrad` or `wgrad`: which product of a linear layer.
          accumulate_fp32: adds to an fp32 result instead of writing one.
        """
        layout = which + ("+fp32" if accumulate_fp32 else "")
        return cls("gemm", f"batch={batch} m={m} n={n} k={k}", dtype, layout)

    @classmethod
    def attention(
        cls,
        *,
        batch: int,
        heads: int,
        q_len: int,
        head_dim: int,
        kv_heads: int | None = None,
        kv_len: int | None = None,
        head_dim_v: int | None = None,
        causal: bool = True,
        backward: bool = False,
        dtype: str = "bf16",
    ) -> Kernel:
        """Fused attention of `batch` sequences.

        >>> Kernel.attention(batch=2, heads=32, kv_heads=8, q_len=4096, head_dim=128).layout
        'causal'
        """
        shape = (
            f"batch={batch} heads={heads} kv_heads={kv_heads or heads} q={q_len} "
            f"kv={kv_len or q_len} dim={head_dim} dim_v={head_dim_v or head_dim}"
        )
        words = [word for word, told in (("causal", causal), ("backward", backward)) if told]
        return cls("attention", shape, dtype, " ".join(words))

    @classmethod
    def convolution(
        cls,
        *,
        batch: int,
        in_size: tuple[int, int],
        in_channels: int,
        out_channels: int,
        window: tuple[int, int] = (3, 3),
        stride: int = 1,
        out_size: tuple[int, int] | None = None,
        which: str = "forward",
        channels_last: bool = True,
        dtype: str = "bf16",
    ) -> Kernel:
        """A convolution of images of `in_size`, or the gradient of its input or weights.

        >>> Kernel.convolution(batch=32, in_size=(56, 56), in_channels=64, out_channels=64).sizes
        ... # doctest: +ELLIPSIS
        {'batch': 1, 'm': 100352, 'n': 64, 'k': 576, 'window': 9, 'stride': 1, 'width': 56, ...}
        """
        if which not in ("forward", "dgrad", "wgrad"):
            raise InputError(f"no pass `{which}`; there are `forward`, `dgrad` and `wgrad`.")
        if stride < 1:
            raise InputError(f"the stride is {stride}; give a positive number.")
        out_h, out_w = out_size or (-(-in_size[0] // stride), -(-in_size[1] // stride))
        points = window[0] * window[1]
        element = _ELEMENT.get(dtype, 2)
        inputs = element * batch * in_size[0] * in_size[1] * in_channels
        outputs = element * batch * out_h * out_w * out_channels
        weights = element * points * in_channels * out_channels
        positions = batch * out_h * out_w
        product, read, write = {
            "forward": (
                (positions, out_channels, in_channels * points),
                inputs + weights,
                outputs,
            ),
            "dgrad": (
                (positions, in_channels, out_channels * points),
                outputs + weights,
                inputs,
            ),
            "wgrad": (
                (out_channels, in_channels * points, positions),
                inputs + outputs,
                weights,
            ),
        }[which]
        shape = "batch=1 m={} n={} k={}".format(*product)
        shape += f" window={points} stride={stride} width={out_w} read={read} write={write}"
        return cls("convolution", shape, dtype, f"{which} {'nhwc' if channels_last else 'nchw'}")

    @classmethod
    def memory(
        cls,
        rule: str,
        *,
        read_bytes: int,
        write_bytes: int,
        launches: int = 1,
        dtype: str = "bf16",
        optimizer: bool = False,
    ) -> Kernel:
        """A kernel bound by memory, by its op rule.

        >>> Kernel.memory("rms_norm", read_bytes=2_000_000, write_bytes=2_000_000).op
        'memory/rms_norm'
        """
        family = "optimizer" if optimizer else "memory"
        shape = f"read={read_bytes} write={write_bytes} launches={launches}"
        return cls(f"{family}/{rule}", shape, dtype)

    def __str__(self) -> str:
        return " ".join(word for word in (self.op, self.dtype, self.shape, self.layout) if word)
