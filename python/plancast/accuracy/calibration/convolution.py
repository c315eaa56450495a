"""Convolutions as the products that they are, and the factors between the two."""

from __future__ import annotations

import numpy as np

from .fit import Coefficients, Kernels, Statistics, mean_error, median_error, robust_sigma
from .rows import Gpu, Rows

COLUMNS = (
    "batch", "in_h", "in_w", "in_c", "out_c", "kh", "kw", "stride", "out_h", "out_w", "time_us",
)  # fmt: skip
PASSES = {"fwd": "forward", "bwd_data": "dgrad", "bwd_weight": "wgrad"}
SHAPES = ("pointwise", "strided_pointwise", "window3", "other")
BYTES = {"bf16": 2, "fp32": 4}
# Shorter kernels tell about launches.
SHORTEST_S = 50e-6
MIN_ROWS = 3
# Factors by shape and pass.
Factors = dict[str, dict[str, float]]


def shape_of(rows: Rows) -> np.ndarray:
    """Which of SHAPES each row's windows are."""
    points, stride = rows["kh"] * rows["kw"], rows["stride"]
    one, near = points == 1, stride == 1
    three = (rows["kh"] == 3) & (rows["kw"] == 3) & near
    return np.where(
        one & near, SHAPES[0], np.where(one, SHAPES[1], np.where(three, SHAPES[2], SHAPES[3]))
    )


def kernels_of(rows: Rows, gpu: Gpu, dtype: str) -> Kernels:
    """The products that the convolutions are (compiler/lower/kernels/lower_kernel.cc), with the
    traffic of the images."""
    forward, wgrad = rows["phase"] == "fwd", rows["phase"] == "bwd_weight"
    positions = rows["batch"] * rows["out_h"] * rows["out_w"]
    window = rows["kh"] * rows["kw"]
    inputs, outputs = rows["in_c"], rows["out_c"]
    columns = {
        "m": np.where(wgrad, outputs, positions),
        "n": np.where(forward, outputs, np.where(wgrad, inputs * window, inputs)),
        "k": np.where(forward, inputs * window, np.where(wgrad, positions, outputs * window)),
        "pass": np.where(forward, 0, np.where(wgrad, 2, 1)),
        "window": window,
        "stride": rows["stride"],
        "channels_last": np.ones(len(rows)),
        "read_bytes": border_bytes(rows, dtype),
    }
    return Kernels("convolution", gpu, dtype, columns)


def border_bytes(rows: Rows, dtype: str) -> np.ndarray:
    """Both images and the weights, once."""
    images = rows["batch"] * (
        rows["in_h"] * rows["in_w"] * rows["in_c"] + rows["out_h"] * rows["out_w"] * rows["out_c"]
    )
    weights = rows["kh"] * rows["kw"] * rows["in_c"] * rows["out_c"]
    return np.asarray(BYTES[dtype] * (images + weights))


def fit_convolution(
    rows: Rows, gpu: Gpu, dtype: str, c: Coefficients
) -> tuple[Factors, Statistics]:
    """Factors where there are rows, and how far a row is from the others' factor."""
    seconds = rows["time_us"] * 1e-6
    ratio = seconds / kernels_of(rows, gpu, dtype).seconds(c)
    shapes = shape_of(rows)
    factors: Factors = {}
    left_out = np.full(len(rows), np.nan)
    for shape in SHAPES:
        for phase, name in PASSES.items():
            mask = (shapes == shape) & (rows["phase"] == phase)
            if mask.sum() < MIN_ROWS:
                continue
            of_cell = ratio[mask]
            factors.setdefault(shape, {})[name] = float(np.median(of_cell))
            others = [np.median(np.delete(of_cell, i)) for i in range(len(of_cell))]
            left_out[mask] = np.log(np.array(others) / of_cell)
    known = left_out[np.isfinite(left_out)]
    return factors, {
        "rows": len(known),
        "held_out_error": median_error(known),
        "held_out_mean_error": mean_error(known),
        "sigma": robust_sigma(known),
    }


def complete(factors: Factors, others: list[Factors]) -> tuple[Factors, list[str]]:
    """All cells: what a GPU's rows cannot tell is the others' median for the type, else
    the factor of windows of other shapes. Also the names of the cells taken over."""
    whole: Factors = {}
    taken = []
    for shape in SHAPES:
        whole[shape] = {}
        for name in PASSES.values():
            own = factors.get(shape, {}).get(name)
            if own is None:
                known = [o[shape][name] for o in others if name in o.get(shape, {})]
                near = [factors[s][name] for s in reversed(SHAPES) if name in factors.get(s, {})]
                own = float(np.median(known)) if known else near[0]
                taken.append(f"{shape} {name}")
            whole[shape][name] = own
    return whole, taken
