"""Objects that never change, so that a copy is the object."""

from __future__ import annotations

from typing import TypeVar

_T = TypeVar("_T", bound="Immutable")


class Immutable:
    """What `copy.copy` and `copy.deepcopy` give back as it is."""

    __slots__ = ()

    def __copy__(self: _T) -> _T:
        return self

    def __deepcopy__(self: _T, memo: object) -> _T:
        return self
