"""Which kernels to measure."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plancast import _core
from plancast.machine import Machine
from plancast.model import Model
from plancast.records.kernel import Kernel
from plancast.session import Session
from plancast.strategy import Strategy


def kernels_of_plan(
    model: Model,
    machine: Machine,
    strategy: Strategy | str,
    *,
    batch: int | None = None,
    dtype: str = "bf16",
    profile: str = "megatron-core",
) -> list[Kernel]:
    """The distinct kernels that a device of a plan runs, in the order in which they come.

    >>> kernels = kernels_of_plan(Model.preset("llama3-8b"), Machine.preset("dgx-h100"),
    ...     "tp=8,mb=1", batch=8)
    >>> sum(kernel.op == "attention" for kernel in kernels)
    2
    """
    from plancast.planning import check_nouns
    from plancast.question import core_of

    check_nouns(model, machine, None)
    keys = _core.plan_kernels(
        model._core,
        machine._core,
        core_of(strategy),
        Session()._core,
        batch=batch,
        dtype=dtype,
        profile=profile,
    )
    return [Kernel(*key) for key in keys]


def default_grid() -> list[Kernel]:
    """Shapes of transformers and of a net for vision (grid.yaml).

    >>> kernels = default_grid()
    >>> len(kernels) == len(set(kernels))
    True
    >>> sorted({kernel.op.partition("/")[0] for kernel in kernels})
    ['attention', 'convolution', 'gemm', 'memory', 'optimizer']
    """
    grid = read_yaml("grid.yaml")
    made = itertools.chain(
        _gemms(grid["gemm"]),
        _attentions(grid["attention"]),
        _memory(grid["memory"]),
        _optimizers(grid["optimizer"]),
        _convolutions(grid["convolution"]),
    )
    return list(dict.fromkeys(made))


def _gemms(grid: dict[str, Any]) -> Iterator[Kernel]:
    for dtype, tokens, (n, k), which in itertools.product(
        grid["dtypes"], grid["tokens"], grid["weights"], grid["passes"]
    ):
        sizes = {"forward": (tokens, n, k), "dgrad": (tokens, k, n), "wgrad": (n, k, tokens)}
        yield Kernel.gemm(*sizes[which], dtype=dtype, which=which)


def _attentions(grid: dict[str, Any]) -> Iterator[Kernel]:
    for dtype, (heads, kv_heads, dim), length, backward in itertools.product(
        grid["dtypes"], grid["heads"], grid["lengths"], (False, True)
    ):
        yield Kernel.attention(
            batch=1,
            heads=heads,
            kv_heads=kv_heads,
            q_len=length,
            head_dim=dim,
            backward=backward,
            dtype=dtype,
        )


def _memory(grid: dict[str, Any]) -> Iterator[Kernel]:
    calls = read_yaml("calls.yaml")
    for dtype, (rows, columns), rule in itertools.product(
        grid["dtypes"], grid["sizes"], grid["rules"]
    ):
        element = 4 if dtype in ("fp32", "tf32") else 2
        read, write = (count * element * rows * columns for count in calls[rule]["traffic"])
        yield Kernel.memory(rule, read_bytes=read, write_bytes=write, dtype=dtype)


def _optimizers(grid: dict[str, Any]) -> Iterator[Kernel]:
    # Gradient, weight and two moments in fp32 are read; weight, moments and a bf16 copy written.
    for count in grid["parameters"]:
        yield Kernel.memory(
            "adam", read_bytes=16 * count, write_bytes=14 * count, dtype="fp32", optimizer=True
        )


def _convolutions(grid: dict[str, Any]) -> Iterator[Kernel]:
    for dtype, layer, which in itertools.product(
        grid["dtypes"], grid["layers"], ("forward", "dgrad", "wgrad")
    ):
        image, inputs, outputs, window, stride = layer
        yield Kernel.convolution(
            batch=grid["batch"],
            in_size=(image, image),
            in_channels=inputs,
            out_channels=outputs,
            window=(window, window),
            stride=stride,
            which=which,
            dtype=dtype,
        )


def read_yaml(name: str) -> dict[str, Any]:
    """A data file beside this one."""
    import yaml

    data: dict[str, Any] = yaml.safe_load(
        Path(__file__).with_name(name).read_text(encoding="utf-8")
    )
    return data
