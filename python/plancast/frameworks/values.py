"""Values of settings, read as their kind says, with errors that name the place."""

from __future__ import annotations

import math
from typing import Any

from plancast.errors import InputError

_LARGEST = 10**15
_KINDS = {
    "count": "a whole number from 1",
    "whole": "a whole number from 0",
    "integer": "a whole number from -1",
    "number": "a number",
    "flag": "true or false",
    "word": "a word",
    "list": "a list of words",
    "size": "a whole number from 0, or true or false",
    "any": "anything",
}


def read(kind: str, words: tuple[str, ...], value: Any, where: str, *, text: bool) -> Any:
    """The value of a kind; `where` begins errors.

    Args:
      kind: a key of `_KINDS`.
      words: if any, the only ones allowed; case does not matter.
      value: as the document has it.
      where: what and where it is.
      text: numbers and switches may be words, as on a command line.
    """
    if kind == "any":
        return value
    if value is False and any(word.lower() == "no" for word in words):
        value = "no"  # as YAML reads it without quotes
    result = _READERS[kind](value, text)
    if result is None:
        raise InputError(f"{where} is `{_brief(value)}`; it must be {_KINDS[kind]}.{_hint(value)}")
    if words and isinstance(result, str):
        for word in words:
            if word.lower() == result.lower():
                return word
        from plancast.arguments import offer

        raise InputError(f"{where} is `{_brief(result)}`.{offer(result, words)}")
    return result


def _integer(value: Any, text: bool, low: int) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        if not text and not any(c in value for c in "eE"):  # YAML reads 5e8 as a word
            return None
        try:
            value = float(value) if len(value) < 40 else None
        except ValueError:
            return None
    if isinstance(value, float):
        if not math.isfinite(value) or value != int(value):
            return None
        value = int(value)
    if not isinstance(value, int) or not low <= value <= _LARGEST:
        return None
    return value


def _number(value: Any, text: bool) -> float | None:
    if isinstance(value, str) and text:
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int) and abs(value) > _LARGEST:
        return None
    return float(value) if math.isfinite(value) else None


def _flag(value: Any, text: bool) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False, "yes": True, "no": False}.get(value.lower())
    return value if isinstance(value, bool) else None


def _word(value: Any, text: bool) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return value if isinstance(value, str) and len(value) <= 1000 else None


def _list(value: Any, text: bool) -> list[str] | None:
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        return None
    return list(value)


def _size(value: Any, text: bool) -> bool | int | None:
    flag = _flag(value, text)
    return flag if flag is not None else _integer(value, text, 0)


_READERS: dict[str, Any] = {
    "count": lambda value, text: _integer(value, text, 1),
    "whole": lambda value, text: _integer(value, text, 0),
    "integer": lambda value, text: _integer(value, text, -1),
    "number": _number,
    "flag": _flag,
    "word": _word,
    "list": _list,
    "size": _size,
}


def _hint(value: Any) -> str:
    if isinstance(value, str) and "$" in value:
        return " The script does not set that variable; write its value."
    return ""


def _brief(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
