"""Typed reads of a parsed configuration, with errors that name the place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plancast import arguments
from plancast.errors import InputError

# Far above any model; catches slips such as a byte count for a width.
_LARGEST = 10**9


class Fields:
    """A mapping that came from a file; `what` names the file in errors."""

    def __init__(self, values: Mapping[str, Any], what: str) -> None:
        self._values = values
        self.what = what

    def with_defaults(self, defaults: Mapping[str, Any]) -> Fields:
        """The same, with values for what is absent or null."""
        missing = {key: v for key, v in defaults.items() if self._values.get(key) is None}
        return Fields({**self._values, **missing}, self.what)

    def count(self, key: str, default: int | None = None) -> int:
        """A whole number of at least 1; an error if absent and without default."""
        return self._integer(key, default, low=1)

    def whole(self, key: str, default: int) -> int:
        """A whole number of at least 0; `default` if absent."""
        return self._integer(key, default, low=0)

    def optional(self, key: str, default: int | None) -> int | None:
        """A whole number of at least 1; None where the file says `null`."""
        if key not in self._values:
            return default
        return None if self._values[key] is None else self._integer(key, None, low=1)

    def number(self, key: str, default: float | None) -> float | None:
        """A number; None where the file says `null`."""
        value = self._values.get(key, default)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise InputError(f"{self.what}: `{key}` must be a number, not `{value!r}`.")
        return value

    def mapping(self, key: str) -> Mapping[str, Any]:
        """A mapping; empty if absent."""
        value = self._values.get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise InputError(f"{self.what}: `{key}` must be a mapping, not `{value!r}`.")
        return value

    def words(self, key: str) -> list[str]:
        """A list of strings; empty if absent."""
        value = self._values.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise InputError(f"{self.what}: `{key}` must be a list of strings, not `{value!r}`.")
        return value

    def indices(self, key: str, count: int) -> list[int]:
        """A list of whole numbers below `count`; empty if absent."""
        value = self._values.get(key)
        if value is None:
            return []
        good = isinstance(value, list) and all(
            isinstance(index, int) and not isinstance(index, bool) and 0 <= index < count
            for index in value
        )
        if not good:
            raise InputError(
                f"{self.what}: `{key}` must be a list of whole numbers from 0 to {count - 1}, "
                f"not `{value!r}`."
            )
        return list(value)

    def _integer(self, key: str, default: int | None, *, low: int) -> int:
        value = self._values.get(key)
        if value is None:
            if default is None:
                raise InputError(f"{self.what} has no `{key}`.{self._near(key)}")
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(f"{self.what}: `{key}` must be a whole number, not `{value!r}`.")
        if not low <= value <= _LARGEST:
            raise InputError(
                f"{self.what}: `{key}` is {value}; it must be from {low} to {_LARGEST}."
            )
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
        return arguments.near(key, [str(name) for name in self._values if name != key])
