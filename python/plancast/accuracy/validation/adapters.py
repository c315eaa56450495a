"""Low-rank adapters that a row trains in place of its model's weights."""

from __future__ import annotations

import re
from typing import Any

from plancast.accuracy.validation.architecture import UnsupportedError
from plancast.accuracy.validation.rows import Row

_ADAPTERS = re.compile(
    r"(?P<rank>[1-9]\d*):(?P<on>[\w.]+(?:\+[\w.]+)*)(?::(?P<base>nf4))?(?::(?P<dropout>0?\.\d+))?"
)


def adapters_of(row: Row) -> dict[str, Any]:
    """Nodes for a row with a token `lora=RANK:OP+OP[:nf4][:DROPOUT]`; none without one.

    `nf4`: the weights beside them rest in four bits; DROPOUT: the share of their input that is
    dropped. Raises UnsupportedError for a token that is no such text.
    """
    said = row.assumption("lora")
    if said is None:
        return {}
    found = _ADAPTERS.fullmatch(said)
    if found is None:
        raise UnsupportedError(
            f"`lora={said}` is no `lora=RANK:OP+OP[:nf4][:DROPOUT]`, such as `lora=16:qkv+proj`"
        )
    lora: dict[str, Any] = {"rank": int(found["rank"]), "on": found["on"].split("+")}
    if found["base"]:
        lora["base"] = found["base"]
    if found["dropout"]:
        lora["dropout"] = float(found["dropout"])
    return {"": {"lora": lora}}
