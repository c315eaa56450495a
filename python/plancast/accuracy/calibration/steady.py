"""GPUs of which loops over a few products are published, and their like was measured.

The coefficients of their like (boards with the same chip, or GPUs of the same maker) hold but for
what power decides: the share of the peak, and what is lost where a kernel is long.
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
    """TFLOP/s of (m, n, k), in loops that last."""

    gpu: str
    like: str  # whose coefficients hold for the rest
    dtype: str
    source: str
    tflops: dict[tuple[int, int, int], float]
    like_dtype: str = ""  # of which type; "": the same


_AZURE = "cuBLASLt 13.0, egmsft/AI-benchmarking-guide @3371c0c, ND_GB300_v6_results.md"
_AZURE_AMD = "hipBLASLt of ROCm 6.2, egmsft/AI-benchmarking-guide @3371c0c, ND_MI300X_v5_results.md"
# The fastest product of a type that a search found, in loops of a second.
_MAF = (
    "hipBLASLt, best of many products, ROCm/rocm-blogs @8e01195, measuring max-achievable FLOPS 2"
)
_TAF = "hipBLASLt of ROCm 7.2.1, best of many products, normal data, ROCm/rocm-blogs, 2026-10"
# What a library takes where nobody searched; its loop over products of 4,096 (752 TFLOP/s) ends
# after 7 ms, before clocks drop. Of MI300X no such loops are published: the best products of both
# boards, 708 and 843 TFLOP/s in one table, say how much less its power allows.
_HIPKITTENS = "HazyResearch/HipKittens @f09e968, analysis/*_gemm"
_MI325X = {(8192,) * 3: 785.3, (16384,) * 3: 749.8}
_MI300X = {sizes: rate * 708.0 / 843.0 for sizes, rate in _MI325X.items()}
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
    Loops("MI325X", "MI355X", "bf16", f"PyTorch (hipBLASLt), {_HIPKITTENS}", _MI325X),
    Loops("MI300X", "MI355X", "bf16", f"MI325X's loops x 708/843: {_MAF}", _MI300X),
    Loops(
        "MI355X",
        "MI355X",
        "fp8",
        f"hipBLASLt, {_HIPKITTENS}",
        {(4096,) * 3: 2748.8, (8192,) * 3: 3233.2, (16384,) * 3: 3293.2},
        "fp8-block",
    ),
    Loops(
        "MI350X",
        "MI350X",
        "fp8",
        f"hipBLASLt, {_HIPKITTENS}",
        {(4096,) * 3: 1977.2, (8192,) * 3: 2660.2, (16384,) * 3: 2294.3},
        "fp8-block",
    ),
    Loops(
        "MI300X",
        "MI300X",
        "fp8",
        _AZURE_AMD,
        {
            (2048, 2048, 2048): 726.9,
            (4096, 4096, 4096): 1085.4,
            (8192, 8192, 8192): 1222.9,
            (16384, 16384, 16384): 1081.4,
            (32768, 32768, 32768): 1142.4,
            (6144, 12288, 12288): 1148.7,
        },
        "fp8-block",
    ),
    Loops("MI325X", "MI300X", "fp8", _TAF, {(4096, 3648, 32896): 1408.1}),
)
# Of a single product: what others of the kind are off by, an assumption.
_ONE_SIGMA = 0.15


def messages(
    tables: dict[str, Message],
    gpus: dict[str, Gpu],
    fit_message: Callable[[str, Statistics, float, str], Message],
) -> list[tuple[str, Message]]:
    """(GPU, message) of each type that loops tell, where its like was measured or comes before."""
    result: list[tuple[str, Message]] = []
    for loops in PUBLISHED:
        wanted = loops.like_dtype or loops.dtype
        messages_of = [
            *tables.get(loops.like, {}).get("gemm", ()),
            *(message for name, message in result if name == loops.like),
        ]
        like = next((m for m in messages_of if m["dtype"] == wanted), None)
        if like is None or loops.gpu not in gpus:
            continue
        gpu = gpus[loops.gpu]
        known = {name: like[name] for name in gemm.wanted(loops.dtype)}
        found = _fit(loops, gpu, known)
        errors = _left_out(loops, gpu, known)
        one = len(loops.tflops) == 1
        stats: Statistics = {
            "rows": len(loops.tflops),
            "held_out_error": _ONE_SIGMA if one else float(np.median(errors)),
            "sigma": _ONE_SIGMA if one else float(np.sqrt(np.mean(np.square(errors)))),
        }
        rest = loops.like if loops.like != loops.gpu else f"{loops.gpu} in {wanted}"
        note = f"{' and '.join(_free(loops))}; the rest of {rest}"
        message = {
            "dtype": loops.dtype,
            **{name: like[name] for name in ("tile", "split_k")},
            "peak_flops": gpu.peaks[plan.PEAK[loops.dtype]],
            **found,
            "own_only": True,
            "fit": fit_message(
                loops.source, stats, _ONE_SIGMA if one else DEFAULT_FACTOR_SIGMA, note
            ),
        }
        result.append((loops.gpu, message))
    return result


def _free(loops: Loops) -> list[str]:
    """What the loops can tell: one product no more than one figure."""
    return BY_POWER[: len(loops.tflops)]


def _fit(loops: Loops, gpu: Gpu, known: Coefficients) -> Coefficients:
    """With what power decides; the rest as known."""
    kernels, seconds = _kernels(loops, gpu)
    free = _free(loops)
    rest = {name: value for name, value in _bare(known).items() if name not in free}
    start = {name: known[name] for name in free}
    found = kernels.fit(seconds, np.ones(len(seconds)), free, rest, [start])
    return {**known, **{name: found[name] for name in free}}


def _left_out(loops: Loops, gpu: Gpu, known: Coefficients) -> np.ndarray:
    """Relative errors of each product by what the others tell."""
    errors = []
    for left in loops.tflops:
        others = {sizes: rate for sizes, rate in loops.tflops.items() if sizes != left}
        if not others:
            break
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
