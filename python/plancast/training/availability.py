"""How many hosts there are, over time: a trace of preemptions and returns."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from pathlib import Path

from plancast import arguments, csv_text, files
from plancast.checked import checked
from plancast.errors import InputError

_UNITS = {"time_s": 1.0, "time_min": 60.0, "time_h": 3600.0, "time_d": 86400.0}
_COUNTS = ("hosts", "change")
_MOST_HOSTS = 1_000_000
_LATEST_S = 1e10


@checked
@dataclass(frozen=True)
class Availability:
    """Hosts from each time on, until the next; the last count stays.

    Args:
      times_s: seconds, rising, the first 0.
      hosts: how many there are from then on.

    >>> trace = Availability.parse("time_h,hosts\\n0,8\\n5,6\\n9,8\\n")
    >>> trace.at(18000.0), trace.times_s[-1]
    (6, 32400.0)
    """

    times_s: tuple[float, ...]
    hosts: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.times_s or len(self.times_s) != len(self.hosts):
            raise InputError("an availability needs as many counts of hosts as times, one or more.")
        if self.times_s[0] != 0:
            raise InputError(f"an availability begins at 0, this one at {self.times_s[0]:g} s.")
        for before, after in zip(self.times_s, self.times_s[1:], strict=False):
            if not before < after:
                raise InputError(f"time goes from {before:g} s to {after:g} s; it has to rise.")
        for count in self.hosts:
            arguments.whole(count, "hosts", 0, _MOST_HOSTS)

    @classmethod
    def from_file(cls, path: str | Path) -> Availability:
        """A CSV file (`parse` says what is in it)."""
        return cls.parse(files.read_text(path), what=str(path))

    @classmethod
    def parse(cls, text: str, *, what: str = "trace") -> Availability:
        """CSV with a column of times (`time_s`, `time_min`, `time_h` or `time_d`) and one of
        `hosts`, or of `change`: hosts that come (positive) or go, the first row from none.

        Args:
          text: the CSV, with a header; lines that begin with `#` are left out.
          what: names it in errors.

        Raises:
          InputError: with the line where time goes back, a count is negative, or the like.
        """
        lines = [
            (number, line)
            for number, line in enumerate(text.splitlines(), start=1)
            if line.strip() and not line.lstrip().startswith("#")
        ]
        if not lines:
            raise InputError(f"`{what}` is empty; write `time_s,hosts` and rows such as `0,8`.")
        header = [name.strip() for name in csv_text.cells(lines[0][1], f"{what}:{lines[0][0]}")]
        time, count = _columns(header, f"{what}:{lines[0][0]}")
        times: list[float] = []
        hosts: list[int] = []
        for number, line in lines[1:]:
            place = f"{what}:{number}"
            cells = [cell.strip() for cell in csv_text.cells(line, place)]
            if len(cells) != len(header):
                raise InputError(f"{place} has {len(cells)} columns and the header {len(header)}.")
            at = _number(cells[header.index(time)], time, place) * _UNITS[time]
            many = _whole(cells[header.index(count)], count, place)
            if not times and at != 0:
                raise InputError(f"{place}: the first row is at {cells[0]}; begin at time 0.")
            if times and at < times[-1]:
                raise InputError(f"{place}: time goes back, from {times[-1]:g} s to {at:g} s.")
            if times and at == times[-1]:
                raise InputError(f"{place}: the time {at:g} s is there twice; join the rows.")
            now = many if count == "hosts" else (hosts[-1] if hosts else 0) + many
            if now < 0:
                raise InputError(f"{place}: {now} hosts are left; a count is never negative.")
            if now > _MOST_HOSTS:
                raise InputError(f"{place}: {now:,} hosts are more than a million.")
            times.append(at)
            hosts.append(now)
        if not times:
            raise InputError(f"`{what}` has no rows; write rows such as `0,8` below the header.")
        return cls(tuple(times), tuple(hosts))

    def at(self, seconds: float) -> int:
        """Hosts at a time."""
        return self.hosts[max(0, bisect.bisect_right(self.times_s, seconds) - 1)]

    @property
    def most(self) -> int:
        """The most hosts there ever are."""
        return max(self.hosts)

    def losses(self) -> int:
        """How often hosts go."""
        return sum(
            after < before for before, after in zip(self.hosts, self.hosts[1:], strict=False)
        )

    def host_seconds(self, until: float) -> float:
        """Hosts times seconds from the beginning on."""
        total = 0.0
        ends = [*self.times_s[1:], math.inf]
        for begin, end, many in zip(self.times_s, ends, self.hosts, strict=True):
            total += many * max(0.0, min(end, until) - begin)
        return total


def _columns(header: list[str], place: str) -> tuple[str, str]:
    """The names of the two columns."""
    if len(set(header)) != len(header):
        raise InputError(f"{place} names a column twice.")
    times = [name for name in header if name in _UNITS]
    counts = [name for name in header if name in _COUNTS]
    if len(times) != 1 or len(counts) != 1:
        raise InputError(
            f"{place} has the columns {arguments.listed(header)[:200]}; it needs one of "
            f"{arguments.listed(_UNITS)} and one of {arguments.listed(_COUNTS)}."
        )
    return times[0], counts[0]


def _number(text: str, name: str, place: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise InputError(f"{place}: `{name}` is `{text[:40]}`, which is no number.") from None
    if not 0 <= number <= _LATEST_S:
        raise InputError(f"{place}: `{name}` is {text[:40]}; a time is 0 or more.")
    return number


def _whole(text: str, name: str, place: str) -> int:
    digits = text.removeprefix("-").removeprefix("+")
    if not digits.isdecimal() or len(digits) > 9:
        raise InputError(f"{place}: `{name}` is `{text[:40]}`; give a whole number of hosts.")
    number = int(text)
    if name == "hosts" and number < 0:
        raise InputError(f"{place}: {number} hosts; a count is never negative.")
    return number
