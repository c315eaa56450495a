"""GPUs of AMD whose attention and memory are known from published figures alone.

They stand for the GPUs that they name and for no other (`own_only`), so what medians and the
roofline say of GPUs without rows is as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plancast.accuracy.table import Table

from . import attention
from .attention_rows import Collected
from .fit import Coefficients, Statistics
from .generic import DEFAULT_FACTOR_SIGMA
from .rows import Gpu, Rows
from .textproto import Message

FitMessage = Callable[[str, Statistics, float, str], Message]

# TFLOP/s of AITER's kernels in assembly, bf16, heads of 128; a mask halves the FLOPs, backward is
# 2.5 times forward. Backward adds gradients of queries in 16 bits, as the dockers of Primus have
# it (NVTE_CK_IS_V3_ATOMIC_FP32=0 of its Dockerfiles); in 32 bits it takes 1.1 (MI300X) and 1.4
# times (MI355X) as long.
AITER = Path(__file__).with_name("attention_aiter.csv")
AITER_SOURCE = "attention_aiter.csv (ROCm/aiter @e404860, op_tests/cpp/mha/README.md, a16)"
AITER_KERNEL = "aiter-v3"


@dataclass(frozen=True)
class Board:
    """A GPU with the chip of a measured one and another power.

    `gain`: the best bf16 products of the two in TFLOP/s, found in the same way.
    """

    gpu: str
    like: str
    gain: tuple[float, float]
    source: str


# What power gives products it gives attention, whose kernels the same limit holds back
# (assumption). An average over shapes of another library says 1.2 and more (ROCm/FlyDSL pull
# request 225).
BOARDS = (Board("MI325X", "MI300X", (843.0, 708.0), "ROCm/rocm-blogs @8e01195, MAF 2"),)


@dataclass(frozen=True)
class Streams:
    """GB/s of loops over arrays far beyond every cache, by what they do."""

    gpu: str
    rates: dict[str, float]
    source: str
    also: tuple[str, ...] = ()  # GPUs of its kind without such figures: an assumption


STREAMS = (
    Streams(
        "MI300X",
        {"copy": 4150.0, "mul": 4280.0, "add": 4130.0, "triad": 4100.0},
        "BabelStream, egmsft/AI-benchmarking-guide @3371c0c, ND_MI300X_v5_results.md",
        also=("MI325X", "MI355X"),
    ),
)
_SIGMA = 0.05
_ASSUMED_SIGMA = 0.15


def aiter_rows(gpu: str, path: Path = AITER) -> Rows:
    """The rows of one GPU, in the columns of attention.csv; none where it has no column."""
    table = Table(path)
    collected = Collected()
    for cells in table.rows() if f"{gpu}_forward" in table.columns else ():
        for phase in ("forward", "backward"):
            rate = cells.positive(f"{gpu}_{phase}")
            if rate is not None:
                collected.add(cells, rate, phase == "backward")
    return collected.rows()


def attention_messages(
    gpus: dict[str, Gpu], softmax: dict[float, float], fit_message: FitMessage
) -> dict[str, Message]:
    """Messages by GPU.

    Args:
      gpus: by name.
      softmax: dimensions that stand for the softmax's time, by peak per SM in FLOP/s: the rows
        have one head dimension and cannot tell.
      fit_message: makes the message of a fit.
    """
    messages: dict[str, Message] = {}
    for name in ("MI300X", "MI355X"):
        gpu = gpus.get(name)
        if gpu is None or not softmax:
            continue
        peak = gpu.peaks["bf16"]
        known = {"softmax_dim": attention.softmax_dim_like(peak / gpu.sms, softmax)}
        rows = aiter_rows(name)
        forward, backward = (rows[rows["phase"] == f"train_{p}"] for p in ("fwd", "bwd"))
        found, stats = attention.fit_forward(forward, gpu, "bf16", known)
        more, more_stats = attention.fit_backward(backward, gpu, "bf16", found)
        note = "softmax_dim: of GPUs whose rows tell"
        messages[name] = {
            "dtype": "bf16",
            "peak_flops": peak,
            **found,
            "fit": fit_message(AITER_SOURCE, stats, DEFAULT_FACTOR_SIGMA, note),
            "kernel": AITER_KERNEL,
            "own_only": True,
            **more,
            "backward_fit": fit_message(AITER_SOURCE, more_stats, DEFAULT_FACTOR_SIGMA, ""),
        }
    for board in BOARDS:
        if board.gpu in gpus and board.like in messages:
            messages[board.gpu] = _on(board, gpus, messages[board.like])
    return messages


def _on(board: Board, gpus: dict[str, Gpu], like: Message) -> Message:
    """The message of the same chip with other power."""
    own, other = (gpus[name].peaks["bf16"] for name in (board.gpu, board.like))
    share = like["mma_fraction"] * board.gain[0] / board.gain[1] * other / own
    note = f"{board.like}'s, faster as products are with its power ({board.source})"
    fits = {
        name: {**like[name], "factor_sigma": _ASSUMED_SIGMA, "note": note}
        for name in ("fit", "backward_fit")
    }
    return {**like, "peak_flops": own, "mma_fraction": min(share, 1.0), **fits}


def memory_messages(
    gpus: dict[str, Gpu], floor_s: float, fit_message: FitMessage
) -> dict[str, Message]:
    """Messages by GPU: the median of what the loops reach, as a share of the memory's rate."""
    messages: dict[str, Message] = {}
    for streams in STREAMS:
        if streams.gpu not in gpus:
            continue
        rates = np.array(list(streams.rates.values())) * 1e9
        share = float(np.median(rates)) / gpus[streams.gpu].bytes_per_s
        coefficients: Coefficients = {"memory_fraction": share, "floor_s": floor_s}
        spread = float(np.std(rates / np.median(rates)))
        for name in (streams.gpu, *(n for n in streams.also if n in gpus)):
            own = name == streams.gpu
            stats: Statistics = {"rows": len(rates), "held_out_error": spread, "sigma": _SIGMA}
            note = "" if own else f"assumption: the share that {streams.gpu} reaches"
            sigma = DEFAULT_FACTOR_SIGMA if own else _ASSUMED_SIGMA
            fit = fit_message(streams.source, stats, sigma, note)
            messages[name] = {**coefficients, "fit": fit, "own_only": True}
    return messages
