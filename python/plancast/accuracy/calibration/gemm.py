"""The fit of the tile/wave model of a GEMM (cost_models/gemm_model.h)."""

from __future__ import annotations

import numpy as np

from .fit import LARGE_S, Coefficients, Kernels, Statistics, left_out_errors, statistics
from .rows import Gpu, Rows, folds

COLUMNS = ("m", "n", "k", "batch", "time_us")
WANTED = [
    "mma_fraction",
    "tile_overhead_k",
    "wave_quantization",
    "memory_fraction",
    "small_tile_cost",
    "floor_s",
    "sustained_loss",
    "saturating_sms",
    "split_floors",
]
# Low-precision rows of inference stacks include the kernel that quantises the
# activations.
QUANTIZED = ("fp8", "fp8-block", "nvfp4")
# That kernel's, of an element: two reads in 16 bits (the largest value, then the cast), a write.
QUANTIZE_BYTES = 5.0
# Both ends of how strongly waves are quantised; the fit goes from each.
STARTS: list[Coefficients] = [{"wave_quantization": 0.95}, {"wave_quantization": 0.1}]
# Which pass a layout is, and the factor that a training stack's rows tell.
PASSES = {"TN": (0, "forward_factor"), "NN": (1, "dgrad_factor"), "NT+accum": (2, "wgrad_factor")}


def kernels_of(rows: Rows, gpu: Gpu, dtype: str) -> Kernels:
    columns = {name: rows[name] for name in ("m", "n", "k", "batch")}
    return Kernels("gemm", gpu, dtype, columns)


def training_kernels(rows: Rows, gpu: Gpu, dtype: str) -> Kernels:
    """With the pass that each row's layout is, and what it accumulates into."""
    columns = dict(kernels_of(rows, gpu, dtype).columns)
    columns["pass"] = np.array([PASSES.get(layout, (0, ""))[0] for layout in rows["layout"]])
    columns["accumulate_fp32"] = np.array([kind.endswith("->fp32") for kind in rows["dtype"]])
    return Kernels("gemm", gpu, dtype, columns)


def grouped_kernels(rows: Rows, gpu: Gpu) -> Kernels:
    """The products of a mixture's experts: forward, and the gradient of the input."""
    gradient = rows["phase"] == "bwd_grad_act"
    columns = {
        "batch": rows["groups"],
        "m": rows["group_m"],
        "n": np.where(gradient, rows["k"], rows["n"]),
        "k": np.where(gradient, rows["n"], rows["k"]),
        "pass": gradient.astype(float),
        "launches": rows["groups"],  # one by one
    }
    return Kernels("gemm", gpu, "bf16", columns)


def weights(seconds: np.ndarray) -> np.ndarray:
    """Large kernels carry training time, so they carry the fit."""
    return np.where(seconds > LARGE_S, 2.0, np.where(seconds > 20e-6, 1.0, 0.5))


def fit_gemm(rows: Rows, gpu: Gpu, dtype: str) -> Coefficients:
    seconds = rows["time_us"] * 1e-6
    starts = STARTS
    if dtype in QUANTIZED:
        starts = [{**start, "quantize_bytes": 4.0} for start in STARTS]
    return kernels_of(rows, gpu, dtype).fit(seconds, weights(seconds), wanted(dtype), starts=starts)


def wanted(dtype: str) -> list[str]:
    return WANTED + (["quantize_bytes"] if dtype in QUANTIZED else [])


def cross_validate(rows: Rows, gpu: Gpu, dtype: str, best: Coefficients) -> Statistics:
    """Over five folds of left-out (n, k)."""
    seconds = rows["time_us"] * 1e-6
    fold = folds(rows, ("n", "k"), 5)
    left_out = left_out_errors(
        kernels_of(rows, gpu, dtype), seconds, weights(seconds), fold, wanted(dtype), {}, best
    )
    return statistics(left_out, seconds, seconds > 20e-6)


def fit_training_factor(rows: Rows, gpu: Gpu, dtype: str, factor: str, c: Coefficients) -> float:
    """Multiplier-accumulators' time in a training stack over that in isolation, from rows of one
    pass that are long enough for clocks to settle."""
    rows = rows[rows["time_us"] > 10 * LARGE_S * 1e6]
    if not len(rows):
        return float("nan")
    seconds = rows["time_us"] * 1e-6
    found = training_kernels(rows, gpu, dtype).fit(
        seconds, np.ones(len(rows)), [factor], c, [{factor: 1.2}]
    )
    return found[factor]


def median_ratio(rows: Rows, gpu: Gpu, dtype: str, c: Coefficients) -> float:
    """Measured over modelled time of large kernels, from another source."""
    seconds = rows["time_us"] * 1e-6
    ratio = seconds / kernels_of(rows, gpu, dtype).seconds(c)
    return float(np.median(ratio[seconds > LARGE_S])) if (seconds > LARGE_S).any() else np.nan
