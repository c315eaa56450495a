"""Rankings of several spaces as one: of types (`dtype=bf16|fp8`), and of spaces side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plancast import _core, arguments
from plancast.errors import InputError
from plancast.strategy_words import BESIDES

if TYPE_CHECKING:
    from plancast.default_space import Space
    from plancast.machine import Machine

# What a GPU's data call the peak of types that not every GPU has.
_PEAKS = {"fp8": "fp8_tflops", "mxfp8": "fp8_tflops", "nvfp4": "fp4_tflops"}


@dataclass
class Merged:
    """Several rankings as one: `plancast.ranking.Figures`, and whose type each plan is."""

    plans: list[_core.Forecast] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)
    evaluated: int = 0
    bounded: int = 0
    stopped: bool = False
    open: int = 0
    bound: float = 0.0
    excluded: dict[str, int] = field(default_factory=dict)
    space: str = ""
    seconds: float = 0.0
    nearest: tuple[str, int, int, str] | None = None


def split(space: str, dtype: str) -> tuple[str, list[str]]:
    """The space without its types, and these; `dtype` where it says none.

    >>> split("tp=2,dtype=bf16|fp8,mb=1", "fp16")
    ('tp=2,mb=1', ['bf16', 'fp8'])
    >>> split("tp=2", "fp16")
    ('tp=2', ['fp16'])
    """
    rest: list[str] = []
    said: list[str] = []
    for item in space.split(","):
        key, equals, values = item.partition("=")
        if key.strip() != "dtype":
            rest.append(item)
            continue
        if said or not equals:
            raise InputError("space: `dtype` takes types once, as in `dtype=bf16|fp8`.")
        said = [arguments.dtype(value.strip()) for value in values.split("|")]
    return ",".join(rest), list(dict.fromkeys(said)) or [dtype]


def lacks(machine: Machine, dtype: str) -> str:
    """Why a machine has no units for a type, or an empty text."""
    peak = _PEAKS.get(dtype.partition("-")[0])
    for section in machine.sections:
        gpu = section.to_dict()["gpu"]
        if peak is not None and not gpu[peak]:
            return f"{gpu['name']} has no units for dtype={dtype}"
    return ""


def joined(spaces: Iterable[str]) -> str:
    """The text of several spaces.

    >>> joined(["tp=1", "tp=2", "tp=1"]), first(joined(["tp=1", "tp=2"]))
    ('tp=1 and besides tp=2', 'tp=1')
    """
    return BESIDES.join(dict.fromkeys(spaces))


def first(text: str) -> str:
    """The first space of a text of several."""
    return text.partition(BESIDES)[0]


def merged(
    spaces: Sequence[Space],
    dtypes: Sequence[str],
    machine: Machine,
    top: int | None,
    rank: Callable[[Space, str, list[float]], _core.RankResult],
) -> Merged:
    """The best `top` plans of all spaces and types; `rank` is told what is to be beaten."""
    whole, counted = Merged(), 0
    excluded: Counter[str] = Counter()
    texts: list[str] = []
    parts = [(space, dtype) for dtype in dtypes for space in spaces]
    for space, dtype in sorted(parts, key=lambda part: bool(lacks(machine, part[1]))):
        reason = lacks(machine, dtype)
        if reason and counted:
            excluded[reason] += 0 if space.beside else counted
            continue
        try:
            found = rank(space, dtype, whole.values)
        except space.may_raise:
            continue
        texts.append(found.space)
        _join(whole, dtype, found, top)
        excluded.update(space.left_out(found.excluded))
        if found.stopped:
            break
        if not space.beside:
            counted = found.evaluated + found.bounded + found.open + sum(found.excluded.values())
    whole.excluded = dict(sorted(excluded.items()))
    types = f"dtype={'|'.join(dtypes)}," if len(dtypes) > 1 else ""
    whole.space = types + joined(texts)
    return whole


def _join(whole: Merged, dtype: str, found: _core.RankResult, top: int | None) -> None:
    both = [*zip(whole.values, whole.dtypes, whole.plans, strict=True)]
    both += [(value, dtype, plan) for value, plan in zip(found.values, found.plans, strict=True)]
    both.sort(key=lambda entry: entry[0])
    whole.values = [value for value, *_ in both[:top]]
    whole.dtypes = [name for _, name, _ in both[:top]]
    whole.plans = [plan for *_, plan in both[:top]]
    whole.evaluated += found.evaluated
    whole.bounded += found.bounded
    whole.stopped, whole.open, whole.bound = found.stopped, found.open, found.bound
    whole.seconds += found.seconds
    whole.nearest = None if whole.plans else whole.nearest or found.nearest
