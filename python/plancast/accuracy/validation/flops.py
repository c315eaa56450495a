"""The counts of FLOPs that publications divide by the time.

B samples, s tokens each, L layers, h hidden, V vocabulary; per optimizer step.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from plancast.accuracy.validation.architecture import UnsupportedError, fields_of
from plancast.accuracy.validation.rows import Row
from plancast.accuracy.validation.weights import (
    attention_weights,
    feed_forward_weights,
    matmul_weights,
    routed_layers,
)


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


def _fields(row: Row) -> dict[str, Any]:
    try:
        return fields_of(row, {})
    except UnsupportedError as error:
        raise UnknownFormulaError(str(error)) from None


def _model_full(row: Row, _: int) -> float:
    weights, width = matmul_weights(_fields(row))
    b, s = row.global_batch, row.seq_len or 0
    return b * s * (6 * weights + 12 * width * s)


def _model_causal(row: Row, _: int) -> float:
    weights, width = matmul_weights(_fields(row))
    b, s = row.global_batch, row.seq_len or 0
    return b * s * (6 * weights + 6 * width * s)


def _model_causal_mtp(row: Row, _: int) -> float:
    """With one more layer of the last kind, a projection of 2 h to h, and a second head."""
    fields = _fields(row)
    b, s, _layers, h, v = _sizes(row)
    attention, width = attention_weights(fields)
    routed = routed_layers(fields) > 0
    weights = attention + feed_forward_weights(fields, routed=routed)
    extra = b * s * (6 * (weights + 2 * h * h + v * h) + 6 * width * s)
    return _model_causal(row, 0) + extra


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
    "model_causal_mtp": _model_causal_mtp,
    "hw_8n": _hw_8n,
}
