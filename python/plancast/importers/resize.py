"""Other sequence lengths than the one a program was exported with."""

from __future__ import annotations

from plancast.errors import InputError
from plancast.importers.lower import Lowered

_DIMS = ("seq", "kv_seq")


def resize(lowered: Lowered, seq: int) -> None:
    """Gives the sequence another length, where nothing else follows from it."""
    length = lowered.dims.get("seq")
    if length is None:
        raise InputError("`seq` names the tokens of a sequence, and this model has none.")
    if length == seq:
        return
    for op in lowered.ops:
        mapped = "where" in op.text.replace("where t <= s", "")
        if mapped and any(dim in _DIMS for dim in op.factor_dims.values()):
            raise InputError(
                f"the program was exported with sequences of {length} tokens, and sizes in "
                f"`{op.node.path or op.node.rule}` follow from that. Export it with {seq}."
            )
    for dim in _DIMS:
        if dim in lowered.dims:
            lowered.dims[dim] = seq
