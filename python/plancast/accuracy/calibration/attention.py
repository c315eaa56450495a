"""The fit of the model of fused (flash) attention (cost_models/attention_model.h)."""

from __future__ import annotations

import numpy as np

from .fit import LARGE_S, Coefficients, Kernels, Statistics, left_out_errors, statistics
from .rows import Gpu, Rows, folds

SIZES = ("batch", "q_len", "kv_len", "heads", "kv_heads", "head_dim", "head_dim_v", "causal")
# What is read of attention.csv as numbers.
COLUMNS = (*SIZES, "window", "time_us")
WANTED = ["mma_fraction", "softmax_dim", "tail", "floor_s", "causal_loss", "memory_fraction"]
BACKWARD_WANTED = ["backward_factor", "backward_floor_s"]
LATENT = "latent_backward_factor"
# Time per FLOP backward over forward where no rows tell. Dao, FlashAttention-2 (2023),
# abstract and section 3: up to 73 % of the peak forward and 63 % backward. Shah et al.,
# FlashAttention-3 (2024), figures 5 and 6: 648 and 561 TFLOP/s, head dimension 128, 16,384
# positions without a mask (cuDNN 595 and 516, FlashAttention-2 370 and 322). B300's chip:
# attention_cudnn.csv, GB300, cuDNN 9.22, 32,768 positions under a mask.
PUBLISHED_BACKWARD = {
    "A100-SXM-80GB": 0.73 / 0.63,
    "H100-SXM-80GB": 648 / 561,
    "B300-SXM": 1953 / 1490,
}


def kernels_of(rows: Rows, gpu: Gpu, dtype: str) -> Kernels:
    columns = {name: rows[name] for name in SIZES}
    columns["backward"] = (rows["phase"] == "train_bwd").astype(float)
    return Kernels("attention", gpu, dtype, columns)


def told_by(rows: Rows) -> set[str]:
    """Which of the coefficients that need variety the forward rows can tell."""
    told = set()
    if len(set(rows["head_dim"])) > 2:
        told.add("softmax_dim")
    if 0.1 < np.mean(rows["causal"]) < 0.9:
        told.add("causal_loss")
    return told


def softmax_dim_like(rate: float, known: dict[float, float]) -> float:
    """The softmax's time per score, said as a head dimension, of a GPU whose rows cannot
    tell: an SM takes as long for an exponential on all of them (16 a clock since 2016), so it
    is that of the GPU whose products run at the most similar rate per SM. `known`: by rate."""
    return known[min(known, key=lambda other: abs(np.log(other / rate)))]


def fit_forward(
    rows: Rows, gpu: Gpu, dtype: str, known: Coefficients | None = None
) -> tuple[Coefficients, Statistics]:
    """Coefficients (those in `known` are given), and statistics over five folds
    of left-out shapes."""
    known = known or {}
    seconds = rows["time_us"] * 1e-6
    weight = np.where(seconds > LARGE_S, 2.0, 0.5)
    return _fit_folds(rows, gpu, dtype, [w for w in WANTED if w not in known], known, weight)


def fit_backward(
    rows: Rows, gpu: Gpu, dtype: str, forward: Coefficients
) -> tuple[Coefficients, Statistics]:
    """Backward's factor and floor beside given forward coefficients; that of latent attention
    where there are rows of both."""
    both = len(set(rows["head_dim"] == rows["head_dim_v"])) > 1
    wanted = [*BACKWARD_WANTED, LATENT] if both else BACKWARD_WANTED
    fitted, stats = _fit_folds(rows, gpu, dtype, wanted, forward, np.ones(len(rows)))
    return {name: fitted[name] for name in wanted}, stats


def _fit_folds(
    rows: Rows, gpu: Gpu, dtype: str, wanted: list[str], known: Coefficients, weight: np.ndarray
) -> tuple[Coefficients, Statistics]:
    kernels = kernels_of(rows, gpu, dtype)
    seconds = rows["time_us"] * 1e-6
    best = kernels.fit(seconds, weight, wanted, known)
    fold = folds(rows, ("q_len", "heads", "kv_heads"), 5)
    left_out = left_out_errors(kernels, seconds, weight, fold, wanted, known, best)
    return best, statistics(left_out, seconds, np.ones(len(rows), dtype=bool))
