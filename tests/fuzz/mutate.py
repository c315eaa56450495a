"""Changes to files, drawn from a seed: values nobody can mean, bytes that were lost."""

from __future__ import annotations

import copy
import random
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


def document(rng: random.Random, original: Any) -> Any:
    """A document with a few values replaced, dropped, copied, swapped or nested."""
    value = copy.deepcopy(original)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        known = places(value)
        if not known:
            break
        path = rng.choice(known)
        inside, key = holder(value, path), path[-1]
        what = rng.randrange(6)
        if what <= 1:
            inside[key] = copy.deepcopy(rng.choice(NASTY))
        elif what == 2:
            del inside[key]
        elif what == 3 and isinstance(inside, list):
            inside.insert(rng.randrange(len(inside) + 1), copy.deepcopy(inside[key]))
        elif what == 4:
            other = rng.choice(known)
            if other[: len(path)] != path and path[: len(other)] != other:
                inside[key] = copy.deepcopy(holder(value, other)[other[-1]])
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
