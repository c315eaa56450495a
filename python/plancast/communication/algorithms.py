"""Collective algorithms as chunk programs: made, read from MSCCL's XML, checked and run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plancast import _core, arguments, files
from plancast.checked import checked
from plancast.communication.link_graph import Topology, graph_of
from plancast.errors import InputError
from plancast.immutable import Immutable

if TYPE_CHECKING:
    from plancast.machine import Machine


@dataclass(frozen=True)
class AlgorithmRun:
    """How an algorithm ran; seconds, bytes and bytes per second.

    Attributes:
      bytes: of the buffer, as nccl-tests count it.
      time: until the last GPU is done.
      rank_times: until each GPU is done.
      algorithm_bandwidth: bytes / time.
      bus_bandwidth: the same scaled to what the links carry, as nccl-tests do.
      busiest_link: its name, as in "nvlink of device 3, outward".
      busiest_link_bytes: what it carried.
      busiest_link_share: of the time that it was busy.
      busiest_block: the thread block that sent for the largest part of the time, where a
        channel has a limit; else empty.
      busiest_block_share: that part.
    """

    bytes: int
    time: float
    rank_times: list[float]
    algorithm_bandwidth: float
    bus_bandwidth: float
    busiest_link: str
    busiest_link_bytes: float
    busiest_link_share: float
    busiest_block: str
    busiest_block_share: float
    _trace: str | None = field(default=None, repr=False, compare=False)

    def to_perfetto(self, path: str | Path) -> None:
        """Writes a Chrome trace of every message; `.gz` compresses it."""
        if self._trace is None:
            raise InputError("the run recorded no messages; run it with `timeline=True`.")
        files.write_text(path, self._trace)


@checked
class Algorithm(Immutable):
    """What every GPU of a collective does with every chunk; immutable.

    >>> ring = Algorithm.make("all_reduce", "ring", gpus=8)
    >>> ring.chunks, ring.count_steps()["rrcs"]
    (8, 8)
    """

    __slots__ = ("_core", "_what")

    def __init__(self, core: _core.Algorithm, what: str) -> None:
        self._core, self._what = core, what

    @classmethod
    def make(
        cls,
        op: str,
        algorithm: str,
        *,
        gpus: int | Sequence[int],
        channels: int = 1,
        protocol: str = "Simple",
        root: int = 0,
    ) -> Algorithm:
        """A known algorithm: `ring`, `tree`, `direct`, `halving_doubling`, ...

        Args:
          op: `all_reduce`, `all_gather`, ...
          gpus: how many, or of each level, innermost first: [8, 4] are four hosts of eight.
          channels: parts of the data that move side by side.
          protocol: `Simple`, `LL` or `LL128`.
          root: of broadcast, reduce, gather, scatter.
        """
        arguments.word(op, "op")
        arguments.word(algorithm, "algorithm")
        arguments.word(protocol, "protocol")
        core = _core.Algorithm.make(
            op,
            algorithm,
            levels=arguments.levels(gpus),
            channels=arguments.whole(channels, "channels", 1, 1024),
            protocol=protocol,
            root=arguments.whole(root, "root", 0, arguments.MOST_RANKS),
        )
        return cls(core, core.name)

    @classmethod
    def from_msccl(cls, text: str, *, what: str = "algorithm") -> Algorithm:
        """Reads MSCCL's XML; `what` names the text in errors.

        Refuses what is malformed. Whether it computes its collective, `check` says.
        """
        return cls(_core.Algorithm.from_msccl(text, what), what)

    @classmethod
    def open(cls, path: str | Path) -> Algorithm:
        """Reads a file of MSCCL's XML and checks what it computes."""
        algorithm = cls.from_msccl(files.read_text(path), what=str(path))
        algorithm.check()
        return algorithm

    def to_msccl(self) -> str:
        """MSCCL's XML, which `from_msccl` reads back.

        >>> text = Algorithm.make("all_gather", "ring", gpus=4).to_msccl()
        >>> Algorithm.from_msccl(text).to_msccl() == text
        True
        """
        return self._core.to_msccl()

    def check(self) -> None:
        """Raises InputError, with gpu, thread block and step, unless the algorithm is right.

        Proves by symbolic execution that every order of its steps leaves what the
        collective asks for.
        """
        self._core.check(self._what)

    def count_steps(self) -> dict[str, int]:
        """Steps by MSCCL's names (`s`, `r`, `rcs`, `rrs`, `rrc`, `rrcs`, `cpy`, `re`, `nop`)."""
        return self._core.count_steps()

    def count_sends(self) -> list[int]:
        """Chunks that each GPU sends in a turn of the loop over the buffer."""
        return self._core.count_sends()

    def run(
        self,
        machine: Machine | None = None,
        *,
        bytes: int,
        topology: Topology | None = None,
        link_bandwidth: float = 25e9,
        alpha: float | None = None,
        timeline: bool = False,
    ) -> AlgorithmRun:
        """Simulates it chunk by chunk; GPU r is device r.

        Args:
          machine: where it runs, with the overheads of MSCCL's interpreter and protocols.
          bytes: of the buffer, as nccl-tests count it (all_gather: the output).
          topology: instead of a machine, bare links as in `pc.synthesize`.
          link_bandwidth: of a link of width 1 of the topology, bytes per second.
          alpha: seconds that a message takes beside its transfer, instead of all overheads.
            0 for topologies.
          timeline: record every message for `AlgorithmRun.to_perfetto`.

        >>> ring = Algorithm.make("all_gather", "ring", gpus=8)
        >>> ring.run(bytes=8_000_000, topology="ring:8", link_bandwidth=1e9).time
        0.007
        """
        size = arguments.whole(bytes, "bytes", 0, arguments.MOST_BYTES)
        if (machine is None) == (topology is None):
            raise InputError("an algorithm runs on a machine or on a topology; give one of them.")
        if machine is not None:
            fields = self._core.run_on_machine(
                machine._core, bytes=size, alpha=alpha, timeline=timeline
            )
        else:
            assert topology is not None
            fields = self._core.run_on_graph(
                graph_of(topology),
                bytes=size,
                link_bandwidth=link_bandwidth,
                alpha=alpha or 0.0,
                timeline=timeline,
            )
        return AlgorithmRun(bytes=size, **fields)

    @property
    def name(self) -> str:
        """The algorithm's own name."""
        return self._core.name

    @property
    def op(self) -> str:
        """The collective, such as `all_reduce`."""
        return self._core.op

    @property
    def protocol(self) -> str:
        """`Simple`, `LL` or `LL128`."""
        return self._core.protocol

    @property
    def gpus(self) -> int:
        """How many GPUs take part."""
        return self._core.gpus

    @property
    def channels(self) -> int:
        """Channels that its connections are spread over."""
        return self._core.channels

    @property
    def chunks(self) -> int:
        """Chunks that one turn of the loop cuts the buffer into."""
        return self._core.chunks

    @property
    def in_place(self) -> bool:
        """Whether input and output are one buffer."""
        return self._core.in_place

    @property
    def bytes_range(self) -> tuple[int | None, int | None]:
        """Sizes that the file means it for, bytes; None where it says nothing."""
        return self._core.min_bytes, self._core.max_bytes

    @property
    def warnings(self) -> list[str]:
        """What MSCCL would refuse and RCCL would take."""
        return self._core.warnings

    def __reduce__(self) -> tuple[Any, ...]:
        return _read, (self.to_msccl(), self._what)

    def __repr__(self) -> str:
        return f"<Algorithm `{self.name}`: {self.op} of {self.gpus} GPUs, {self.chunks} chunks>"


def _read(text: str, what: str) -> Algorithm:
    return Algorithm.from_msccl(text, what=what)
