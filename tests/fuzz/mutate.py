"""Changes to files, drawn from a seed: values nobody can mean, bytes that were lost."""

from __future__ import annotations

import functools
import json
import pickle
import random
import re
from typing import Any

NASTY: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 7, 255, 2**31, 2**40, 2**62, 2**63 - 1, 2**63, 2**64, -(2**63),
    10**30, 0.0, -0.5, 1e308, float("nan"), float("inf"), "", "x", "x" * 2000, "batch", "0",
    "\ud800", "\x00", "../../etc/passwd", [], {}, [[]], {"as_int": -1}, [None], {"": {}},
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to all values inside a document."""
    found = [path] if path else []
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, inner in items:
        found.extend(places(inner, (*path, key)))
    return found


def holder(value: Any, path: tuple[Any, ...]) -> Any:
    """The container of the value at a path."""
    for key in path[:-1]:
        value = value[key]
    return value


def _copy(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # five times as fast as copy.deepcopy


def document(rng: random.Random, original: Any) -> Any:
    """A document with a few values replaced, dropped, copied, swapped or nested."""
    value = _copy(original)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        known = places(value)
        if not known:
            break
        path = rng.choice(known)
        inside, key = holder(value, path), path[-1]
        what = rng.randrange(6)
        if what <= 1:
            inside[key] = _copy(rng.choice(NASTY))
        elif what == 2:
            del inside[key]
        elif what == 3 and isinstance(inside, list):
            inside.insert(rng.randrange(len(inside) + 1), _copy(inside[key]))
        elif what == 4:
            other = rng.choice(known)
            if other[: len(path)] != path and path[: len(other)] != other:
                inside[key] = _copy(holder(value, other)[other[-1]])
        else:
            depth = rng.choice((3, 30, 300))
            nested = inside[key]
            for _ in range(depth):
                nested = [nested] if rng.random() < 0.5 else {"a": nested}
            inside[key] = nested
    return value


def binary(rng: random.Random, original: bytes) -> bytes:
    """Bytes with some flipped, cut out, doubled, or set to what often matters."""
    data = bytearray(original)
    for _ in range(rng.choice((1, 1, 2, 8, 32))):
        if not data:
            break
        place = rng.randrange(len(data))
        what = rng.randrange(5)
        if what == 0:
            data[place] ^= 1 << rng.randrange(8)
        elif what == 1:
            data[place] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif what == 2:
            del data[place : place + rng.choice((1, 4, 64, len(data)))]
        elif what == 3:
            end = place + rng.choice((1, 8, 64))
            data[place:place] = data[place:end] * rng.choice((1, 2, 100))
        else:
            data[place : place + 8] = rng.randrange(2**64).to_bytes(8, "little")
    return bytes(data)


WORDS = (
    "", "-1", "0", "1", "2", "3", "1e999", "nan", "-nan", "inf", "1e-308", "-0.0", "9" * 30,
    "9" * 5000, "0x" + "f" * 5000, "2147483648", "9223372036854775807", "9223372036854775808",
    "true", "null",
    "x", "x" * 2000, "[", "]", "{", "}", "#", ",", ":", "=", '"', "'", "<", ">", "&", "*a", "&a",
    "<<", "\x00", "\x1b[2J", "\ud800", "é", "\u202e", "..", "/dev/zero", "1" + ":59" * 50,
)  # fmt: skip


_LONGEST = 16 << 20  # of lines repeated: the harness has no more memory than the reader


def text(rng: random.Random, original: str) -> str:
    """Text with words, numbers and lines replaced, dropped, doubled, moved or nested."""
    lines = original.splitlines()
    for _ in range(rng.choice((1, 1, 2, 4))):
        if not lines:
            break
        at, what = rng.randrange(len(lines)), rng.randrange(7)
        if what <= 2:
            parts = re.split(r"([\s,:=\"<>|;+]+)", lines[at])
            parts[rng.randrange(len(parts))] = rng.choice(WORDS)
            lines[at] = "".join(parts)
        elif what == 3:
            numbers = list(re.finditer(r"\d+(?:\.\d+)?", lines[at]))
            if numbers:
                found = rng.choice(numbers)
                lines[at] = (
                    lines[at][: found.start()] + rng.choice(WORDS) + lines[at][found.end() :]
                )
        elif what == 4:
            del lines[at]
        elif what == 5:
            times = rng.choice((1, 1, 1, 3, 3, 3, 30, 30, 1000))
            part = lines[at : at + 3]
            lines[at:at] = part * min(times, _LONGEST // (1 + sum(map(len, part))))
        else:
            lines[at] += rng.choice(("[", "{", "{a: ", "(", "<a>", '{"a":', "- ")) * rng.choice(
                (1, 40, 5000)
            )
    return "\n".join(lines) + "\n"


@functools.lru_cache(64)
def parsed(original: bytes) -> Any:
    """The value of a YAML or JSON document."""
    import yaml

    return yaml.load(original, Loader=yaml.CSafeLoader)


def _written(value: Any, suffix: str) -> bytes:
    """A document as JSON, or as YAML by libyaml, which knows no half surrogate pairs."""
    import yaml

    if suffix == ".json":
        return json.dumps(value).encode("utf-8", "replace")
    try:
        return yaml.dump(value, Dumper=yaml.CSafeDumper).encode()
    except UnicodeEncodeError:
        return yaml.safe_dump(value).encode("utf-8", "replace")


def contents(rng: random.Random, original: bytes, suffix: str) -> bytes:
    """A file changed as what its name says it is, or as bytes."""
    if suffix in (".json", ".yaml", ".yml") and rng.random() < 0.5:
        try:
            return _written(document(rng, parsed(original)), suffix)
        except (RecursionError, TypeError, ValueError):  # what the harness cannot write
            return b"[" * 5000
    if suffix in (".pt2", ".et", ".db", ".onnx") or rng.random() < 0.15:
        return binary(rng, original)
    return text(rng, original.decode(errors="replace")).encode("utf-8", "replace")
