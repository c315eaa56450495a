"""Kinds of 8-bit scaling that rows name (`fp8=` in their assumptions)."""

from __future__ import annotations

from plancast.accuracy.validation.rows import Row
from plancast.accuracy.validation.software import (
    kept_in,
    master_of,
    moments_in,
    optimizer_in,
    reduces_in,
)
from plancast.precision import Types

# Parts of words of frameworks: torchao's float8_rowwise, Transformer Engine's blockwise and
# subchannel scaling. Others have a scale for each tensor.
_SCALINGS = {"row": "fp8-row", "block": "fp8-block", "subchannel": "fp8-block"}


def dtype_of(row: Row) -> str:
    """The precision of matrix products."""
    said = row.assumption("fp8") or ""
    if row.dtype == "fp8":
        for part, dtype in _SCALINGS.items():
            if part in said:
                return dtype
    return row.dtype


def types_of(row: Row) -> Types:
    """What is stored or sent in fewer bits, and the optimizer.

    FSDP's gathers (torchao, enable_fsdp_float8_all_gather), and parameters, fp32 copies of them,
    moments, sums of gradients and optimizer as in the software's recipes, but for what the row
    says of attention and parameters itself.
    """
    types: Types = {}
    attention, kept = row.assumption("attention_dtype"), row.assumption("param_dtype")
    if attention is not None:
        types["attention_dtype"] = attention
    gathers = "all-gather" in (row.assumption("fp8") or "")
    if kept is None and not gathers:
        kept = kept_in(row.software, dtype_of(row))
    if kept is not None:
        types["param_dtype"] = kept
    if gathers:
        types["gather_dtype"] = "fp8"
        return types
    moments = moments_in(row.software, row.model)
    if moments is not None:
        types["state_dtype"] = moments
    master = master_of(row.software)
    if master is not None:
        types["master"] = master
    reduces = reduces_in(row.software)
    if reduces is not None:
        types["reduce_dtype"] = reduces
    optimizer = optimizer_in(row.software, row.model)
    if optimizer is not None:
        types["optimizer_type"] = optimizer
    return types
