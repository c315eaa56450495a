"""What machines cost to rent and what they draw, each figure with its source."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from plancast import arguments
from plancast.errors import InputError
from plancast.machine import Machine

KINDS = ("on-demand", "reserved", "spot")
_LARGEST_PRICE = 1e6
_LARGEST_WATTS = 1e5


@dataclass(frozen=True)
class Quote:
    """A price: dollars per GPU-hour, of what, how, by whom, when, and how we know it."""

    of: str
    kind: str
    usd: float
    source: str
    date: str
    known: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        if self.kind == "own":
            return f"${self.usd:g} per GPU-hour, given"
        how = "" if self.known == "read" else f"; {self.known}"
        when = f", {self.date}" if self.date else ""
        return f"${self.usd:g} per GPU-hour {self.kind} ({self.source}{when}{how})"


@dataclass(frozen=True)
class Rent:
    """What a whole machine costs: dollars per hour, and the quotes that it follows from."""

    usd_per_hour: float
    quotes: tuple[Quote, ...]


@dataclass(frozen=True)
class Draw:
    """What a whole machine draws: kilowatts at its plugs, the site's factor, and their sources."""

    kilowatts: float
    pue: float
    sources: tuple[str, ...]


def rent(machine: Machine, price: float | str = "on-demand") -> Rent:
    """What a machine costs.

    Args:
      machine: which.
      price: dollars per GPU-hour, or `on-demand`, `reserved` or `spot`: what is on record of the
        preset, else of its GPU.

    Raises:
      InputError: no such price is on record.

    >>> rent(Machine.preset("dgx-h100:2"), 2.0).usd_per_hour
    32.0
    """
    own = _own_price(price)
    quotes = []
    total = 0.0
    for section in machine.sections:
        quote = _given(own) if own is not None else _on_record(section, str(price))
        total += quote.usd * section.devices
        if quote not in quotes:
            quotes.append(quote)
    return Rent(total, tuple(quotes))


def priced(machine: Machine) -> Machine:
    """The machine with the on-demand prices on record in it; itself where one is not known.

    >>> priced(Machine.preset("t4-pcie")).to_dict()["gpu"]["usd_per_hour"]
    0.526
    """
    found = [(section, _quote(section, "on-demand")) for section in machine.sections]
    total: Machine | None = None
    for section, quote in found:
        if quote is None:
            return machine
        fields = section.to_dict()
        if fields["gpu"].get("usd_per_hour") != quote.usd:
            fields["gpu"]["usd_per_hour"] = quote.usd
            section = Machine.from_dict(fields)
        total = section if total is None else total + section
    return total or machine


@lru_cache(maxsize=64)
def usd_per_s(machine: Machine) -> float | None:
    """Dollars that a whole machine costs a second, on demand; None: no price is on record."""
    known = rent_if_known(machine)
    return None if isinstance(known, str) else known.usd_per_hour / 3600


def rent_if_known(machine: Machine, price: float | str = "on-demand") -> Rent | str:
    """The same, or why there is none."""
    _own_price(price)  # what is no price at all is refused
    try:
        return rent(machine, price)
    except InputError as error:
        return str(error)


def quotes() -> list[Quote]:
    """Every price on record."""
    return list(_quotes())


def on_record(machine: Machine) -> list[Quote]:
    """The prices on record of a machine: of each kind those of its sections that have one.

    >>> [quote.kind for quote in on_record(Machine.preset("dgx-h100"))]
    ['on-demand', 'reserved', 'spot']
    """
    found = (_quote(section, kind) for kind in KINDS for section in machine.sections)
    return list(dict.fromkeys(quote for quote in found if quote is not None))


