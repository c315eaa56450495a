"""The model of kernels bound by memory, and its fit."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from .fit import Coefficients, Kernels, Statistics, mean_error, median_error, robust_sigma
from .rows import ALIASES, Gpu, Rows

# Bytes moved per element of the result, for kernels that touch each operand
# once. Kernels with reductions or strided access tell about their own code
# more than about memory, and are left out.
ELEMENT_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}
TENSORS = {
    "add": 3,
    "mul": 3,
    "div": 3,
    "pow": 3,
    "residual_add": 3,
    "addu": 2,
    "mulu": 2,
    "divu": 2,
    "powu": 2,
    "relu": 2,
    "gelu": 2,
    "tanh": 2,
}
CUDNN_TENSORS = {"rmsnorm": 2}
QUANTIZE_BYTES = 3  # reads bf16, writes fp8
# Far beyond every cache.
LARGE_BYTES = 2e8
LARGE_QUANTIZE_BYTES = 5e8


def traffic(rows: Rows) -> np.ndarray:
    """Bytes each kernel moves; NaN for kernels that are not used."""
    result = np.full(len(rows), np.nan)
    for i, (op, dtype, software, phase) in enumerate(
        zip(rows["op"], rows["dtype"], rows["software"], rows["phase"], strict=True)
    ):
        tensors = TENSORS.get(op)
        if software == "cudnn" and phase == "fwd":
            tensors = CUDNN_TENSORS.get(op)
        if op.startswith("quantize"):
            result[i] = QUANTIZE_BYTES * rows["elements"][i]
        elif tensors and dtype in ELEMENT_BYTES:
            result[i] = tensors * ELEMENT_BYTES[dtype] * rows["elements"][i]
    return result


def kernels_of(moved: np.ndarray, gpu: Gpu) -> Kernels:
    return Kernels("memory", gpu, "fp32", {"read_bytes": moved})


def fit_memory(rows: Rows, gpu: Gpu, floor_s: float) -> tuple[Coefficients, Statistics] | None:
    """Fraction of memory bandwidth of kernels that do not fit in caches beside a known floor,
    and statistics; None where too few such kernels were measured."""
    moved = traffic(rows)
    quantize = np.char.startswith(rows["op"].astype(str), "quantize")
    large = ~quantize & (moved > LARGE_BYTES)
    if large.sum() < 3:  # only quantisation was measured: its largest kernels
        large = quantize & (moved > LARGE_QUANTIZE_BYTES)
    if large.sum() < 3:
        return None
    # What SMs pass in a clock (memory_model.cc) is apart: the largest reach the memory's rate.
    unbound = dataclasses.replace(gpu, boost_mhz=0)
    kernels, seconds = kernels_of(moved[large], unbound), rows["time_us"][large] * 1e-6
    fitted = kernels.fit(seconds, np.ones(len(seconds)), ["memory_fraction"], {"floor_s": floor_s})
    residual = np.log(kernels.seconds(fitted) / seconds)
    return fitted, {
        "rows": int(large.sum()),
        "quantize": bool(quantize[large].all()),
        "held_out_error": median_error(residual),
        "held_out_mean_error": mean_error(residual),
        "sigma": robust_sigma(residual),
    }


# Tensors that kernels of each kind read and write, each once.
JUDGED = {
    "elementwise": TENSORS,
    "norm": {"ln": 2, "layernorm": 2, "rmsnorm": 2},
    "softmax": {"softmax": 2},
}
OVER_ROWS = ("norm", "softmax")
BACKWARD_TENSORS = 3  # reads the gradient and the input, writes a gradient


def judged(rows: Rows, gpus: dict[str, Gpu]) -> Iterator[tuple[str, Kernels, Rows]]:
    """Kernels beyond every cache by kind and GPU: (family, kernels, rows)."""
    for name in sorted(set(rows["gpu"])):
        of_gpu = rows[rows["gpu"] == name]
        for family, tensors in JUDGED.items():
            count = np.array([tensors.get(op, np.nan) for op in of_gpu["op"]])
            count = np.where(of_gpu["phase"] == "bwd", BACKWARD_TENSORS + 0 * count, count)
            size = np.array([ELEMENT_BYTES.get(dtype, np.nan) for dtype in of_gpu["dtype"]])
            moved = count * size * of_gpu["elements"]
            large = moved > LARGE_BYTES
            if not large.any():
                continue
            kernels = kernels_of(moved[large], gpus[ALIASES.get(name, name)])
            if family in OVER_ROWS:  # all that is read is gone over again, row by row
                kernels.columns["reread_bytes"] = (moved * (count - 1) / count)[large]
                kernels.columns["row_bytes"] = (of_gpu["cols"] * size * (count - 1))[large]
            yield f"{family} large", kernels, of_gpu[large]
