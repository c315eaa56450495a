"""Numbers as people read them, and words that others wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

GIB = float(1 << 30)
# Control characters but for tabs and ends of lines, and what turns the direction of text.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# What Markdown takes for a tag or an address.
_TAG = re.compile(r"<(?=[A-Za-z/!?])")


def shown(text: str) -> str:
    r"""Text that a terminal or a page shows and does not obey.

    >>> shown("\x1b[31mllama\x07")
    '\\x1b[31mllama\\x07'
    """
    return escaped(text, lambda character: repr(character)[1:-1])


def brief(text: str, most: int = 80) -> str:
    """What somebody wrote, for quoting: cut where it is long.

    >>> brief("tp=8"), brief("9" * 5000, 10)
    ('tp=8', '9999999...')
    """
    return text if len(text) <= most else text[: most - 3] + "..."


def escaped(text: str, write: Callable[[str], str]) -> str:
    r"""The text with every character that is not to be obeyed as `write` writes it.

    >>> escaped("a\x9bb", lambda character: f"<{ord(character)}>")
    'a<155>b'
    """
    return _HIDDEN.sub(lambda match: write(match[0]), text)


def markdown(text: str) -> str:
    r"""Text in a page of Markdown: no tags, no further cells, nothing that stays unseen.

    >>> markdown("<script> | 1 < 2")
    '&lt;script> \\| 1 < 2'
    """
    return _TAG.sub("&lt;", shown(text)).replace("|", "\\|")


def html(text: str) -> str:
    """Text in a page of HTML or a picture.

    >>> html('<a title="x">')
    '&lt;a title=&quot;x&quot;&gt;'
    """
    from html import escape

    return escape(shown(text))


def duration(seconds: float) -> str:
    """Seconds with a fitting unit and four digits.

    >>> duration(13.7512), duration(0.0812), duration(4.2e-05), duration(0.0)
    ('13.75 s', '81.2 ms', '42 µs', '0 s')
    >>> duration(0.0009999), duration(0.99996), duration(432000)
    ('1 ms', '1.00 s', '432,000 s (5.0 days)')
    """
    # What prints as a thousand of a unit is one of the next.
    magnitude = abs(float(f"{seconds:.3g}"))
    if magnitude == 0:
        return "0 s"
    if magnitude >= 86_400:
        return f"{seconds:,.0f} s ({seconds / 86_400:,.1f} days)"
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


def slower(times: float) -> str:
    """How much longer, or shorter, something takes than something else.

    >>> slower(1.037), slower(0.88), slower(1.0001)
    ('3.7 % slower', '12.0 % faster', 'as fast')
    """
    if abs(times - 1) < 0.0005:
        return "as fast"
    return f"{percent(abs(times - 1))} {'slower' if times > 1 else 'faster'}"


def count(number: float) -> str:
    """A large number with thousands separators or a scale, B for billions as people say them.

    >>> count(8030261248), count(12345), count(999885952)
    ('8.03 B', '12,345', '1 B')
    """
    if abs(number) < 1e6:
        return f"{number:,.0f}"
    for scale, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        # What three digits round up to the next unit is of that.
        if abs(number) >= 0.9995 * scale:
            return f"{number / scale:.3g} {unit}" if abs(number) < 1000 * scale else f"{number:.3g}"
    return f"{number:.3g}"


def gpus(number: int) -> str:
    """A number of GPUs.

    >>> gpus(1), gpus(16384)
    ('1 GPU', '16,384 GPUs')
    """
    return counted(number, "GPU")


def counted(number: int, what: str) -> str:
    """How many of a thing, in words.

    >>> counted(1, "job"), counted(5000, "job")
    ('1 job', '5,000 jobs')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


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