def draw(machine: Machine, *, pue: float | None = None, watts: float | None = None) -> Draw:
    """What a machine draws at full load.

    Args:
      machine: which.
      pue: power usage effectiveness of the site, 1 or more.
      watts: of one GPU with its share of the host; by data sheets by default.

    Raises:
      InputError: the power of a GPU is not known.

    >>> draw(Machine.preset("dgx-h100:1"), pue=1.2).kilowatts
    10.2
    """
    data = _power()
    sources = []
    if pue is None:
        pue = float(data["pue"]["value"])
        sources.append(f"PUE {pue:g}: {_sourced(data['pue'])}")
    elif not 1 <= pue <= 10:
        raise InputError(f"`pue` is {pue:g}; give 1 (no losses) to 10.")
    if watts is not None and not 0 < watts <= _LARGEST_WATTS:
        raise InputError(f"`watts` is {watts:g}; give watts per GPU above 0, at most 100,000.")
    total = 0.0
    for section in machine.sections:
        each = watts
        if each is None:
            tdp = float(section.to_dict()["gpu"].get("tdp_watts") or 0)
            if tdp <= 0:
                raise InputError(
                    f"the power of a {section.gpu} is not known. Give `watts` (`--watts`), or "
                    "`tdp_watts` in a machine file."
                )
            beside = data["hosts"].get(section.gpu)
            other = data["otherwise"]
            each = tdp + (float(beside["watts"]) if beside else tdp * other["share_of_tdp"])
            sources.append(
                f"{section.gpu}: {each:,.0f} W a GPU with its share of the host, rated: "
                f"{_sourced(beside or other)}"
            )
        total += each * section.devices
    return Draw(total / 1000, pue, tuple(dict.fromkeys(sources)))


def _own_price(price: float | str) -> float | None:
    """A price in dollars; None: one on record is asked for."""
    if isinstance(price, str):
        text = price
        if text in KINDS:
            return None
        try:
            price = float(text.strip().removeprefix("$"))
        except ValueError:
            raise InputError(
                f"`{text[:40]}` is no price: give dollars per GPU-hour, or one of "
                f"{arguments.listed(KINDS)}."
            ) from None
    if not 0 < price <= _LARGEST_PRICE:
        raise InputError(f"a price of {price:g} dollars per GPU-hour is none; give one above 0.")
    return float(price)


def _given(usd: float) -> Quote:
    return Quote("every GPU", "own", usd, "given", "", "given")


def _on_record(section: Machine, kind: str) -> Quote:
    quote = _quote(section, kind)
    if quote is not None:
        return quote
    others = [f"{q.kind} ${q.usd:g}" for q in _quotes() if q.of in (section.name, section.gpu)]
    beside = f" On record: {', '.join(others)}." if others else ""
    raise InputError(
        f"no {kind} price of {section.name} ({section.gpu}) is on record.{beside} "
        "Give dollars per GPU-hour (`--price 2.50`)."
    )


def _quote(section: Machine, kind: str) -> Quote | None:
    """The machine's own `usd_per_hour`, else a quote of the preset, else of its GPU."""
    known = {(quote.of, quote.kind): quote for quote in _quotes()}
    stated = float(section.to_dict()["gpu"].get("usd_per_hour") or 0)
    of_gpu = known.get((section.gpu, kind))
    if kind == "on-demand" and stated > 0 and (of_gpu is None or of_gpu.usd != stated):
        return Quote(section.gpu, kind, stated, "the machine's `usd_per_hour`", "", "read")
    return known.get((section.name, kind)) or of_gpu


@cache
def _quotes() -> tuple[Quote, ...]:
    return tuple(
        Quote(**{**entry, "usd": float(entry["usd"]), "date": str(entry["date"])})
        for entry in _data("prices.yaml")
    )


@cache
def _power() -> dict[str, Any]:
    data: dict[str, Any] = _data("power.yaml")
    return data


def _sourced(entry: dict[str, Any]) -> str:
    return entry["source"] if entry["known"] == "read" else f"{entry['source']} ({entry['known']})"


def _data(name: str) -> Any:
    import yaml

    return yaml.safe_load(Path(__file__).with_name(name).read_text(encoding="utf-8"))
