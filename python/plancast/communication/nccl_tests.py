"""What nccl-tests prints: read tolerantly, compared with a forecast."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plancast import files
from plancast.communication.collective_table import CollectiveRow
from plancast.errors import InputError

# size, count, type, [redop], [root], then time, algbw, busbw of out-of-place and in-place. What
# runs through a scheduler starts with its prefix: `0: `, `[1,0]<stdout>:`, a time stamp.
_LINE = re.compile(
    r"(?:^|[\s:>\]])(?P<size>\d{1,19})\s+(?P<count>\d{1,19})\s+(?P<type>[a-z][a-z_0-9]*)\s+(?P<rest>.*)$"
)
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?$")
_NAME = re.compile(
    r"(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|sendrecv)_perf", re.IGNORECASE
)
_OPS = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "broadcast": "broadcast",
    "sendrecv": "send_recv",
}
# What a row can have taken, microseconds.
_LEAST_US, _MOST_US = 1e-3, 1e12
# Below this a message is launch and latency.
_SMALL = 64 << 10


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """A line of a log: out of place, or in place where that is all there is."""

    size_bytes: int
    time_us: float
    line: int


@dataclass(frozen=True, slots=True)
class TestLog:
    """What a log says."""

    op: str | None
    ranks: int | None
    rows: tuple[MeasuredRow, ...]
    skipped: tuple[int, ...]  # lines that look like rows and are not


def read_log(path: str | Path) -> TestLog:
    """Reads the output of an nccl-tests program from a file."""
    return parse_log(files.read_text(path), f"`{path}`")


def parse_log(text: str, what: str) -> TestLog:
    """Reads the output of an nccl-tests program; `what` names it in errors."""
    rows: dict[int, MeasuredRow] = {}
    skipped = []
    ranks = set()
    op = None
    for number, line in enumerate(text.splitlines(), 1):
        if op is None and (named := _NAME.search(line)):
            op = _OPS[named.group(1).lower().replace("_", "")]
        if rank := re.search(r"#\s+Rank\s+(\d{1,9})\b", line):
            ranks.add(int(rank.group(1)))
        if "#" in line.split("#", 1)[0] or line.lstrip().startswith("#"):
            continue
        match = _LINE.search(line)
        if match is None:
            continue
        time = _time_of(match.group("rest").split())
        size = int(match.group("size"))
        if time is None or not _LEAST_US <= time <= _MOST_US or size > 1 << 50:
            skipped.append(number)
            continue
        if size > 0 and size not in rows:
            rows[size] = MeasuredRow(size, time, number)
    if not rows:
        raise InputError(
            f"{what} has no line of nccl-tests' table (size, count, type, ..., time, algbw, busbw)."
            " Give the text that all_reduce_perf and its siblings print."
        )
    return TestLog(op, len(ranks) or None, tuple(rows[s] for s in sorted(rows)), tuple(skipped))


def _time_of(fields: Sequence[str]) -> float | None:
    # `sum -1` or nothing comes before the numbers; `N/A` stands for what was not run.
    start = 0
    while start < len(fields) and not _is_number(fields[start]):
        start += 1
    if start > 0 and start < len(fields) and _is_root(fields, start):
        start += 1
    if start + 2 >= len(fields) or not all(_is_number(f) for f in fields[start : start + 3]):
        return None
    return float(fields[start])


def _is_number(text: str) -> bool:
    return len(text) < 40 and _NUMBER.match(text) is not None


def _is_root(fields: Sequence[str], at: int) -> bool:
    # A whole number before the time: the root of an operation, -1 for none.
    return re.fullmatch(r"-?\d+", fields[at]) is not None and fields[at - 1].isalpha()


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A measured size beside its forecast; errors are forecast / measured - 1."""

    size_bytes: int
    measured_us: float
    forecast_us: float

    @property
    def error(self) -> float:
        """Relative error of the forecast."""
        return self.forecast_us / self.measured_us - 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """All sizes of a log."""

    rows: tuple[ComparedRow, ...]

    @property
    def median_error(self) -> float:
        """Of the absolute errors."""
        return statistics.median(abs(row.error) for row in self.rows)

    @property
    def mean_error(self) -> float:
        """Of the absolute errors."""
        return statistics.fmean(abs(row.error) for row in self.rows)

    @property
    def worst_error(self) -> float:
        """The largest absolute error."""
        return max(abs(row.error) for row in self.rows)

    @property
    def launch_us(self) -> float:
        """What small messages take longer than forecast: the harness's launch; 0 if not longer."""
        least = min(row.size_bytes for row in self.rows)
        small = [r for r in self.rows if r.size_bytes <= max(_SMALL, least)]
        return max(0.0, statistics.median(r.measured_us - r.forecast_us for r in small))

    def with_launch(self, launch_us: float) -> Comparison:
        """The same with a launch before every forecast."""
        return Comparison(
            tuple(
                ComparedRow(r.size_bytes, r.measured_us, r.forecast_us + launch_us)
                for r in self.rows
            )
        )


def compare(rows: Sequence[CollectiveRow], log: TestLog) -> Comparison:
    """Puts a log beside forecasts of the same sizes."""
    forecast = {row.size_bytes: row.time_us for row in rows}
    return Comparison(
        tuple(
            ComparedRow(row.size_bytes, row.time_us, forecast[row.size_bytes])
            for row in log.rows
            if row.size_bytes in forecast
        )
    )
