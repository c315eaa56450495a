"""The model of kernels bound by memory, and its fit."""

from __future__ import annotations

import numpy as np

from .fit import Statistics, median_error, robust_sigma
from .rows import Gpu, Rows

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


def fit_memory(rows: Rows, gpu: Gpu) -> tuple[float, Statistics] | None:
    """Fraction of memory bandwidth of kernels that do not fit in caches, and
    statistics; None where too few such kernels were measured."""
    moved = traffic(rows)
    quantize = np.char.startswith(rows["op"].astype(str), "quantize")
    large = ~quantize & (moved > LARGE_BYTES)
    if large.sum() < 3:  # only quantisation was measured: its largest kernels
        large = quantize & (moved > LARGE_QUANTIZE_BYTES)
    if large.sum() < 3:
        return None
    share = moved[large] / (rows["time_us"][large] * 1e-6 * gpu.bytes_per_s)
    fraction = float(min(np.median(share), 0.98))
    residual = np.log(share / fraction)
    return fraction, {
        "rows": int(large.sum()),
        "quantize": bool(quantize[large].all()),
        "held_out_error": median_error(residual),
        "sigma": robust_sigma(residual),
    }
