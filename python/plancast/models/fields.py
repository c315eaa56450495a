"""Typed reads of a parsed configuration, with errors that name the place."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from plancast.errors import InputError

# Far above any model; catches slips such as a byte count for a width.
_LARGEST = 10**9


class Fields:
    """A mapping that came from a file; `what` names the file in errors."""

    def __init__(self, values: Mapping[str, Any], what: str) -> None:
        self._values = values
        self.what = what

    def count(self, key: str, default: int | None = None) -> int:
        """A whole number of at least 1; an error if absent and without default."""
        value = self._values.get(key)
        if value is None:
            if default is None:
                raise InputError(f"{self.what} has no `{key}`.{self._near(key)}")
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(f"{self.what}: `{key}` must be a whole number, not `{value!r}`.")
        if not 1 <= value <= _LARGEST:
            raise InputError(f"{self.what}: `{key}` is {value}; it must be from 1 to {_LARGEST}.")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false; `default` if absent."""
        value = self._values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise InputError(f"{self.what}: `{key}` must be true or false, not `{value!r}`.")
        return value

    def word(self, key: str, default: str) -> str:
        """A string; `default` if absent."""
        value = self._values.get(key)
        if value is None:
            return default
        if not isinstance(value, str):
            raise InputError(f"{self.what}: `{key}` must be a string, not `{value!r}`.")
        return value

    def only(self, key: str, supported: Any, default: Any) -> None:
        """Refuses every value of `key` but the one that can be simulated."""
        value = self._values.get(key, default)
        if value is not None and value != supported:
            raise InputError(
                f"not supported yet: `{key}` = `{value!r}` in {self.what}. "
                f"Only `{supported!r}` is simulated."
            )

    def _near(self, key: str) -> str:
        near = difflib.get_close_matches(
            key, [str(name) for name in self._values if name != key], n=1
        )
        return f" Did you mean `{near[0]}`?" if near else ""


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """The end of an error about an unknown word.

    >>> did_you_mean("lama", ["llama", "opt"])
    ' Did you mean `llama`?'
    """
    near = difflib.get_close_matches(word.lower(), known, n=1)
    return f" Did you mean `{near[0]}`?" if near else ""
