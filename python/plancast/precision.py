"""Types of what is stored and sent, and the optimizer, where a forecast asks for others than the
profile's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from plancast import arguments
from plancast.errors import InputError


class Types(TypedDict, total=False):
    """Types that one forecast asks for; what is absent is as the software profile says.

    A type is `fp32`, `bf16`, `fp16`, `fp8`, `fp8-row`, `fp8-block`, `mxfp8`, `nvfp4`, `int16`,
    `int8` or `int4` (docs/memory.md has the bytes of each).
    """

    grad_dtype: str | None
    """Gradients as they are accumulated."""
    main_grad_dtype: str | None
    """Gradients as the optimizer reads them; a copy while it runs, where they differ."""
    reduce_dtype: str | None
    """Gradients on the wire."""
    param_dtype: str | None
    """Parameters at rest."""
    gather_dtype: str | None
    """Parameters on the wire."""
    optimizer_type: str | None
    """What updates weights: `adam` (or `adamw`), `sgd`, `sgd-momentum`, `adagrad`, `rmsprop`,
    `lion`, `lamb` or `muon` (docs/memory.md has what each keeps, reads and writes)."""
    state_dtype: str | None
    """What the optimizer keeps of each weight (Adam's moments): a type, or FIRST+SECOND."""
    attention_dtype: str | None
    """Fused attention: `fp8` or `mxfp8`; otherwise in 16 bits, whatever products run in."""
    master: str | bool | None
    """The optimizer's own copy of the parameters: on, off or a type."""


def asked(types: Mapping[str, Any]) -> dict[str, str]:
    """What of keyword arguments is said, in the core's words.

    >>> asked({"grad_dtype": "bf16", "master": False, "state_dtype": None})
    {'grad_dtype': 'bf16', 'master': 'off'}
    """
    words: dict[str, str] = {}
    known = tuple(Types.__annotations__)
    for name, value in types.items():
        if name not in known:
            raise InputError(f"no argument `{name}`.{arguments.offer(name, known)}")
        if isinstance(value, bool) and name == "master":
            words[name] = "on" if value else "off"
        elif value is not None:
            words[name] = arguments.word(value, name)
    return words
