"""Traces that NCCL wrote about itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from plancast import _core, files
from plancast.cached import cached_property
from plancast.checked import checked
from plancast.communication.trace_file import TraceFile
from plancast.shown import Shown

if TYPE_CHECKING:
    from rich.console import RenderableType


# Events that are made without a pause.
_AT_ONCE = 1024
_Core = _core.NcclTrace


class NcclEvent(NamedTuple):
    """A span of the trace; None and "" for what the file does not say.

    `kind` is `collective`, `point to point`, `proxy op`, `step`, `wait`, `kernel`, `call`, ...;
    `wait` what a step waits for: `buffer`, `gpu`, `peer`, `send`, `receive`, `flush`. `parent` is
    the number of the event that this one is part of. Times are seconds; `duration_s` is None
    where begin or end is missing.
    """

    kind: str
    name: str
    category: str
    process: str
    track: str
    start_s: float
    duration_s: float | None
    parent: int | None
    rank: int | None
    channel: int | None
    peer: int | None
    direction: str
    step: int | None
    wait: str
    algorithm: str
    protocol: str
    channels: int | None
    size_bytes: int | None
    line: int


class NcclOperation(NamedTuple):
    """Collectives, or sends and receives, that are alike.

    Their time is the profiler's: to the end of the proxy's work, or of the launch where no proxy
    took part. `kernel_s` is the median time from the first block's start to the last one's end.
    """

    name: str
    algorithm: str
    protocol: str
    datatype: str
    size_bytes: int | None
    channels: int | None
    calls: int
    total_s: float
    least_s: float
    median_s: float
    most_s: float
    kernel_s: float | None


class NcclChannel(NamedTuple):
    """What the proxy did for one channel and peer.

    `step_s` sums the steps, which overlap; `busy_s` is the time while one was under way.
    """

    rank: int | None
    channel: int | None
    direction: str
    peer: int | None
    operations: int
    steps: int
    size_bytes: int | None
    step_s: float
    busy_s: float


class NcclWait(NamedTuple):
    """Time that steps spent in a state; `share` of all states of that direction."""

    direction: str
    wait: str
    times: int
    total_s: float
    share: float


@checked
class NcclTrace(TraceFile, Shown):
    """A file of NCCL's proxy profile (`NCCL_PROXY_PROFILE`, until 2.22) or of its example
    profiler plugin (`NCCL_PROFILE_DUMP_FILE`).

    Events, operations, channels and waits are lists of named tuples, as data frames take them.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
    ...     _ = file.write('[{"name": "Send-3-0", "cat": "NET", "ph": "b", "id": 0, "pid": 1,'
    ...                    ' "tid": 1, "ts": 2.0},'
    ...                    ' {"name": "Send-3-0", "cat": "NET", "ph": "e", "id": 0, "pid": 1,'
    ...                    ' "tid": 1, "ts": 9.5}, {} ]')
    ...     file.flush()
    ...     trace = NcclTrace.open(file.name)
    >>> trace
    <NcclTrace: proxy profile, 1 event>
    >>> trace.events[0].channel, trace.events[0].peer, trace.events[0].duration_s
    (1, 3, 7.5e-06)
    """

    _core: _Core

    def __init__(self, core: _Core, path: str | Path) -> None:
        self._core = core
        self._path = path

    @classmethod
    def open(cls, path: str | Path) -> NcclTrace:
        """Reads a file, compressed by gzip or not. What it does not understand is in `problems`."""
        return cls(_core.NcclTrace.read(files.read_bytes(path), f"`{path}`"), path)

    @property
    def dialect(self) -> str:
        """`proxy profile` or `profiler plugin`."""
        return self._core.dialect

    @cached_property
    def events(self) -> list[NcclEvent]:
        """Every span, in the order of the file; what encloses comes before what it encloses."""
        events: list[NcclEvent] = []
        # A piece at a time: in between, other threads run.
        for begin in range(0, len(self), _AT_ONCE):
            events += [NcclEvent(*fields) for fields in self._core.events(begin, begin + _AT_ONCE)]
        return events

    @property
    def operations(self) -> list[NcclOperation]:
        """Collectives, sends and receives by what they are, the most time first."""
        return [NcclOperation(*fields) for fields in self._summary[0]]

    @property
    def channels(self) -> list[NcclChannel]:
        """The proxy's work by rank, channel, direction and peer."""
        return [NcclChannel(*fields) for fields in self._summary[1]]

    @property
    def waits(self) -> list[NcclWait]:
        """What the proxy's steps waited for."""
        return [NcclWait(*fields) for fields in self._summary[2]]

    @property
    def duration_s(self) -> float:
        """From the first stamp to the last."""
        return self._summary[3]

    def to_dict(self) -> dict[str, object]:
        """The fields of `plancast import trace --json`."""
        return {
            "dialect": self.dialect,
            "events": len(self),
            "duration_s": self.duration_s,
            "operations": [operation._asdict() for operation in self.operations],
            "channels": [channel._asdict() for channel in self.channels],
            "waits": [wait._asdict() for wait in self.waits],
            **self._reading(),
        }

    @cached_property
    def _summary(
        self,
    ) -> tuple[list[tuple], list[tuple], list[tuple], float]:  # type: ignore[type-arg]
        return self._core.summary()

    def __reduce__(self) -> tuple[Any, ...]:
        return NcclTrace.open, (self._path,)  # from its file again

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self) -> str:
        return f"<NcclTrace: {self.dialect}, {len(self)} event{'s' if len(self) != 1 else ''}>"

    def __rich__(self) -> RenderableType:
        from plancast.report.nccl_trace import trace_tables

        return trace_tables(self)
