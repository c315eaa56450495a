"""Properties that are computed once."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801
        """That of later Pythons. Before 3.12 a lock is held meanwhile, one for all objects: threads
        wait for each other, and a child that is forked then waits for ever."""

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = self.func(instance)
            # Of threads that compute it at the same time, the first that ends tells all.
            return instance.__dict__.setdefault(self.attrname, value)


__all__ = ["cached_property"]
