"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Sequence

GIB = float(1 << 30)


def duration(seconds: float) -> str:
    """Seconds with a fitting unit and four digits.

    >>> duration(13.7512), duration(0.0812), duration(4.2e-05), duration(0.0)
    ('13.75 s', '81.2 ms', '42 µs', '0 s')
    >>> duration(0.0009999), duration(0.99996)
    ('1 ms', '1.00 s')
    """
    # What prints as a thousand of a unit is one of the next.
    magnitude = abs(float(f"{seconds:.3g}"))
    if magnitude == 0:
        return "0 s"
    if magnitude >= 1:
        return f"{seconds:,.2f} s" if magnitude < 10_000 else f"{seconds:,.0f} s"
    for scale, unit in ((1e3, "ms"), (1e6, "µs"), (1e9, "ns")):
        if magnitude * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:.2g} s"


def gib(size: float, digits: int = 1) -> str:
    """Bytes in GiB.

    >>> gib(80 * 2**30)
    '80.0'
    """
    return f"{size / GIB:,.{digits}f}"


def percent(share: float, digits: int = 1) -> str:
    """A share as a percentage.

    >>> percent(0.4731)
    '47.3 %'
    """
    return f"{share * 100:.{digits}f} %"


def change(ratio: float, digits: int = 1) -> str:
    """A relative difference with its sign.

    >>> change(-0.042)
    '-4.2 %'
    """
    return f"{ratio * 100:+.{digits}f} %"


def count(number: float) -> str:
    """A large number with thousands separators or a scale.

    >>> count(8030261248), count(12345)
    ('8.03 G', '12,345')
    """
    if abs(number) < 1e6:
        return f"{number:,.0f}"
    for scale, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(number) >= scale:
            return f"{number / scale:.3g} {unit}" if abs(number) < 1000 * scale else f"{number:.3g}"
    return f"{number:.3g}"


def gpus(number: int) -> str:
    """A number of GPUs.

    >>> gpus(1), gpus(16384)
    ('1 GPU', '16,384 GPUs')
    """
    return f"{number:,} GPU{'' if number == 1 else 's'}"


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers, neighbours joined.

    >>> ranges([0, 1, 2, 5, 7, 8])
    '0-2, 5, 7-8'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def bar(share: float, width: int = 24) -> str:
    """A bar of `share` of `width` characters.

    >>> bar(0.5, 4)
    '██'
    """
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")
