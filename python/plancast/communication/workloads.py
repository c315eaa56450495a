"""Text workloads of ASTRA-sim 1.0, the language that SimAI's workloads come from."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from plancast import _core, files
from plancast.checked import checked

if TYPE_CHECKING:
    from plancast._core import AstraResult


class WorkloadNode(NamedTuple):
    """What every rank does next: computes for microseconds, or moves bytes."""

    kind: str  # compute, all_reduce, all_gather, reduce_scatter, all_to_all
    duration_us: int | None
    bytes: int | None


@dataclass(frozen=True)
class WorkloadRun:
    """A run as ASTRA-sim's analytical backends time it; nanoseconds, by rank."""

    finish_ns: tuple[int, ...]
    compute_ns: tuple[int, ...]
    messages: int

    @property
    def time_s(self) -> float:
        """Until the last rank is done, seconds."""
        return max(self.finish_ns, default=0) / 1e9


@checked
class TextWorkload:
    """Layers with times and collectives, forward and backward, the same on every rank.

    >>> text = "MODEL\\n1\\nfc -1 100 ALLGATHER 4096 100 ALLREDUCE 4096 50 NONE 0 10"
    >>> TextWorkload.from_text(text).totals()
    {'compute': 250, 'all_gather': 4096}
    """

    __slots__ = ("_core", "_text", "_what")

    def __init__(self, core: _core.TextWorkload, text: str, what: str) -> None:
        self._core, self._text, self._what = core, text, what

    @classmethod
    def from_text(cls, text: str, *, what: str = "workload") -> TextWorkload:
        """A workload from its text; `what` names the text in errors.

        Raises:
          InputError: not of parallelism `MODEL`, or a layer is malformed.
        """
        return cls(_core.TextWorkload.read(text, what), text, what)

    @classmethod
    def open(cls, path: str | Path) -> TextWorkload:
        """A workload from its file."""
        return cls.from_text(files.read_text(path), what=f"`{path}`")

    @property
    def nodes(self) -> list[WorkloadNode]:
        """Kernels and collectives, in the order of issue."""
        return [WorkloadNode(*fields) for fields in self._core.nodes()]

    def totals(self) -> dict[str, int]:
        """Microseconds of kernels, and bytes of each kind of collective."""
        totals: Counter[str] = Counter()
        for kind, microseconds, size in self.nodes:
            totals[kind] += microseconds if microseconds is not None else size or 0
        return {kind: total for kind, total in totals.items() if total}

    def run(
        self,
        network: str | Path,
        system: str | Path,
        *,
        backend: Literal["unaware", "aware"] = "unaware",
        queues_per_dim: int = 1,
    ) -> WorkloadRun:
        """Runs it as ASTRA-sim would, on the network and system of its files (docs/traces.md).

        Args:
          network: the network file; it says how many ranks there are.
          system: the system file.
          backend: without congestion, or with.
          queues_per_dim: `num-queues-per-dim` of ASTRA-sim.
        """
        result: AstraResult = self._core.run_astra(
            (files.read_text(network), f"`{network}`"),
            (files.read_text(system), f"`{system}`"),
            aware=backend == "aware",
            queues=queues_per_dim,
        )
        return WorkloadRun(tuple(result.finish_ns), tuple(result.compute_ns), result.messages)

    def __reduce__(self) -> tuple[Any, ...]:
        return _read, (self._text, self._what)

    def __repr__(self) -> str:
        return f"<TextWorkload: {len(self.nodes):,} nodes>"


def _read(text: str, what: str) -> TextWorkload:
    return TextWorkload.from_text(text, what=what)
