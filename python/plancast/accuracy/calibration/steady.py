"""Boards with the chip of a measured one, of which loops over a few products are published.

The chip's coefficients hold but for what power decides: the share of the peak, and what is lost
where a kernel is long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from . import gemm, plan
from .fit import Coefficients, Kernels, Statistics
from .generic import DEFAULT_FACTOR_SIGMA
from .rows import Gpu, Rows
from .textproto import Message

BY_POWER = ["mma_fraction", "sustained_loss"]


@dataclass(frozen=True)
class Loops:
    """TFLOP/s of (m, n, k), steady: 10,000 launches before those that are timed."""

    gpu: str
    chip: str  # whose coefficients hold for the rest
    dtype: str
    source: str
    tflops: dict[tuple[int, int, int], float]


_AZURE = "cuBLASLt 13.0, egmsft/AI-benchmarking-guide @3371c0c, ND_GB300_v6_results.md"
# The same page's products in 8 bits agree with the chip's coefficients: 2 % too fast to 5 % too
# slow from 8,192 on. In 4 bits the rows of inference stacks, which those are fitted to, take 1.6
# times as long as these.
PUBLISHED = (
    Loops(
        "GB300",
        "B300-SXM",
        "nvfp4",
        _AZURE,
        {
            (4096, 4096, 4096): 5417.0,
            (8192, 8192, 8192): 8155.9,
            (16384, 16384, 16384): 8640.3,
            (32768, 32768, 32768): 8555.1,
        },
    ),
)


def messages(
    tables: dict[str, Message],
    gpus: dict[str, Gpu],
    fit_message: Callable[[str, Statistics, float, str], Message],
) -> list[tuple[str, Message]]:
    """(GPU, message) of each type that loops tell, where the chip itself was measured."""
    result = []
    for loops in PUBLISHED:
        chips = tables.get(loops.chip, {}).get("gemm", ())
        chip = next((m for m in chips if m["dtype"] == loops.dtype), None)
        if chip is None or loops.gpu not in gpus:
            continue
        gpu = gpus[loops.gpu]
        known = {name: chip[name] for name in gemm.wanted(loops.dtype)}
        found = _fit(loops, gpu, known)
        errors = _left_out(loops, gpu, known)
        stats: Statistics = {
            "rows": len(loops.tflops),
            "held_out_error": float(np.median(errors)),
            "sigma": float(np.sqrt(np.mean(np.square(errors)))),
        }
        note = f"{' and '.join(BY_POWER)}; the rest of {loops.chip}"
        message = {
            **{name: chip[name] for name in ("dtype", "tile", "split_k")},
            "peak_flops": gpu.peaks[plan.PEAK[loops.dtype]],
            **found,
            "own_only": True,
            "fit": fit_message(loops.source, stats, DEFAULT_FACTOR_SIGMA, note),
        }
        result.append((loops.gpu, message))
    return result


def _fit(loops: Loops, gpu: Gpu, known: Coefficients) -> Coefficients:
    """With what power decides; the rest as known."""
    kernels, seconds = _kernels(loops, gpu)
    rest = {name: value for name, value in _bare(known).items() if name not in BY_POWER}
    start = {name: known[name] for name in BY_POWER}
    found = kernels.fit(seconds, np.ones(len(seconds)), BY_POWER, rest, [start])
    return {**known, **{name: found[name] for name in BY_POWER}}


def _left_out(loops: Loops, gpu: Gpu, known: Coefficients) -> np.ndarray:
    """Relative errors of each product by what the others tell."""
    errors = []
    for left in loops.tflops:
        others = {sizes: rate for sizes, rate in loops.tflops.items() if sizes != left}
        found = _fit(replace(loops, tflops=others), gpu, known)
        kernels, seconds = _kernels(replace(loops, tflops={left: loops.tflops[left]}), gpu)
        errors.append(float(np.log(kernels.seconds(_bare(found)) / seconds)[0]))
    return np.abs(errors)


def _bare(coefficients: Coefficients) -> Coefficients:
    """The loops quantise nothing."""
    return {**coefficients, "quantize_bytes": 0.0}


def _kernels(loops: Loops, gpu: Gpu) -> tuple[Kernels, np.ndarray]:
    sizes = np.array(list(loops.tflops), dtype=float)
    seconds = 2 * sizes.prod(axis=1) / (np.array(list(loops.tflops.values())) * 1e12)
    columns = {"m": sizes[:, 0], "n": sizes[:, 1], "k": sizes[:, 2], "batch": np.ones(len(sizes))}
    return gemm.kernels_of(Rows(columns), gpu, loops.dtype), seconds
