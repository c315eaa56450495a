"""How long collectives take on a machine: the table that nccl-tests prints, without the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plancast import _core, arguments
from plancast.checked import checked
from plancast.errors import InputError

if TYPE_CHECKING:
    import pandas

    from plancast.machine import Machine

KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv")
_LEAST, _MOST = 1, 1 << 50
# 1 KiB to 16 GiB.
DEFAULT_SIZES = tuple(1 << power for power in range(10, 35))


def bus_factor(kind: str, ranks: int) -> float:
    """Bytes on the busiest link per byte of the buffer, as nccl-tests counts them.

    >>> bus_factor("all_reduce", 8)
    1.75
    """
    if kind == "all_reduce":
        return 2 * (ranks - 1) / ranks
    if kind in ("all_gather", "reduce_scatter", "all_to_all"):
        return (ranks - 1) / ranks
    return 1.0


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """One size of one collective.

    `size_bytes` counts as nccl-tests does: all_reduce the buffer, all_gather the output,
    reduce_scatter the input, all_to_all what one rank holds, send_recv what one rank sends.
    `nccl_us` is what NCCL itself expects, by the release that was asked for; None where it has no
    forecast.
    """

    op: str
    gpus: int
    size_bytes: int
    dtype: str
    time_us: float
    algorithm: str
    protocol: str
    channels: int
    nccl_us: float | None
    source: str
    sigma: float

    @property
    def count(self) -> int:
        """Elements of the buffer."""
        return self.size_bytes // ELEMENT_BYTES[self.dtype]

    @property
    def algbw_gb_per_s(self) -> float:
        """Bytes over time, GB/s of 1e9."""
        return self.size_bytes / self.time_us / 1e3 if self.time_us else 0.0

    @property
    def busbw_gb_per_s(self) -> float:
        """The same times `bus_factor`."""
        return self.algbw_gb_per_s * self.bus_factor

    @property
    def bus_factor(self) -> float:
        """Bytes on the busiest link per byte of the buffer."""
        return bus_factor(self.op, self.gpus)


ELEMENT_BYTES = {"float": 4, "half": 2, "bfloat16": 2, "int8": 1, "double": 8}


@dataclass(frozen=True, slots=True, repr=False)
class CollectiveTable:
    """Rows in the order of their sizes."""

    rows: tuple[CollectiveRow, ...]

    def __iter__(self) -> Iterator[CollectiveRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> CollectiveRow:
        return self.rows[index]

    def __repr__(self) -> str:
        if not self.rows:
            return "<CollectiveTable of no sizes>"
        best = max(self.rows, key=lambda row: row.busbw_gb_per_s)
        return (
            f"<CollectiveTable of {best.op} over {best.gpus} GPUs: {len(self)} sizes, "
            f"at most {best.busbw_gb_per_s:.1f} GB/s of bus bandwidth>"
        )

    def plot_bandwidth(self) -> Any:
        """Bus bandwidth by size, NCCL's own forecast beside it, as a plotly figure."""
        from plancast.charts.bandwidth import bandwidth

        return bandwidth(self)

    def to_frame(self) -> pandas.DataFrame:
        """One row for each size, units in the columns' names."""
        return self.to_pandas()

    def to_pandas(self) -> pandas.DataFrame:
        """One row for each size, units in the columns' names."""
        import pandas as pd

        return pd.DataFrame.from_records([row_fields(row) for row in self.rows])


def row_fields(row: CollectiveRow) -> dict[str, str | int | float | None]:
    """A row as it is written out."""
    return {
        "op": row.op,
        "gpus": row.gpus,
        "size_bytes": row.size_bytes,
        "count": row.count,
        "dtype": row.dtype,
        "time_us": row.time_us,
        "algbw_gb_per_s": row.algbw_gb_per_s,
        "busbw_gb_per_s": row.busbw_gb_per_s,
        "algorithm": row.algorithm,
        "protocol": row.protocol,
        "channels": row.channels,
        "nccl_us": row.nccl_us,
        "sigma": row.sigma,
        "source": row.source,
    }


