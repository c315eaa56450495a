"""Better machines on which a plan really takes longer."""

from __future__ import annotations

from typing import Any


def is_known(asked: Any, best: Any, machine: Any, what: str) -> bool:
    return False
