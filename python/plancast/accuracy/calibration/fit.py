"""Kernels as columns for the C++ core, which prices and fits them, and statistics of errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plancast import _core

from .rows import Gpu

# Coefficients of a model, and how well they fit, by name.
Coefficients = dict[str, float]
Statistics = dict[str, Any]

# Kernels that carry training time.
LARGE_S = 50e-6
FOLDS = 5


@dataclass(frozen=True)
class Kernels:
    """Kernels of one family (`gemm`, `attention`, `memory`, `convolution`) on one GPU; columns
    are named as the fields of KernelSpec (graph/kernel_spec.h)."""

    family: str
    gpu: Gpu
    dtype: str
    columns: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def select(self, mask: np.ndarray) -> Kernels:
        chosen = {name: column[mask] for name, column in self.columns.items()}
        return Kernels(self.family, self.gpu, self.dtype, chosen)

    @property
    def sizes(self) -> dict[str, list[float]]:
        """The columns as the core takes them."""
        return {name: column.astype(float).tolist() for name, column in self.columns.items()}

    def seconds(self, coefficients: Coefficients) -> np.ndarray:
        """Their times by the formula that prices."""
        return np.array(
            _core.price_kernels(
                self.family, self.gpu.name, self.gpu.figures, self.dtype, self.sizes, coefficients
            )
        )

    def seconds_by(self, files: dict[str, str]) -> np.ndarray:
        """Their times by the whole chain of models over the coefficients in these files."""
        return np.array(
            _core.KernelTables(files).price(
                self.family, self.gpu.name, self.gpu.figures, self.dtype, self.sizes
            )
        )

    def fit(
        self,
        seconds: np.ndarray,
        weight: np.ndarray,
        wanted: Sequence[str],
        known: Coefficients | None = None,
        starts: Sequence[Coefficients] = ({},),
    ) -> Coefficients:
        """The `wanted` coefficients with the least robust loss beside the `known` ones, and
        those; from each of `starts`, the best end counts."""
        found = _core.fit_kernels(
            self.family, self.gpu.name, self.gpu.figures, self.dtype, self.sizes,
            seconds.tolist(), weight.tolist(), list(wanted), known or {}, list(starts),
        )  # fmt: skip
        order = [*wanted, *(name for name in found if name not in wanted)]
        return {name: found[name] for name in order}


def left_out_errors(
    kernels: Kernels,
    seconds: np.ndarray,
    weight: np.ndarray,
    fold: np.ndarray,
    wanted: Sequence[str],
    known: Coefficients,
    best: Coefficients,
) -> np.ndarray:
    """Log errors of each fold under the fit without it, from the best of all as its start."""
    errors = np.zeros(len(seconds))
    start = {name: best[name] for name in wanted}
    for held in range(FOLDS):
        train, test = fold != held, fold == held
        if not test.any() or not train.any():
            continue
        chosen = kernels.select(train).fit(seconds[train], weight[train], wanted, known, [start])
        errors[test] = np.log(kernels.select(test).seconds(chosen) / seconds[test])
    return errors


def median_error(log_ratio: np.ndarray) -> float:
    return float(np.median(np.abs(np.expm1(log_ratio)))) if len(log_ratio) else float("nan")


def mean_error(log_ratio: np.ndarray) -> float:
    return float(np.mean(np.abs(np.expm1(log_ratio)))) if len(log_ratio) else float("nan")


def robust_sigma(log_ratio: np.ndarray) -> float:
    """Standard deviation of the core of the distribution."""
    return float(1.4826 * np.median(np.abs(log_ratio - np.median(log_ratio))))


def statistics(left_out: np.ndarray, seconds: np.ndarray, core: np.ndarray) -> Statistics:
    """How well a fit does on left-out rows; `core`: the rows that sigma is taken over."""
    large = seconds > LARGE_S
    return {
        "rows": len(seconds),
        "held_out_error": median_error(left_out),
        "held_out_error_large": median_error(left_out[large]),
        "held_out_mean_error": mean_error(left_out),
        "sigma": robust_sigma(left_out[core]),
    }
