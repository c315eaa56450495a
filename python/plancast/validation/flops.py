"""The counts of FLOPs that publications divide by the time.

B samples, s tokens each, L layers, h hidden, V vocabulary; per optimizer step.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from plancast.validation.rows import Row


class UnknownFormulaError(Exception):
    """The row's count of FLOPs cannot be reproduced."""


def published_flops(row: Row, parameters: int) -> float:
    """FLOPs of one step by the row's own formula; `parameters` counts tied ones once."""
    formula = _FORMULAS.get(row.flops_formula)
    if formula is None:
        said = row.flops_formula or "none"
        raise UnknownFormulaError(f"only a rate is printed and its FLOP formula is `{said}`")
    return formula(row, parameters)


def measured_seconds(row: Row, parameters: int, devices: int, peak_flops: float) -> float | None:
    """The measured time of one step: printed, or from the printed rate; None for an OOM row."""
    if row.iter_time_s is not None:
        return row.iter_time_s
    if row.tflops_per_gpu:
        return published_flops(row, parameters) / (row.tflops_per_gpu * 1e12 * devices)
    if row.mfu:
        return published_flops(row, parameters) / (row.mfu * peak_flops * devices)
    return None


def _sizes(row: Row) -> tuple[int, int, int, int, int]:
    return row.global_batch, row.seq_len or 0, row.layers or 0, row.hidden or 0, row.vocab or 0


def _hw_96_recompute(row: Row, _: int) -> float:
    b, s, layers, h, v = _sizes(row)
    return 96 * b * s * layers * h**2 * (1 + s / (6 * h) + v / (16 * layers * h))


def _model_72_full(row: Row, _: int) -> float:
    b, s, layers, h, v = _sizes(row)
    return 72 * b * s * layers * h**2 * (1 + s / (6 * h) + v / (12 * layers * h))


def _palm_6n12(row: Row, parameters: int) -> float:
    b, s, layers, h, _ = _sizes(row)
    return b * s * (6 * parameters + 12 * layers * h * s)


def _matmul_weights(row: Row) -> tuple[int, int]:
    """Active matmul weights with the LM head, and heads * head_dim."""
    _, _, layers, hidden, vocab = _sizes(row)
    heads = row.heads or 1
    head_dim = row.head_dim or hidden // heads
    kv_heads = row.kv_heads or heads
    attention = hidden * head_dim * (2 * heads + 2 * kv_heads)
    matrices = 3 if row.mlp in ("swiglu", "geglu") else 2
    mlp = matrices * hidden * (row.ffn_hidden or 4 * hidden)
    return layers * (attention + mlp) + vocab * hidden, heads * head_dim


def _model_full(row: Row, _: int) -> float:
    b, s, layers, _, _ = _sizes(row)
    weights, a = _matmul_weights(row)
    return b * s * (6 * weights + 12 * layers * a * s)


def _model_causal(row: Row, _: int) -> float:
    b, s, layers, _, _ = _sizes(row)
    weights, a = _matmul_weights(row)
    return b * s * (6 * weights + 6 * layers * a * s)


def _hw_8n(row: Row, _: int) -> float:
    match = re.search(r"(\d+(?:\.\d+)?)([mbt])\b", row.model.lower())
    if match is None:
        raise UnknownFormulaError(
            f"`hw_8n` needs a size in the model's name, and it is `{row.model}`"
        )
    size = float(match[1]) * {"m": 1e6, "b": 1e9, "t": 1e12}[match[2]]
    batch, seq = row.global_batch, row.seq_len or 0
    return 8 * size * batch * seq


_FORMULAS: dict[str, Callable[[Row, int], float]] = {
    "hw_96_recompute": _hw_96_recompute,
    "model_72_full": _model_72_full,
    "palm_6n12": _palm_6n12,
    "model_full": _model_full,
    "model_causal": _model_causal,
    "hw_8n": _hw_8n,
}
