"""Memory of a forecast: the peak of each device class, its reasons, its course."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from plancast import _core, arguments
from plancast.errors import InputError
from plancast.immutable import Immutable
from plancast.question import Facts, Question
from plancast.shown import Shown
from plancast.textual import gib

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

# Device classes that a repr names.
_SHOWN = 4
# What device memory holds, in the order of reports.
KINDS = ("parameters", "gradients", "optimizer", "activations", "workspace")


@dataclass(frozen=True)
class ClassMemory:
    """Peak memory of one device class, bytes at the moment of the peak.

    The five kinds sum to `allocated`; with `rounding` of blocks and segments and
    the `fragmentation` reserve that is `reserved`; with buffers of communicators
    (`nccl`) and the `context` of driver and libraries it is `device`. `host` is what
    the device keeps in the memory of its host beside that (offloading), at most.
    """

    device_class: str
    ranks: int
    parameters: int
    gradients: int
    optimizer: int
    activations: int
    workspace: int
    allocated: int
    rounding: int
    fragmentation: int
    reserved: int
    nccl: int
    context: int
    device: int
    host: int = 0


@dataclass(frozen=True)
class LiveTensor:
    """Equal tensors alive at the peak: one of a module, in all layers and micro-batches."""

    name: str
    kind: str
    bytes_each: int
    copies: int
    micro_batches: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Bytes of all copies."""
        return self.bytes_each * self.copies


@dataclass(frozen=True, repr=False)
class PeakReasons(Shown):
    """What is alive at the peak of one device class, largest first.

    `block`, `task`, `layer` and `micro_batch` say what was issued last; they are
    empty and -1 where nothing but state is ever allocated.
    """

    memory: ClassMemory
    block: str
    task: str
    layer: int
    micro_batch: int
    tensors: tuple[LiveTensor, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "device_class": self.memory.device_class,
            "allocated": self.memory.allocated,
            "block": self.block,
            "task": self.task,
            "layer": self.layer,
            "micro_batch": self.micro_batch,
            "tensors": [
                {**asdict(tensor), "bytes": tensor.bytes, "micro_batches": [*tensor.micro_batches]}
                for tensor in self.tensors
            ],
        }

    def __repr__(self) -> str:
        most = f", most of it {self.tensors[0].name}" if self.tensors else ""
        return (
            f"<PeakReasons of {self.memory.device_class}: {len(self.tensors)} tensors, "
            f"{gib(self.memory.allocated)} GiB{most}>"
        )

    def __str__(self) -> str:
        from plancast.report.memory import reasons_text

        return reasons_text(self)

    def __rich__(self) -> RenderableType:
        from plancast.report.memory import reasons_table

        return reasons_table(self)


@dataclass(frozen=True)
class Placement:
    """Every block of one device class placed by PyTorch's caching allocator.

    `reserved` is the most that its segments take (where it runs `out_of_memory`, what they
    would take with the block asked for), `blocks` the most that blocks in use take, bytes.
    `retries` counts how often free segments were given back to make room for another.
    `block`, `tensor`, `layer` and `micro_batch` say what was allocated when segments last
    grew, or could not.
    """

    device_class: str
    reserved: int
    blocks: int
    retries: int
    out_of_memory: bool
    block: str
    tensor: str
    layer: int
    micro_batch: int

    @property
    def fragmentation(self) -> float:
        """Share of the segments that no block uses when most are in use."""
        return 1 - self.blocks / self.reserved if self.reserved else 0.0


