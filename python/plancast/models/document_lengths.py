"""Lengths of the documents that sequences are packed from: a list, a file, or a distribution."""

from __future__ import annotations

import math
import os.path
import random
import statistics
from pathlib import Path
from typing import Any

from plancast import arguments, files
from plancast.errors import InputError

# Of a distribution: as many quantiles, in an order that a fixed seed shuffles.
_DRAWN = 4096
_SEED = 20261124
_MOST_TOKENS = 100_000_000
_MOST = 100_000
_MOST_BYTES = 4 << 20  # a length has nine digits at most
_UNITS = {"k": 1024, "m": 1024**2}
_FORMS = (
    "`2K` (all alike), `512,2K,8K`, a file with one length a line, `exponential:MEAN[:MAX]` or "
    "`lognormal:MEAN:SIGMA[:MAX]`"
)


def lengths(value: Any, what: str = "documents") -> list[int]:
    """Lengths in tokens, in the order in which documents come.

    Args:
      value: a list of lengths, one length, or text: lengths between commas (`K` is 1024 tokens),
        the name of a file with one length a line, `exponential:MEAN[:MAX]` or
        `lognormal:MEAN:SIGMA[:MAX]`. SIGMA is that of the logarithm; longer documents are cut to
        MAX. Of a distribution 4,096 quantiles are taken, in a fixed order.
      what: names the value in errors.

    Raises:
      InputError: none of these, a length below 1 or above 100,000,000, or more than 100,000.

    >>> lengths("512,2K")
    [512, 2048]
    >>> len(lengths("exponential:2K:16K"))
    4096
    """
    if isinstance(value, str):
        found = _of_text(value.strip(), what)
    elif isinstance(value, list | tuple):
        found = list(value)
    else:
        found = [value]
    if not found or len(found) > _MOST:
        raise InputError(f"`{what}` has {len(found):,} lengths; give 1 to {_MOST:,}, {_FORMS}.")
    return [arguments.whole(length, what, 1, _MOST_TOKENS) for length in found]


def located(fields: dict[str, Any], path: str | Path) -> dict[str, Any]:
    """What a file says of a model, with a file of lengths beside it under its whole name."""
    name = fields.get("documents")
    if not isinstance(name, str) or not ("/" in name or name.endswith(".txt")):
        return fields
    return {**fields, "documents": str(files.beside(Path(path).parent, name, "`documents`"))}


def _of_text(text: str, what: str) -> list[int]:
    name, *parts = text.split(":")
    if name in ("exponential", "lognormal"):
        return _drawn(name, [_number(part, what) for part in parts], what)
    if os.path.exists(text):
        lines = files.read_text(text, most=_MOST_BYTES).split()
        return [_tokens(line, f"{what} in `{text}`") for line in lines]
    return [_tokens(part, what) for part in text.split(",")]


def _number(text: str, what: str) -> float:
    text = text.strip()
    unit = _UNITS.get(text[-1:].lower(), 1)
    try:
        number = float(text[:-1] if unit > 1 else text) * unit
    except ValueError:
        raise InputError(f"`{what}`: `{text[:40]}` is no length; write {_FORMS}.") from None
    if not math.isfinite(number):
        raise InputError(f"`{what}`: `{text[:40]}` is no length; write {_FORMS}.")
    return number


def _tokens(text: str, what: str) -> int:
    number = _number(text, what)
    if number != int(number):
        raise InputError(f"`{what}`: `{text[:40]}` is no whole number of tokens.")
    return int(number)


def _drawn(name: str, sizes: list[float], what: str) -> list[int]:
    least = 1 if name == "exponential" else 2
    if not least <= len(sizes) <= least + 1:
        raise InputError(f"`{what}`: `{name}` takes other sizes; write {_FORMS}.")
    mean, most = sizes[0], sizes[least] if len(sizes) > least else float(_MOST_TOKENS)
    if not 1 <= mean <= most <= _MOST_TOKENS:
        raise InputError(
            f"`{what}`: a mean of {mean:g} and a largest length of {most:g} tokens; the mean must "
            f"be from 1 to the largest, and that at most {_MOST_TOKENS:,}."
        )
    shares = [(i + 0.5) / _DRAWN for i in range(_DRAWN)]
    if name == "exponential":
        found = [-mean * math.log(1 - share) for share in shares]
    else:
        sigma = sizes[1]
        if not 0 < sigma <= 5:
            raise InputError(f"`{what}`: a sigma of {sigma:g}; it must be above 0 and at most 5.")
        normal = statistics.NormalDist(math.log(mean) - sigma * sigma / 2, sigma)
        found = [math.exp(normal.inv_cdf(share)) for share in shares]
    random.Random(_SEED).shuffle(found)
    return [max(1, round(min(length, most))) for length in found]
