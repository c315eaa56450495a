"""What forecasts are of, and what has to be said with their figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.text import Text

from plancast.adapters import word_of
from plancast.textual import gpus

if TYPE_CHECKING:
    from plancast.forecast import Forecast

# How advice on one plan ends where nothing small would make it fit (planner/fit/fit_advice.cc).
NO_CHANGE = "No single change of it fits; `plancast plan` looks for another plan."
# A number that is a word of its own: not that of `H100`, `fp8` or section 2.1.2.
_NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?!\w|[.,]\d)")
_HOLE = "\0"
# One that nobody can read without commas.
_MANY_DIGITS = re.compile(r"(?<![\w.])\d{5,}(?![\w.]*\w)")


def setting(forecast: Forecast) -> dict[str, str]:
    """What is the same for all plans of a job: batch, sequence length, type and software."""
    facts = {"batch": f"{forecast.global_batch:,}"}
    if forecast.seq > 0:
        facts["sequence"] = f"{forecast.seq:,}"
    if forecast.dtype:
        facts["type"] = forecast.dtype
    facts["profile"] = forecast.profile
    adapters = word_of(forecast._tree)
    if adapters:
        facts["lora"] = adapters
    return facts


def place(forecast: Forecast) -> str:
    """The machine and its size."""
    return f"{forecast.machine} ({gpus(forecast.devices)})"


def said(facts: Mapping[str, str]) -> str:
    """Facts in a line.

    >>> said({"batch": "64", "profile": "megatron-core"})
    'batch 64, profile megatron-core'
    """
    return ", ".join(f"{name} {value}" for name, value in facts.items())


def remarks(
    forecasts: Sequence[Forecast], names: Callable[[Sequence[int]], str] | None = None
) -> list[Text]:
    """Notes and warnings of forecasts: what all say once, what some say with `names` of their
    positions. Where remarks differ in figures only, the figures are joined."""
    lines = []
    for word, style, told in (
        ("note", "dim", [f.notes for f in forecasts]),
        ("warning", "yellow", [f.warnings for f in forecasts]),
    ):
        for text, positions in merged(told):
            whose = ""
            if names is not None and len(positions) < len(forecasts):
                whose = f"{names(positions)}: "
            lines.append(Text(f"{word}: {whose}{readable(text)}", style=style))
    return lines


def readable(text: str) -> str:
    """The text with commas in long numbers.

    >>> readable("35651584 of 8065912832, arXiv:2412.19437, 1024 GPUs")
    '35,651,584 of 8,065,912,832, arXiv:2412.19437, 1024 GPUs'
    """
    return _MANY_DIGITS.sub(lambda found: f"{int(found[0]):,}", text)


def merged(remarks: Sequence[Iterable[str]]) -> list[tuple[str, list[int]]]:
    """Each remark once, with the positions that have it.

    >>> merged([["61 % is guessed", "no H100"], ["64 % is guessed"]])
    [('61 to 64 % is guessed', [0, 1]), ('no H100', [0])]
    """
    found: dict[str, dict[int, list[str]]] = {}
    for position, texts in enumerate(remarks):
        for text in texts:
            kind = _NUMBER.sub(_HOLE, text)
            while position in found.get(kind, {}):  # said twice of one plan, of other numbers
                kind += " "
            found.setdefault(kind, {})[position] = _NUMBER.findall(text)
    result = []
    for kind, by_position in found.items():
        figures = [_range(column) for column in zip(*by_position.values(), strict=True)]
        words = kind.rstrip(" ").split(_HOLE)
        text = "".join(map("".join, zip_longest(words, figures, fillvalue="")))
        result.append((text, list(by_position)))
    return result


def _range(figures: Sequence[str]) -> str:
    in_order = sorted(set(figures), key=lambda figure: float(figure.replace(",", "")))
    return in_order[0] if len(in_order) == 1 else f"{in_order[0]} to {in_order[-1]}"
