"""Kinds of 8-bit scaling that rows name (`fp8=` in their assumptions)."""

from __future__ import annotations

from plancast.accuracy.validation.rows import Row
from plancast.accuracy.validation.software import kept_in
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
    """What is stored or sent in 8 bits: FSDP's gathers (torchao, enable_fsdp_float8_all_gather),
    and parameters, as the software's recipes keep them."""
    if "all-gather" in (row.assumption("fp8") or ""):
        return {"gather_dtype": "fp8"}
    recipe = kept_in(row.software, dtype_of(row))
    return {} if recipe is None else {"param_dtype": recipe}
