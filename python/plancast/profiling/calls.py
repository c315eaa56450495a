"""What torch is called with, to run a kernel once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from plancast.profiling.backend import UnmeasurableError
from plancast.profiling.grid import read_yaml
from plancast.profiling.images import images_of
from plancast.records.kernel import Kernel

Call = Callable[[], object]

_TYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "tf32": "float32"}
# Elements of a row, where a kernel says only how many bytes it moves.
_COLUMNS = 4096
_VOCABULARY = 32768


class Calls:
    """Makes calls with operands of their own, on `device`. `torch` is the module."""

    def __init__(self, torch: Any, device: str = "cuda") -> None:
        self._torch = torch
        self._device = device

    def bytes_of(self, kernel: Kernel) -> int:
        """Memory that one call's operands take, about."""
        sizes = kernel.sizes
        if kernel.op == "gemm":
            m, n, k = sizes["m"], sizes["n"], sizes["k"]
            return 4 * sizes["batch"] * (m * k + k * n + m * n)
        if kernel.op == "attention":
            rows = sizes["q"] * sizes["heads"] + sizes["kv"] * sizes["kv_heads"]
            return 16 * sizes["batch"] * rows * (sizes["dim"] + sizes["dim_v"])
        return 2 * (sizes["read"] + sizes["write"])

    def of(self, kernel: Kernel) -> Call:
        """A call with new operands. Raises UnmeasurableError."""
        family, _, rule = kernel.op.partition("/")
        if family == "gemm":
            return self._gemm(kernel)
        if family == "attention":
            return self._attention(kernel)
        if family == "convolution":
            return self._convolution(kernel)
        known = _rules().get(rule)
        if known is None:
            raise UnmeasurableError(f"no torch call is known for rule `{rule}`")
        make: Call = getattr(self, "_" + known["call"])(kernel, known)
        return make

    def _type(self, kernel: Kernel) -> Any:
        if kernel.dtype not in _TYPES:
            raise UnmeasurableError(f"products in {kernel.dtype}")
        return getattr(self._torch, _TYPES[kernel.dtype])

    def _random(self, *shape: int, dtype: Any, grad: bool = False) -> Any:
        made = self._torch.randn(*shape, device=self._device, dtype=dtype)
        return made.requires_grad_(grad)

    def _gemm(self, kernel: Kernel) -> Call:
        torch, dtype, sizes = self._torch, self._type(kernel), kernel.sizes
        batch, m, n, k = (sizes[name] for name in ("batch", "m", "n", "k"))
        which, _, accumulate = kernel.layout.partition("+")
        # y = x w', dx = dy w, dw = dy' x: which operand lies transposed.
        a = self._random(batch, k, m, dtype=dtype).transpose(1, 2)
        if which != "wgrad":
            a = self._random(batch, m, k, dtype=dtype)
        b = self._random(batch, k, n, dtype=dtype)
        if which == "forward":
            b = self._random(batch, n, k, dtype=dtype).transpose(1, 2)
        if accumulate and dtype != torch.float32:
            total = torch.zeros(batch, m, n, device=self._device, dtype=torch.float32)
            return functools.partial(self._accumulate, total, a, b)
        if batch == 1:
            a, b = a[0], b[0]
        out = torch.empty(*a.shape[:-1], n, device=self._device, dtype=dtype)
        if accumulate:
            return lambda: out.addmm_(a, b) if batch == 1 else out.baddbmm_(a, b)
        return lambda: torch.matmul(a, b, out=out)

    def _accumulate(self, total: Any, a: Any, b: Any) -> None:
        torch = self._torch
        try:
            torch.baddbmm(total, a, b, out_dtype=torch.float32, out=total)
        except TypeError:
            raise UnmeasurableError(
                "adding 16-bit products to an fp32 sum needs torch 2.8"
            ) from None

    def _attention(self, kernel: Kernel) -> Call:
        torch, dtype, sizes = self._torch, self._type(kernel), kernel.sizes
        backward, causal = "backward" in kernel.layout, "causal" in kernel.layout
        heads, kv_heads = sizes["heads"], sizes["kv_heads"]

        def operand(count: int, length: int, dim: int) -> Any:
            # Sequences before heads in memory, as projections write them.
            made = self._random(sizes["batch"], length, count, dim, dtype=dtype)
            return made.transpose(1, 2).requires_grad_(backward)

        q = operand(heads, sizes["q"], sizes["dim"])
        k = operand(kv_heads, sizes["kv"], sizes["dim"])
        v = operand(kv_heads, sizes["kv"], sizes["dim_v"])
        options: dict[str, Any] = {"is_causal": causal}
        if heads != kv_heads:
            options["enable_gqa"] = True
        attention = functools.partial(
            torch.nn.functional.scaled_dot_product_attention, q, k, v, **options
        )
        if not backward:
            return attention
        out = attention()
        gradient = torch.randn_like(out)
        return lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)

    def _convolution(self, kernel: Kernel) -> Call:
        torch, dtype = self._torch, self._type(kernel)
        images = images_of(kernel)
        if images is None:
            raise UnmeasurableError("no images make that product")
        layout = torch.channels_last if "nhwc" in kernel.layout else torch.contiguous_format
        x = self._random(images.batch, images.in_channels, *images.in_size, dtype=dtype)
        w = self._random(images.out_channels, images.in_channels, *images.window, dtype=dtype)
        y = self._random(images.batch, images.out_channels, *images.out_size, dtype=dtype)
        x, w, y = (t.contiguous(memory_format=layout) for t in (x, w, y))
        padding = [
            max(0, -(-((o - 1) * images.stride + size - i) // 2))
            for i, o, size in zip(images.in_size, images.out_size, images.window, strict=True)
        ]
        stride = [images.stride] * 2
        which = kernel.layout.split()[0]
        if which == "forward":
            return lambda: torch.nn.functional.conv2d(x, w, stride=stride, padding=padding)
        mask = [which == "dgrad", which == "wgrad", False]
        backward = torch.ops.aten.convolution_backward
        return lambda: backward(y, x, w, None, stride, padding, [1, 1], False, [0, 0], 1, mask)

    def _rows(self, kernel: Kernel, tensors: float) -> tuple[int, int]:
        """Rows and columns of one of so many equal tensors that the kernel reads and writes."""
        element = 4 if kernel.dtype in ("fp32", "tf32") else 2
        elements = (kernel.sizes["read"] + kernel.sizes["write"]) / tensors / element
        return max(1, round(elements / _COLUMNS)), _COLUMNS

    def _norm(self, kernel: Kernel, known: dict[str, Any]) -> Call:
        shape = self._rows(kernel, sum(known["traffic"]))
        dtype, function = self._type(kernel), self._function(known)
        x, weight = self._random(*shape, dtype=dtype), self._random(shape[1], dtype=dtype)
        extra = [self._random(shape[1], dtype=dtype)] if known["bias"] else []
        return lambda: function(x, (shape[1],), weight, *extra)

    def _norm_backward(self, kernel: Kernel, known: dict[str, Any]) -> Call:
        torch, shape = self._torch, self._rows(kernel, sum(known["traffic"]))
        dtype, function = self._type(kernel), self._function(known)
        inputs = [self._random(*shape, dtype=dtype, grad=True)]
        inputs += [self._random(shape[1], dtype=dtype, grad=True) for _ in range(1 + known["bias"])]
        out = function(inputs[0], (shape[1],), *inputs[1:])
        gradient = torch.randn_like(out)
        return lambda: torch.autograd.grad(out, inputs, gradient, retain_graph=True)

    def _softmax(self, kernel: Kernel, known: dict[str, Any]) -> Call:
        x = self._random(*self._rows(kernel, sum(known["traffic"])), dtype=self._type(kernel))
        function = self._function(known)
        return lambda: function(x, -1)

    def _gather(self, kernel: Kernel, known: dict[str, Any]) -> Call:
        rows, columns = self._rows(kernel, sum(known["traffic"]))
        table = self._random(_VOCABULARY, columns, dtype=self._type(kernel))
        ids = self._torch.randint(_VOCABULARY, (rows,), device=self._device)
        function = self._function(known)
        return lambda: function(ids, table)

    def _cast(self, kernel: Kernel, known: dict[str, Any]) -> Call:
        x = self._random(max(1, kernel.sizes["read"] // 2), dtype=self._torch.bfloat16)
        out = self._torch.empty_like(x, dtype=self._torch.float32)
        return lambda: out.copy_(x)

    def _stream(self, kernel: Kernel, known: dict[str, Any]) -> Call:
        """An element-wise kernel that moves exactly the bytes of the rule's."""
        torch, dtype = self._torch, self._type(kernel)
        element = 4 if kernel.dtype in ("fp32", "tf32") else 2
        count = max(1, kernel.sizes["write"] // element)
        out = torch.empty(count, device=self._device, dtype=dtype)
        inputs = [
            self._random(count, dtype=dtype)
            for _ in range(min(3, round(kernel.sizes["read"] / max(1, kernel.sizes["write"]))))
        ]
        if not inputs:
            return lambda: out.zero_()
        if len(inputs) == 1:
            return lambda: out.copy_(inputs[0])
        if len(inputs) == 2:
            return lambda: torch.add(*inputs, out=out)
        return lambda: torch.addcmul(*inputs, out=out)

    def _adam(self, kernel: Kernel, known: dict[str, Any]) -> Call:
        torch = self._torch
        count = max(1, kernel.sizes["read"] // 16)
        weight = self._random(count, dtype=torch.float32, grad=True)
        weight.grad = torch.randn_like(weight)
        copy = torch.empty(count, device=self._device, dtype=torch.bfloat16)
        step = torch.optim.AdamW([weight], fused=True, capturable=True).step

        def call() -> None:
            step()
            copy.copy_(weight.detach())

        return call

    def _function(self, known: dict[str, Any]) -> Callable[..., Any]:
        function: Any = self._torch
        for name in known["function"].split(".")[1:]:
            function = getattr(function, name)
        made: Callable[..., Any] = function
        return made


@functools.cache
def _rules() -> dict[str, Any]:
    return read_yaml("calls.yaml")
