"""Better machines on which a plan really takes longer."""

from __future__ import annotations


def is_known(word: str) -> bool:
    return False
