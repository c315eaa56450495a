"""What selective recomputation means in a row."""

from __future__ import annotations

import re

from plancast import _core, arguments
from plancast.accuracy.validation.rows import Row
from plancast.errors import InputError

# Words of `selective_means=`: torchtitan's two kinds (distributed/activation_checkpoint.py).
_MEANS = {
    "per_op_sac": "selective:op",
    "torchtitan_default_per_op_sac": "selective:op",
    "every_other_layer": "every:2",
}


def selective_of(row: Row) -> str | None:
    """What the row's `recompute=selective` is in the language of strategies; None: as said.

    Raises InputError for words that nothing is known of, and for modules that Megatron-Core
    does not have (`recompute_modules=`).
    """
    if row.strategy_keys().get("recompute") != "selective":
        return None
    means = row.assumption("selective_means")
    if means:
        if means not in _MEANS:
            raise InputError(f"not supported yet: selective recompute as `{means}`")
        return _MEANS[means]
    names = sorted(set(re.findall(r"\w+", row.assumption("recompute_modules") or "")))
    known = [word for word, _ in _core.recompute_sets()]
    for name in names:
        if name not in known:
            raise InputError(f"recompute_modules has `{name}`.{arguments.offer(name, known)}")
    return f"selective:{'+'.join(names)}" if names else None