@checked
def collective(
    machine: Machine,
    op: str = "all_reduce",
    *,
    gpus: int | None = None,
    sizes: Sequence[int] = DEFAULT_SIZES,
    algorithm: str = "",
    protocol: str = "",
    nccl_version: str = "2.27",
    dtype: str = "float",
    launch_us: float = 0.0,
    fidelity: str = "closed",
) -> CollectiveTable:
    """Forecasts a collective alone on an idle machine.

    Args:
      machine: where; the first `gpus` devices, all by default, take part.
      op: `all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all`, `broadcast`, `send_recv`.
      sizes: bytes, as nccl-tests counts them.
      algorithm: `ring`, `tree`, `nvls`, `nvls-tree`, `pairwise`, `direct`; NCCL's choice if empty.
      protocol: `LL`, `LL128` or `Simple`; NCCL's choice if empty.
      nccl_version: whose own forecast `nccl_us` is: 2.17, 2.27 or 2.30.
      fidelity: `closed` forms, or `chunks`: chunk by chunk over the links.
      launch_us: what the caller's harness counts before the kernel runs, microseconds.

    >>> from plancast import Machine
    >>> table = collective(Machine.preset("dgx-h100"), sizes=[1 << 20, 1 << 30])
    >>> [(row.algorithm, row.protocol) for row in table.rows]
    [('ring', 'LL'), ('nvls', 'Simple')]
    """
    arguments.word(op, "op")
    if dtype not in ELEMENT_BYTES:
        raise InputError(f"no type `{dtype}`.{arguments.offer(dtype, ELEMENT_BYTES)}")
    devices = machine.devices if gpus is None else gpus
    if not 1 <= devices <= machine.devices:
        raise InputError(
            f"{devices} GPUs of a machine of {machine.devices}. Take between 1 and "
            f"{machine.devices}, or a machine of more hosts."
        )
    if not 0 <= launch_us <= 1e6:
        raise InputError(f"a launch of {launch_us} us; it has to lie between 0 and 1,000,000.")
    for size in sizes:
        if not _LEAST <= size <= _MOST:
            raise InputError(f"a size of {size} bytes; it has to lie between 1 and {_MOST:,}.")
    members = list(range(devices))
    closed = _core.collective_times(
        machine._core,
        op,
        members,
        list(sizes),
        _lower(algorithm),
        _proto(protocol),
        arguments.chunk_level(fidelity),
    )
    expected = _core.nccl_choices(machine._core, op, members, list(sizes), nccl_version)
    rows = []
    for size, answer, nccl in zip(sizes, closed, expected, strict=True):
        picoseconds, name, proto, channels, source, sigma = answer
        rows.append(
            CollectiveRow(
                op,
                devices,
                size,
                dtype,
                picoseconds / 1e6 + launch_us,
                name,
                proto,
                channels,
                nccl[3] if nccl else None,
                source,
                sigma,
            )
        )
    return CollectiveTable(tuple(rows))


def collective_seconds(machine: Machine, op: str, members: Sequence[int], size: int) -> float:
    """A collective of these devices alone on the machine, by closed form, seconds."""
    closed = _core.collective_times(
        machine._core, op, list(members), [size], "", "", arguments.chunk_level("closed")
    )
    picoseconds: int = closed[0][0]
    return picoseconds / 1e12


# NCCL's names of the algorithms that have closed forms.
_ALGORITHMS = {"nvlstree": "nvls-tree"}
_PROTOCOLS = {"ll": "LL", "ll128": "LL128", "simple": "Simple"}


def _lower(algorithm: str) -> str:
    return _ALGORITHMS.get(algorithm.lower(), algorithm.lower())


def _proto(protocol: str) -> str:
    return _PROTOCOLS.get(protocol.lower(), protocol)
