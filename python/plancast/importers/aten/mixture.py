"""Mixtures of experts, whose Python code depends on the data."""

from __future__ import annotations

import contextlib
from typing import Any


def as_leaves(module: Any) -> Any:
    """A context in which blocks of experts are traced as one operator each."""
    return contextlib.nullcontext()
