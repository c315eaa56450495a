"""Traces in the Chrome format, of whatever tool wrote them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from plancast import _core, files
from plancast.cached import cached_property
from plancast.checked import checked
from plancast.communication.trace_file import TraceFile
from plancast.shown import Shown

if TYPE_CHECKING:
    from rich.console import RenderableType

# Spans that are made without a pause.
_AT_ONCE = 1024
_Core = _core.ChromeTrace


class ChromeSpan(NamedTuple):
    """Something that took time; seconds after `ChromeTrace.origin_s`.

    `duration_s` is None of what has no begin or no end in the file, `parent` the index of the
    span that it is part of, or None.
    """

    name: str
    category: str
    process: str
    thread: str
    start_s: float
    duration_s: float | None
    parent: int | None
    line: int
    args: dict[str, str]


class ChromeTotal(NamedTuple):
    """Spans of one name; seconds, what is inside them included."""

    name: str
    category: str
    spans: int
    total_s: float
    longest_s: float


class ChromeFlow(NamedTuple):
    """From a moment in one span to a moment in another; spans by index, seconds."""

    name: str
    source: int
    target: int
    source_s: float
    target_s: float


class ChromeCounter(NamedTuple):
    """Values of a process at a moment, seconds."""

    name: str
    process: int
    time_s: float
    values: dict[str, float]


@checked
class ChromeTrace(TraceFile, Shown):
    """A trace that chrome://tracing, ui.perfetto.dev, PyTorch's profiler or Plancast wrote.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
    ...     _ = file.write('[{"name": "step", "ph": "X", "ts": 5, "dur": 2, "pid": 1, "tid": 1}]')
    ...     file.flush()
    ...     trace = ChromeTrace.open(file.name)
    >>> trace.totals[0].name, trace.totals[0].total_s
    ('step', 2e-06)
    """

    _core: _Core

    def __init__(self, core: _Core, path: str | Path) -> None:
        self._core = core
        self._path = path

    @classmethod
    def open(cls, path: str | Path) -> ChromeTrace:
        """Reads a file, compressed by gzip or not. What it does not understand is in `problems`."""
        return cls(_core.ChromeTrace.read(files.read_bytes(path), f"`{path}`"), path)

    @cached_property
    def spans(self) -> list[ChromeSpan]:
        """Every span, in the order of their beginnings in the file."""
        tracks = [(process, thread) for _, _, process, thread in self._core.tracks()]
        spans: list[ChromeSpan] = []
        # A piece at a time: in between, other threads run.
        for begin in range(0, len(self), _AT_ONCE):
            spans += [
                ChromeSpan(name, category, *tracks[track], *rest)
                for name, category, track, *rest in self._core.spans(begin, begin + _AT_ONCE)
            ]
        return spans

    @property
    def flows(self) -> list[ChromeFlow]:
        """Arrows between spans."""
        return [ChromeFlow(*fields) for fields in self._core.flows()]

    @property
    def counters(self) -> list[ChromeCounter]:
        """Quantities over time."""
        return [ChromeCounter(*fields) for fields in self._core.counters()]

    @cached_property
    def totals(self) -> list[ChromeTotal]:
        """Spans by name and category, the most time first."""
        found: dict[tuple[str, str], list[float]] = defaultdict(list)
        for span in self.spans:
            found[span.name, span.category].append(span.duration_s or 0.0)
        totals = [ChromeTotal(*key, len(t), sum(t), max(t)) for key, t in found.items()]
        return sorted(totals, key=lambda total: (-total.total_s, total.name))

    @property
    def origin_s(self) -> float:
        """What the file's clock says at 0, seconds."""
        return self._core.origin_s

    @property
    def duration_s(self) -> float:
        """From the first beginning to the last end, seconds."""
        if not self.spans:
            return 0.0
        ends = (span.start_s + (span.duration_s or 0.0) for span in self.spans)
        return max(ends) - min(span.start_s for span in self.spans)

    @property
    def tracks(self) -> list[tuple[str, str]]:
        """Process and thread of each row."""
        return [(process, thread) for _, _, process, thread in self._core.tracks()]

    def to_dict(self) -> dict[str, Any]:
        """The fields of `plancast import chrome --json`."""
        return {
            "spans": len(self),
            "tracks": [list(track) for track in self.tracks],
            "flows": len(self.flows),
            "counters": len(self.counters),
            "origin_s": self.origin_s,
            "duration_s": self.duration_s,
            "totals": [total._asdict() for total in self.totals],
            **self._reading(),
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return ChromeTrace.open, (self._path,)  # from its file again

    def __len__(self) -> int:
        """Number of spans."""
        return len(self._core)

    def __repr__(self) -> str:
        return f"<ChromeTrace: {len(self):,} spans on {len(self.tracks)} tracks>"

    def __rich__(self) -> RenderableType:
        from plancast.report.chrome_trace import trace_tables

        return trace_tables(self)
