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
# Of YAML, which takes some 20 us a value.
_MOST_OF_YAML = 50_000
# Of a whole number, which the core takes as one of 64.
_MOST_BITS = 64
# Of a number in YAML, which multiplies `1:30:00` out part by part: by the square of the parts.
_LONGEST_NUMBER = 1_000
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
        values = _measure(text, what)
        loader = _strict_loader()(text)
        loader.values = values
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except InputError:
        raise
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
    kind = type(value)
    if kind is bool or (kind is str and value.isascii()):
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                long = isinstance(key, int) and key.bit_length() > _MOST_BITS
                shown = "a key" if long else f"the key `{key}`"  # no text of thousands of digits
                raise InputError(
                    f"{what}: {shown}{f' in `{place}`' if place else ''} is {_kind(key)}. "
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


def _base() -> Any:
    """PyYAML's loader around libyaml, which takes a tenth of the time, where it is there."""
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _measure(text: str, what: str) -> int:
    """How many values a text has; refused are too many and too deep ones, before they take time."""
    import yaml

    values = depth = 0
    for event in yaml.parse(text, Loader=_base()):
        if isinstance(event, yaml.NodeEvent):
            values += 1
            if values > _MOST_OF_YAML:
                raise _too_many_of_yaml(event.start_mark)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST + 1:
                raise InputError(_too_deep(what))
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return values


def _too_many_of_yaml(mark: Any) -> Exception:
    import yaml

    said = f"{_too_many(_MOST_OF_YAML)}, counting what `<<` merges"
    return yaml.MarkedYAMLError(None, None, said, mark)


@functools.cache
def _strict_loader() -> Any:
    """A safe loader that refuses a key given twice, where YAML's would keep the last, and more
    values than a description has, before they take time and memory."""
    import yaml

    merge = "tag:yaml.org,2002:merge"
    number = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
    true_or_false, text = "tag:yaml.org,2002:bool", "tag:yaml.org,2002:str"

    class Loader(_base()):  # type: ignore[misc]
        values = 0  # of the text, by `_measure`

        def get_single_node(self) -> Any:
            node = super().get_single_node()
            seen: set[int] = set()
            left = [node] if node is not None else []
            while left:  # an alias is the node that it names
                at = left.pop()
                if isinstance(at, yaml.ScalarNode):
                    if len(at.value) > _LONGEST_NUMBER and at.tag in number:
                        said = f"a number of {len(at.value):,} characters"
                        raise yaml.MarkedYAMLError(None, None, said, at.start_mark)
                    continue
                if id(at) in seen:
                    continue
                seen.add(id(at))
                if isinstance(at, yaml.MappingNode):
                    self._check_keys(at)
                    left += [part for pair in at.value for part in pair]
                else:
                    left += at.value
            return node

        def _check_keys(self, node: Any) -> None:
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
                        self._count(len(part.value), key.start_mark)
            super().flatten_mapping(node)

        def _count(self, values: int, mark: Any) -> None:
            self.values += values
            if self.values > _MOST_OF_YAML:
                raise _too_many_of_yaml(mark)

    return Loader