@dataclass(frozen=True, repr=False)
class MemoryTimeline:
    """Live memory of one device class over one iteration, in the order of issue.

    Columns of equal length: `issued` tasks, `time_s` seconds (empty unless the
    forecast has a timeline), and bytes of each kind. `peak` is the row of the
    highest point. `room` is what the device has for them: its capacity less everything
    but live tensors.
    """

    memory: ClassMemory
    issued: tuple[int, ...]
    time_s: tuple[float, ...]
    kinds: dict[str, tuple[int, ...]]
    peak: int
    room: int = 0

    @property
    def allocated(self) -> tuple[int, ...]:
        """Bytes of all kinds."""
        return tuple(sum(row) for row in zip(*self.kinds.values(), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "device_class": self.memory.device_class,
            "issued": [*self.issued],
            "time_s": [*self.time_s] or None,
            **{kind: [*values] for kind, values in self.kinds.items()},
            "peak": self.peak,
        }

    def to_frame(self) -> pd.DataFrame:
        """A row for each point: `issued` tasks, `time_s` where known, bytes of each kind."""
        import pandas as pd

        timed = {"time_s": self.time_s} if self.time_s else {}
        return pd.DataFrame({"issued": self.issued, **timed, **self.kinds})

    def plot(self) -> Any:
        """Live tensors by kind, as a plotly figure."""
        from plancast.charts.memory import course

        return course(self)

    def __repr__(self) -> str:
        return (
            f"<MemoryTimeline of {self.memory.device_class}: {len(self.issued):,} points, "
            f"peak {gib(self.allocated[self.peak])} GiB>"
        )

    def _repr_html_(self) -> str:
        from plancast.report.memory_svg import timeline_svg

        return timeline_svg(self)

    def __rich__(self) -> RenderableType:
        from plancast.report.memory import TimelinePicture

        return TimelinePicture(self)


class PeakMemory(Shown, Immutable, tuple[ClassMemory, ...]):
    """Peak memory of each device class.

    >>> import plancast as pc
    >>> forecast = pc.predict(
    ...     pc.Model.preset("gpt3-175b"), pc.Machine.preset("dgx-a100-80g", hosts=8),
    ...     "tp=8,pp=8,mb=1,recompute=full", batch=64)
    >>> first = forecast.memory[0]
    >>> reasons = forecast.memory.explain(first.device_class)
    >>> sum(tensor.bytes for tensor in reasons.tensors) == first.allocated
    True
    >>> course = forecast.memory.timeline(first.device_class)
    >>> max(course.allocated) == first.allocated
    True
    """

    _source: _core.Forecast
    _question: Question | None

    def __new__(cls, core: _core.Forecast, question: Question | None = None) -> PeakMemory:
        """The memory of a forecast of the core."""
        self = super().__new__(cls, (ClassMemory(**fields) for fields in core.memory()))
        self._source = core
        self._question = question
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return PeakMemory, (Facts.of(self._source, self._question), self._question)

    @property
    def capacities(self) -> tuple[int, ...]:
        """Memory of a device of each class, bytes."""
        return tuple(self._source.memory_capacities)

    @property
    def fullest(self) -> ClassMemory:
        """The device class with least memory left."""
        if not self:
            raise InputError("this forecast has no device classes: its plan was not simulated.")
        left = zip(self._source.memory_capacities, self, strict=True)
        return max(left, key=lambda pair: pair[1].device - pair[0])[1]

    def to_frame(self) -> pd.DataFrame:
        """A row for each device class, bytes, with the `capacity` of its devices."""
        import pandas as pd

        rows = zip(self, self.capacities, strict=True)
        return pd.DataFrame.from_records([{**asdict(own), "capacity": has} for own, has in rows])

    def plot_peak(self) -> Any:
        """What each device class holds at its peak, as a plotly figure."""
        from plancast.charts.memory import peak

        return peak(self)

    def share(self, memory: ClassMemory) -> float:
        """What a device class of these uses of what its devices offer."""
        capacity: int = self._source.memory_capacities[self.index(memory)]
        return memory.device / capacity if capacity else 0.0

    def explain(self, device_class: str | None = None) -> PeakReasons:
        """What is alive at the peak of a device class, by default the fullest."""
        index = self._index(device_class)
        fields = self._source.memory_reasons(index)
        tensors = tuple(LiveTensor(*line) for line in fields.pop("tensors"))
        return PeakReasons(memory=self[index], tensors=tensors, **fields)

    def placement(self, device_class: str | None = None, *, limited: bool = True) -> Placement:
        """Where an allocator like PyTorch's puts every block, by default of the fullest class.

        Args:
          device_class: of whom.
          limited: to what the device has beside communicators and context; else segments
            grow as they like.
        """
        index = self._index(device_class)
        fields = self._source.memory_placement(index, limited=limited)
        return Placement(device_class=self[index].device_class, **fields)

    def timeline(
        self,
        device_class: str | None = None,
        *,
        max_points: int = 2000,
        every_layer: bool = False,
    ) -> MemoryTimeline:
        """Live memory over the iteration, by default of the fullest device class.

        A pass over a run of equal layers is one step, or one a layer. Of more than
        `max_points`, the highest and the last of equal pieces are kept.
        """
        if not 4 <= max_points <= 1_000_000:
            raise InputError(f"`max_points` is {max_points}; give 4 to 1,000,000.")
        index = self._index(device_class)
        columns = self._source.memory_timeline(
            index, max_points=max_points, every_layer=every_layer
        )
        return MemoryTimeline(
            memory=self[index],
            issued=tuple(columns["issued"]),
            time_s=tuple(columns["time_s"]),
            kinds={kind: tuple(columns[kind]) for kind in KINDS},
            peak=columns["peak"],
            room=self._room(self[index]),
        )

    def _room(self, memory: ClassMemory) -> int:
        beside = memory.device - memory.allocated
        return max(0, self._source.memory_capacities[self.index(memory)] - beside)

    def __repr__(self) -> str:
        shown = ", ".join(f"{own.device_class} {gib(own.device)} GiB" for own in self[:_SHOWN])
        more = f" and {len(self) - _SHOWN} more" if len(self) > _SHOWN else ""
        return f"<PeakMemory of {shown}{more}>"

    def __rich__(self) -> RenderableType:
        from plancast.report.tables import memory_table

        return memory_table(self)

    def _index(self, device_class: str | None) -> int:
        fullest = self.fullest
        if not self._source.explains_memory:
            raise InputError(
                "this forecast is one of several and keeps no tensors. "
                "Predict its strategy alone to see what is alive."
            )
        if device_class is None:
            return self.index(fullest)
        names = [entry.device_class for entry in self]
        if device_class not in names:
            offer = arguments.offer(device_class, names)
            raise InputError(f"no device class `{device_class}`.{offer}")
        return names.index(device_class)
