"""The model of fused (flash) attention and its fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from .fit import Coefficients, Parameter, Statistics, fit, median_error, robust_sigma
from .rows import Gpu, Rows, folds

# What the fit reads of attention.csv as numbers.
COLUMNS = (
    "batch",
    "q_len",
    "kv_len",
    "heads",
    "kv_heads",
    "head_dim",
    "head_dim_v",
    "causal",
    "window",
    "time_us",
)
BLOCK = 128  # queries (forward) or keys (backward) of a thread block
BYTES = {"bf16": 2.0, "fp8": 1.0}
LARGE_S = 50e-6

PARAMETERS = [
    Parameter("mma_fraction", 0.75, 0.05, 0.99),
    Parameter("softmax_dim", 20.0, 0.0, 200.0),
    Parameter("tail", 0.5, 0.0, 1.0),
    Parameter("floor_s", 3e-6, 5e-7, 1.5e-5),
    Parameter("causal_loss", 0.05, 0.0, 0.6),
    Parameter("memory_fraction", 0.7, 0.2, 0.98),
]
BACKWARD_PARAMETERS = [
    Parameter("backward_factor", 1.2, 0.8, 3.0),
    Parameter("backward_floor_s", 6e-6, 1e-6, 4e-5),
]


@dataclass
class AttentionShapes:
    """Shapes on one GPU with everything that does not depend on coefficients."""

    gpu: Gpu
    peak: float
    flops_s: np.ndarray  # forward products at peak, masked blocks included
    longest_s: np.ndarray  # products of the longest thread block on its SM at peak
    bytes_s: np.ndarray  # traffic at nominal bandwidth
    dim: np.ndarray  # mean of the two head dimensions
    causal: np.ndarray
    backward: np.ndarray

    @classmethod
    def create(cls, rows: Rows, gpu: Gpu, peak: float, dtype: str) -> AttentionShapes:
        batch, q, kv = rows["batch"], rows["q_len"], rows["kv_len"]
        heads, kv_heads = rows["heads"], rows["kv_heads"]
        dim, dim_v = rows["head_dim"], rows["head_dim_v"]
        causal = rows["causal"]
        backward = (rows["phase"] == "train_bwd").astype(float)
        square = np.minimum(q, kv)
        masked = q * (kv - square) + square * (square + BLOCK) / 2
        pairs = np.where(causal > 0, np.minimum(masked, q * kv), q * kv)
        # Backward recomputes the scores: five products instead of two.
        per_pair = np.where(backward > 0, 6 * dim + 4 * dim_v, 2 * dim + 2 * dim_v)
        flops = batch * heads * pairs * per_pair
        longest = BLOCK * np.where(backward > 0, q, kv) * per_pair
        # q and o (and their gradients), k and v (and theirs), fp32 sums of dq.
        tensors = q * heads * (dim + dim_v) + kv * kv_heads * (dim + dim_v)
        sums = np.where(backward > 0, 8 * q * heads * dim, 0)
        traffic = batch * (BYTES[dtype] * tensors * (1 + backward) + sums)
        return cls(
            gpu,
            peak,
            flops / peak,
            longest / (peak / gpu.sms),
            traffic / gpu.bytes_per_s,
            (dim + dim_v) / 2,
            causal,
            backward,
        )

    def select(self, mask: np.ndarray) -> AttentionShapes:
        return AttentionShapes(
            self.gpu,
            self.peak,
            self.flops_s[mask],
            self.longest_s[mask],
            self.bytes_s[mask],
            self.dim[mask],
            self.causal[mask],
            self.backward[mask],
        )

    def seconds(self, c: Coefficients) -> np.ndarray:
        slow = (self.dim + c["softmax_dim"]) / (self.dim * c["mma_fraction"])
        slow = slow * np.where(self.backward > 0, c.get("backward_factor", 1.0), 1.0)
        compute = slow * (
            self.flops_s * (1 + c["causal_loss"] * self.causal) + c["tail"] * self.longest_s
        )
        memory = self.bytes_s / c["memory_fraction"]
        floor = np.where(self.backward > 0, c.get("backward_floor_s", 0.0), c["floor_s"])
        return floor + np.cbrt(compute**3 + memory**3)


def told_by(rows: Rows) -> set[str]:
    """Which of the coefficients that need variety the forward rows can tell."""
    told = set()
    if len(set(rows["head_dim"])) > 2:
        told.add("softmax_dim")
    if 0.1 < np.mean(rows["causal"]) < 0.9:
        told.add("causal_loss")
    return told


def _statistics(left_out: np.ndarray, seconds: np.ndarray) -> Statistics:
    return {
        "rows": len(seconds),
        "held_out_error": median_error(left_out),
        "held_out_error_large": median_error(left_out[seconds > LARGE_S]),
        "sigma": robust_sigma(left_out),
    }


def fit_forward(
    rows: Rows, gpu: Gpu, peak: float, dtype: str, known: Coefficients | None = None
) -> tuple[Coefficients, Statistics]:
    """Coefficients (those in `known` are given), and statistics over five folds
    of left-out shapes."""
    known = known or {}
    parameters = [p for p in PARAMETERS if p.name not in known]
    shapes = AttentionShapes.create(rows, gpu, peak, dtype)
    seconds = rows["time_us"] * 1e-6
    weight = np.where(seconds > LARGE_S, 2.0, 0.5)

    best, left_out = _fit_folds(rows, shapes, parameters, known, weight, evaluations=300)
    return {**best, **known}, _statistics(left_out, seconds)


def fit_backward(
    rows: Rows, gpu: Gpu, peak: float, dtype: str, forward: Coefficients
) -> tuple[Coefficients, Statistics]:
    """Backward's factor and floor beside given forward coefficients."""
    shapes = AttentionShapes.create(rows, gpu, peak, dtype)
    seconds = rows["time_us"] * 1e-6
    weight = np.ones(len(rows))

    best, left_out = _fit_folds(rows, shapes, BACKWARD_PARAMETERS, forward, weight, evaluations=200)
    return best, _statistics(left_out, seconds)


def _fit_folds(
    rows: Rows,
    shapes: AttentionShapes,
    parameters: list[Parameter],
    known: Coefficients,
    weight: np.ndarray,
    *,
    evaluations: int,
) -> tuple[Coefficients, np.ndarray]:
    """The best `parameters` beside `known` ones, and the log errors of each of
    five folds of shapes under the fit without it."""
    seconds = rows["time_us"] * 1e-6

    def predict(chosen: Coefficients, on: AttentionShapes = shapes) -> np.ndarray:
        return on.seconds({**known, **chosen})

    best = fit(parameters, predict, seconds, weight, [{}])
    fold = folds(rows, ("q_len", "heads", "kv_heads"), 5)
    left_out = np.zeros(len(rows))
    for held in range(5):
        train, test = fold != held, fold == held
        if not test.any():
            continue
        chosen = fit(
            parameters,
            partial(predict, on=shapes.select(train)),
            seconds[train],
            weight[train],
            [best],
            evaluations=evaluations,
            restarts=1,
        )
        left_out[test] = np.log(predict(chosen, shapes.select(test)) / seconds[test])
    return best, left_out
