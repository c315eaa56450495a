"""Published rates of attention as rows of attention.csv."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from plancast.accuracy.table import Cells, Table

from . import attention
from .rows import Rows

HEAD_DIM = 128  # where a file does not say

# TFLOP/s of cuDNN on Blackwell by its releases (NVIDIA/cudnn-frontend, results in
# benchmark/sdpa_benchmark_training and before it in sdpa_benchmark_bf16_training, at the commits in
# column `version`). B200's are of 2025, through PyTorch, from 4,096 positions on, where the host's
# part no longer shows.
CUDNN = Path(__file__).with_name("attention_cudnn.csv")
CUDNN_SOURCE = "cudnn-fe published"
# Beside rows of which kernels (plan.ATTENTION_CHOICES) they stand.
_BESIDE = {"B200-SXM": "te/flash", "GB300": "cudnn"}


class Collected:
    """Rows one by one."""

    def __init__(self) -> None:
        self._numbers: dict[str, list[float]] = {name: [] for name in attention.COLUMNS}
        self._phases: list[str] = []

    def add(self, cells: Cells, rate: float, backward: bool) -> None:
        """`rate`: TFLOP/s, of half the scores under a mask; five products backward, two forward."""
        sizes = {n: cells.whole(n) or 0 for n in ("batch", "heads", "kv_heads", "seq", "causal")}
        dim, dim_v = (cells.whole(n) or HEAD_DIM for n in ("head_dim", "head_dim_v"))
        per_pair = 6 * dim + 4 * dim_v if backward else 2 * (dim + dim_v)
        flops = per_pair * sizes["batch"] * sizes["heads"] * float(sizes["seq"]) ** 2
        flops /= 2 if sizes["causal"] else 1
        row = {
            **sizes,
            "q_len": sizes["seq"],
            "kv_len": sizes["seq"],
            "head_dim": dim,
            "head_dim_v": dim_v,
            "window": 0,
            "time_us": flops / rate * 1e-6,
        }
        for name, column in self._numbers.items():
            column.append(row[name])
        self._phases.append("train_bwd" if backward else "train_fwd")

    def rows(self, texts: dict[str, list[str]] | None = None) -> Rows:
        """All of them; `texts`: further columns."""
        more = {name: np.array(column, object) for name, column in (texts or {}).items()}
        numbers = {n: np.array(c, float) for n, c in self._numbers.items()}
        return Rows({**numbers, "phase": np.array(self._phases, object), **more})


def cudnn_rows(path: Path = CUDNN) -> Rows:
    """Those of cuDNN, with the columns by which attention.csv is selected from."""
    collected = Collected()
    texts: dict[str, list[str]] = {"gpu": [], "impl": [], "dtype": [], "source": []}
    for cells in Table(path).rows():
        gpu = cells.text("gpu")
        for phase in ("forward", "backward"):
            rate = cells.positive(phase)
            if rate is None:
                continue
            collected.add(cells, rate, phase == "backward")
            row = (gpu, _BESIDE[gpu], cells.text("dtype"), CUDNN_SOURCE)
            for name, text in zip(texts, row, strict=True):
                texts[name].append(text)
    return collected.rows(texts)
