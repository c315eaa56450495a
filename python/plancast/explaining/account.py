"""An iteration as entries that sum to it, each a product of figures that say what it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from plancast.explaining.work import Item, Stage, stages_of

if TYPE_CHECKING:
    from plancast.forecast import Forecast

# Families whose work is counted in floating-point operations; others in bytes.
_BY_FLOPS = ("gemm", "attention", "convolution")


@dataclass(frozen=True)
class Entry:
    """Some of the time, picoseconds as simulated, mean over devices.

    `factors` multiply to `value` exactly, by name; none: nothing is known of it but its size.
    `facts` are figures for words about it, of one device on average.
    """

    value: Fraction
    factors: dict[str, Fraction] = field(default_factory=dict)
    facts: dict[str, float] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Account:
    """The entries of a forecast by (part, kind), which sum to its simulated time exactly.

    `iteration` is the forecast's time, picoseconds: the simulated one times `level`.
    """

    forecast: Forecast
    stages: tuple[Stage, ...]
    entries: dict[tuple[str, str], Entry]
    iteration: int

    @property
    def simulated(self) -> int:
        """Picoseconds of the iteration as simulated."""
        return self.stages[0].total if self.stages else 0

    @property
    def level(self) -> Fraction:
        """What a run takes, against what is simulated."""
        return Fraction(self.iteration, self.simulated) if self.simulated else Fraction(1)

    @classmethod
    def of(cls, forecast: Forecast) -> Account:
        """The account of a forecast."""
        stages = stages_of(forecast)
        entries: dict[tuple[str, str], Entry] = {}
        for part in stages[0].parts if stages else ():
            entries |= _entries(part, stages, forecast.chosen)
        used = {key: entry for key, entry in entries.items() if entry.value != 0}
        return cls(forecast, stages, used, round(forecast.iteration_time * 1e12))


def mean(stages: Sequence[Stage], figure: Callable[[Stage], float | int]) -> Fraction:
    """Over devices, exactly."""
    devices = sum(stage.devices for stage in stages)
    total = sum((stage.devices * Fraction(figure(stage)) for stage in stages), Fraction(0))
    return total / devices if devices else Fraction(0)


def _entries(
    part: str, stages: Sequence[Stage], chosen: dict[str, str]
) -> dict[tuple[str, str], Entry]:
    value = mean(stages, lambda stage: stage.parts[part])
    if part in ("compute", "recompute", "optimizer"):
        return _kernels(part, value, stages)
    if part.startswith("exposed_"):
        return {(part, ""): _exposed(part, value, stages)}
    if part == "bubble":
        return _bubble(value, stages, chosen)
    launches = _sum(stages, lambda item: item.count if item.is_kernel else 0)
    return {(part, ""): Entry(value, facts={"launches": float(launches)})}


def _kernels(part: str, value: Fraction, stages: Sequence[Stage]) -> dict[tuple[str, str], Entry]:
    """By family, as they take alone, and how much longer they take beside communication."""
    entries: dict[tuple[str, str], Entry] = {}
    families = sorted({i.kind for s in stages for i in s.items if i.part == part and i.is_kernel})
    rest = value
    for family in families:
        own = _own(part, family)
        ps, count = _sum(stages, own(lambda i: i.ps)), _sum(stages, own(lambda i: i.count))
        amount = _sum(stages, own(lambda i: i.flops if i.kind in _BY_FLOPS else i.bytes))
        factors = {"amount": amount, "rate": ps / amount} if amount else {}
        facts = {"amount": float(amount), "count": float(count), "ps": float(ps)}
        entries[part, family] = Entry(ps, factors, facts)
        rest -= ps
    entries[part, "slowed"] = Entry(rest, facts={"ps": float(rest)})
    return entries


def _own(part: str, family: str) -> Callable[[Callable[[Item], float]], Callable[[Item], float]]:
    def only(figure: Callable[[Item], float]) -> Callable[[Item], float]:
        return lambda i: figure(i) if i.is_kernel and (i.part, i.kind) == (part, family) else 0

    return only


def _exposed(part: str, value: Fraction, stages: Sequence[Stage]) -> Entry:
    """What is sent, times what a byte takes alone, times the share of it that is waited for."""

    def only(figure: Callable[[Item], float]) -> Callable[[Item], float]:
        return lambda i: 0 if i.is_kernel or i.part != part else figure(i)

    ps, sent = _sum(stages, only(lambda i: i.ps)), _sum(stages, only(lambda i: i.sent))
    count = _sum(stages, only(lambda i: i.count))
    if not ps or not sent:
        return Entry(value)
    factors = {"amount": sent, "rate": ps / sent, "exposure": value / ps}
    facts = {"amount": float(sent), "count": float(count), "ps": float(ps)}
    items = [i for s in stages for i in s.items if not i.is_kernel and i.part == part]
    words = {
        "kinds": _most(items, lambda i: i.kind),
        "members": _most(items, lambda i: str(i.members)),
        "link": _most(items, lambda i: i.link),
    }
    return Entry(value, factors, facts, words)


def _most(items: Iterable[Item], name: Callable[[Item], str]) -> str:
    """What takes most of their time: all with a tenth of it, joined by `+`."""
    times: dict[str, int] = {}
    for item in items:
        times[name(item)] = times.get(name(item), 0) + item.ps
    total = sum(times.values())
    return "+".join(n for n in sorted(times, key=lambda n: -times[n]) if 10 * times[n] >= total)


def _bubble(
    value: Fraction, stages: Sequence[Stage], chosen: dict[str, str]
) -> dict[tuple[str, str], Entry]:
    """What even the busiest stage waits, and what others wait because it has more to do.

    The first is the time it is busy, times (pp-1)/(m v), times how much more it is than that.
    """
    least = min(stage.parts["bubble"] for stage in stages)
    busy = max(stage.total for stage in stages) - least
    unlike = Entry(value - least, facts={"ps": float(value - least)})
    depth = _whole(chosen.get("pp")) or len(stages)
    batches, chunks = _whole(chosen.get("accum")), _whole(chosen.get("vpp")) or 1
    if depth < 2 or not batches or not busy or not least:
        return {("bubble", "fill"): Entry(Fraction(least)), ("bubble", "unlike"): unlike}
    fill = Fraction(depth - 1, batches * chunks)
    factors = {"passes": Fraction(busy), "stages": fill, "schedule": Fraction(least, busy) / fill}
    facts = {
        "busy": float(busy), "depth": depth, "batches": batches, "chunks": chunks,
        "fill": float(fill), "more": float(factors["schedule"]),
    }  # fmt: skip
    words = {"schedule": chosen.get("schedule", "")}
    return {
        ("bubble", "fill"): Entry(Fraction(least), factors, facts, words),
        ("bubble", "unlike"): unlike,
    }


def _whole(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() else 0


def _sum(stages: Sequence[Stage], figure: Callable[[Item], float]) -> Fraction:
    """Of all items, mean over devices; figures are whole numbers."""
    return mean(stages, lambda stage: round(sum(figure(i) for i in stage.items)))
