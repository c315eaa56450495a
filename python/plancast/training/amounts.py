"""Amounts as people write them: `15T` tokens, `3M` dollars, `30 days`, `2 TB/s`."""

from __future__ import annotations

import math
import re

from plancast.errors import InputError

_SCALES = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}
_SECONDS = {
    "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0,
    "min": 60.0, "minute": 60.0, "minutes": 60.0,
    "h": 3600.0, "hour": 3600.0, "hours": 3600.0,
    "d": 86400.0, "day": 86400.0, "days": 86400.0,
    "week": 604800.0, "weeks": 604800.0,
}  # fmt: skip
_NUMBER = r"(\d{1,18}(?:\.\d{0,18})?(?:[eE][+-]?\d{1,2})?)"
# More of anything nobody means, and arithmetic stays exact enough below it.
_MOST = 1e18


def scaled(value: float | str, what: str) -> float:
    """A positive number, perhaps with K, M, B (or G) or T behind it.

    >>> scaled("15T", "tokens"), scaled("2.5B", "tokens"), scaled(300, "tokens")
    (15000000000000.0, 2500000000.0, 300.0)
    """
    if isinstance(value, str):
        match = re.fullmatch(rf"\$?\s*{_NUMBER}\s*([KMBGT]?)", value.strip(), re.IGNORECASE)
        if match is None:
            raise InputError(
                f"`{what}` is `{value[:40]}`; write a number such as 300, 2.5B or 15T."
            )
        value = float(match[1]) * _SCALES[match[2].upper()]
    return _sensible(float(value), what)


def seconds(value: float | str, what: str, *, unit: str = "s", zero: bool = False) -> float:
    """A duration in seconds: `90`, `90 s`, `10min`, `2 h`, `30 days`.

    Args:
      value: text, or a number of `unit`s.
      what: names it in errors.
      unit: of numbers that name none.
      zero: whether it may be 0.

    >>> seconds("30 days", "days"), seconds(30, "days", unit="d"), seconds("1.5h", "repair")
    (2592000.0, 2592000.0, 5400.0)
    """
    if isinstance(value, str):
        match = re.fullmatch(rf"{_NUMBER}\s*([a-z]*)", value.strip(), re.IGNORECASE)
        scale = _SECONDS.get((match[2] or unit).lower()) if match else None
        if match is None or scale is None:
            raise InputError(
                f"`{what}` is `{value[:40]}`; write a time such as 90s, 10min, 2h or 30days."
            )
        length = float(match[1]) * scale
    else:
        length = float(value) * _SECONDS[unit]
    if zero and length == 0:
        return 0.0
    return _sensible(length, what)


def bytes_per_s(value: float | str, what: str) -> float:
    """A rate: `2 TB/s`, `500 MB/s`, or bytes per second.

    >>> bytes_per_s("2TB/s", "store")
    2000000000000.0
    """
    if isinstance(value, str):
        match = re.fullmatch(rf"{_NUMBER}\s*([KMGT]?)B/s", value.strip(), re.IGNORECASE)
        if match is None:
            raise InputError(
                f"`{what}` is `{value[:40]}`; write a rate such as 500MB/s, 20GB/s or 2TB/s."
            )
        value = float(match[1]) * _SCALES[match[2].upper()]
    return _sensible(float(value), what)


def _sensible(number: float, what: str) -> float:
    if not (math.isfinite(number) and 0 < number <= _MOST):
        raise InputError(f"`{what}` is {number:g}; give a number above 0, at most 1e18.")
    return number


def whole_run(length: float) -> str:
    """A long time with a fitting unit.

    >>> whole_run(2592000), whole_run(7200), whole_run(600), whole_run(12.5)
    ('30.0 days', '2.0 hours', '10.0 minutes', '12.5 s')
    """
    for size, name in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if length >= size:
            return f"{length / size:,.1f} {name}"
    return f"{length:.3g} s"


def money(usd: float) -> str:
    """Dollars with a scale.

    >>> money(12345678), money(2500), money(3.14159)
    ('$12.3 M', '$2,500', '$3.14')
    """
    if usd >= 1e6:
        scale, letter = (1e9, "B") if usd >= 1e9 else (1e6, "M")
        return f"${usd / scale:,.3g} {letter}" if usd < 1000 * scale else f"${usd / scale:,.0f} B"
    return f"${usd:,.0f}" if usd >= 100 else f"${usd:.3g}"


def energy(kwh: float) -> str:
    """Kilowatt-hours with a scale.

    >>> energy(1234567), energy(12.34)
    ('1.23 GWh', '12.3 kWh')
    """
    for size, name in ((1e9, "TWh"), (1e6, "GWh"), (1e3, "MWh")):
        if kwh >= size:
            return f"{kwh / size:,.3g} {name}"
    return f"{kwh:.3g} kWh"


def data(size: float) -> str:
    """Bytes with a scale.

    >>> data(5682e9), data(112e9), data(358e6), data(0)
    ('5.68 TB', '112 GB', '358 MB', '0 B')
    """
    for scale, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= 0.9995 * scale:
            return f"{size / scale:,.3g} {name}"
    return f"{size:.0f} B"
