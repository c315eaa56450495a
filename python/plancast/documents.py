"""YAML and JSON documents that people write, read strictly: nothing said twice, nothing lost."""

from __future__ import annotations

import functools
import json
import math
import numbers
import re
from collections import Counter
from typing import Any

from plancast.errors import InputError

# Far deeper than any description; a cycle of YAML anchors is deeper still.
_DEEPEST = 64
# Far more values than any description has; anchors that name each other have more.
_MOST_VALUES = 200_000
# Of YAML, which takes 60 us a value.
_MOST_OF_YAML = 50_000
# Of a whole number, which the core takes as one of 64.
_MOST_BITS = 64
# A key of more parts than may be nested, between dots. tomllib takes memory by the square of
# them before anybody can count.
_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{_DEEPEST},}}")


def parse_json(text: str, what: str) -> Any:
    """The value of a JSON document; `what` names it in errors."""
    try:
        return json.loads(text, object_pairs_hook=_unique(what))
    except json.JSONDecodeError as error:
        raise InputError(f"{what}:{error.lineno}:{error.colno} is not JSON: {error.msg}.") from None
    except RecursionError:
        raise InputError(_too_deep(what)) from None
    except InputError:
        raise
    except ValueError:  # Python limits the digits of a number
        raise InputError(f"{what} holds a number of thousands of digits.") from None


def parse_yaml(text: str, what: str) -> Any:
    """The value of a YAML document; `what` names it in errors."""
    import yaml

    try:
        return yaml.load(text, Loader=_strict_loader())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "malformed"
        raise InputError(f"{what}{place} is not YAML: {problem}.") from None
    except RecursionError:
        raise InputError(_too_deep(what)) from None
    # What its constructors of dates, numbers and tags meet: the date 2020-13-45, `!!int ""`.
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise InputError(f"{what} holds a value that YAML cannot read: {reason}.") from None


def parse_toml(text: str, what: str) -> dict[str, Any]:
    """The value of a TOML document; `what` names it in errors."""
    import tomllib

    if long := _LONG_KEY.search(text):
        line = text.count("\n", 0, long.start()) + 1
        raise InputError(
            f"{what}:{line} has a key of more than {_DEEPEST} parts; no configuration needs more."
        )
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        place = f":{match[1]}:{match[2]}" if match else ""
        reason = str(error).partition(" (at ")[0]
        raise InputError(f"{what}{place} is not TOML: {reason}.") from None
    except RecursionError:
        raise InputError(_too_deep(what)) from None
    except ValueError as error:  # such as the date 2020-13-45
        raise InputError(f"{what} holds a value that TOML cannot read: {error}.") from None


def mapping(value: Any, what: str) -> dict[str, Any]:
    """`value` if it is a mapping of plain values under names; else an error.

    >>> mapping({"hosts": 2}, "machine")
    {'hosts': 2}
    """
    if not isinstance(value, dict):
        raise InputError(f"{what} must hold `key: value` pairs and is {_kind(value)}.")
    _check(value, what, "", 0, Counter())
    return value


def to_json(value: Any, what: str) -> str:
    """JSON of a mapping of plain values; `what` names it in errors.

    >>> to_json({"hosts": 2}, "machine")
    '{"hosts": 2}'
    """
    return json.dumps(mapping(value, what), default=int)  # int: the integers of NumPy


def _check(value: Any, what: str, place: str, depth: int, seen: Counter[str]) -> None:
    if depth > _DEEPEST:
        raise InputError(_too_deep(what))
    seen["values"] += 1
    if seen["values"] > _MOST_VALUES:
        raise InputError(f"{what} holds {_too_many(_MOST_VALUES)}; no description does.")
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise InputError(
                    f"{what}: the key `{key}`{f' in `{place}`' if place else ''} is {_kind(key)}. "
                    "Keys are names; if it is one, put it in quotes."
                )
            _check(inner, what, f"{place}.{key}" if place else key, depth + 1, seen)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            _check(inner, what, f"{place}[{position}]", depth + 1, seen)
    elif isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise InputError(
            f"{what}: `{place}` is a whole number of {value.bit_length():,} bits; "
            f"give one of at most {_MOST_BITS}."
        )
    elif isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{what}: `{place}` is {value}; a finite number is needed.")
    elif isinstance(value, str) and not _is_text(value):
        raise InputError(f"{what}: `{place}` is not text: it holds half a surrogate pair.")
    elif value is not None and not isinstance(value, str | float | numbers.Integral):
        raise InputError(
            f"{what}: `{place}` is {_kind(value)}; a word or a number is needed. "
            "If it is meant as a word, put it in quotes."
        )


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: Any) -> str:
    names = {
        type(None): "empty",
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "a word",
        list: "a list",
        tuple: "a list",
        dict: "a mapping",
    }
    return names.get(type(value), f"a {type(value).__name__}")


def _too_deep(what: str) -> str:
    return f"{what} is nested too deep; no description needs more than {_DEEPEST} levels."


def _too_many(most: int) -> str:
    return f"more than {most:,} values"


def _unique(what: str) -> Any:
    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    raise InputError(f"{what}: `{key}` is given twice. Say it once.")
                seen.add(key)
        return values

    return build


@functools.cache
def _strict_loader() -> Any:
    """A safe loader that refuses a key given twice, where YAML's would keep the last, and more
    values than a description has, before they take time and memory."""
    import yaml

    merge = "tag:yaml.org,2002:merge"
    true_or_false, text = "tag:yaml.org,2002:bool", "tag:yaml.org,2002:str"

    class Loader(yaml.SafeLoader):
        def __init__(self, text: str) -> None:
            super().__init__(text)
            self._values = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            self._count(1)
            return super().compose_node(parent, index)

        def compose_mapping_node(self, anchor: Any) -> Any:
            node = super().compose_mapping_node(anchor)
            seen = set()
            for key, _ in node.value:
                # Names of keys are names: `on:` is no `true:`.
                if key.tag == true_or_false and key.value.lower() not in ("true", "false"):
                    key.tag = text
                name = key.value if isinstance(key, yaml.ScalarNode) else None
                if name in seen and key.tag != merge:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"`{name}` is given twice", key.start_mark
                    )
                if name is not None:
                    seen.add(name)
            return node

        def flatten_mapping(self, node: Any) -> None:
            # What `<<` merges is copied into every mapping that names it; nested, twice as much
            # a level.
            for key, value in node.value:
                if key.tag != merge:
                    continue
                parts = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for part in parts:
                    if isinstance(part, yaml.MappingNode):
                        self.flatten_mapping(part)
                        self._count(len(part.value))
            super().flatten_mapping(node)

        def _count(self, values: int) -> None:
            self._values += values
            if self._values > _MOST_OF_YAML:
                said = f"{_too_many(_MOST_OF_YAML)}, counting what `<<` merges"
                raise yaml.MarkedYAMLError(None, None, said, self.get_mark())

    return Loader
