"""Sums and linear equations of the same bits on every processor.

Those of numpy go through BLAS, which cuts sums by the processor's vectors, caches and threads.
"""

from __future__ import annotations

import math
import operator

import numpy as np


def dot(a: np.ndarray, b: np.ndarray) -> float:
    """The sum of the products, each rounded, the sum rounded once."""
    return math.fsum(map(operator.mul, a.tolist(), b.tolist()))


def solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """x of `matrix` x = `right`, where the matrix is symmetric and positive definite: by
    elimination, which needs no search for pivots there."""
    a, x = matrix.copy(), right.copy()
    for j in range(len(x)):
        for i in range(j + 1, len(x)):
            factor = a[i, j] / a[j, j]
            a[i] -= factor * a[j]
            x[i] -= factor * x[j]
    for j in reversed(range(len(x))):
        x[j] = (x[j] - dot(a[j, j + 1 :], x[j + 1 :])) / a[j, j]
    return x
