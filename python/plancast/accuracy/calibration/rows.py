"""Measured kernels and GPU figures, read from CSV files into numpy columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import numpy as np

from plancast.accuracy.table import Cells, Table
from plancast.errors import InputError
from plancast.records.columns import gpu_aliases
from plancast.textual import brief

# Names that sources use for a GPU of hardware.csv.
ALIASES = gpu_aliases()


@dataclass(frozen=True)
class Gpu:
    """Data-sheet figures of one GPU; rates per second, 0 where unknown."""

    name: str
    sms: float
    boost_mhz: float
    bytes_per_s: float
    peaks: dict[str, float]
    vendor: str = ""
    l2_bytes: float = 0.0
    tdp_watts: float = 0.0

    @property
    def figures(self) -> dict[str, float]:
        """By the names of DeviceType (cluster/machine.h)."""
        rates = {f"{name}_flops": peak for name, peak in self.peaks.items()}
        return {
            "sms": self.sms,
            "boost_mhz": self.boost_mhz,
            "memory_bytes_per_s": self.bytes_per_s,
            "l2_bytes": self.l2_bytes,
            "tdp_watts": self.tdp_watts,
            **rates,
        }

    @property
    def speed_grade(self) -> float:
        """fp16 FLOPs per SM and clock: equal for GPUs of one SM design."""
        clock = self.sms * self.boost_mhz * 1e6
        return (self.peaks["fp16"] or self.peaks["fp32"]) / clock if clock else 0.0

    @property
    def power_density(self) -> float:
        """Nominal 16-bit TFLOP/s per watt of the board; its power has to be known."""
        return (self.peaks["fp16"] or self.peaks["fp32"]) / 1e12 / self.tdp_watts

    @property
    def fp32_speed_grade(self) -> float:
        """The same of the units for fp32."""
        clock = self.sms * self.boost_mhz * 1e6
        return self.peaks["fp32"] / clock if clock else 0.0


PEAKS = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4")
# More than any data sheet says, in its own unit; 0 and empty say unknown.
MOST_OF_GPU = 1e9
_PEAK_COLUMNS = tuple(f"{name}_tflops" for name in PEAKS)


def read_gpus(path: Path) -> dict[str, Gpu]:
    """GPUs by name, from hardware.csv."""
    table = _table(path, ("gpu", "sm_count", "boost_mhz", "mem_gbps", *_PEAK_COLUMNS))
    return {gpu.name: gpu for gpu in map(_gpu_of, table.rows())}


def _gpu_of(cells: Cells) -> Gpu:
    def figure(name: str) -> float:
        value = cells.number(name) or 0.0
        if not 0 <= value <= MOST_OF_GPU:
            raise InputError(
                f"{cells.place}: `{name}` is {value:g}; give a number from 0 to {MOST_OF_GPU:,.0f}."
            )
        return value

    return Gpu(
        cells.text("gpu"),
        cells.whole("sm_count", most=1e6) or 0,
        figure("boost_mhz"),
        figure("mem_gbps") * 1e9,
        {name: figure(f"{name}_tflops") * 1e12 for name in PEAKS},
        cells.text("vendor"),
        figure("l2_mb") * 2**20,
        figure("tdp_w"),
    )


class Rows:
    """Columns of equal length: `rows["m"]` is one, `rows[mask]` selects."""

    def __init__(self, columns: dict[str, np.ndarray]):
        self._columns = columns

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """The columns by name."""
        return self._columns

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def followed_by(self, other: Rows) -> Rows:
        """These rows and then those of another table, in the columns that both have."""
        shared = [name for name in self._columns if name in other._columns]
        return Rows({n: np.concatenate([self[n], other[n]]) for n in shared})

    @overload
    def __getitem__(self, key: str) -> np.ndarray: ...

    @overload
    def __getitem__(self, key: np.ndarray) -> Rows: ...

    def __getitem__(self, key: str | np.ndarray) -> np.ndarray | Rows:
        if isinstance(key, str):
            return self._columns[key]
        return Rows({name: column[key] for name, column in self._columns.items()})

    def is_in(self, column: str, values: Iterable[str]) -> np.ndarray:
        return np.isin(self._columns[column], list(values))


# Bounds of a size: products of three are to fit 64 bits, and elements are counted as they are.
MOST_SIZE = 1 << 20
MOST_ELEMENTS = 1 << 40
_COUNTED = ("rows", "cols", "elements")
_MAY_BE_ZERO = ("window", "causal")
MOST_US = 1e12  # eleven days
MOST_TABLE = 256 << 20


def read_rows(path: Path, numbers: tuple[str, ...], *, gaps: bool = False) -> Rows:
    """All columns of a CSV file; those named in `numbers` as floats.

    Sizes are whole and above 0, `time_us` is above 0; with `gaps` empty ones are NaN.
    Raises InputError with the place of what is missing or out of range.
    """
    table = _table(path, numbers)
    columns: dict[str, list[float] | list[str]] = {name: [] for name in table.columns}
    for cells in table.rows():
        for name, column in columns.items():
            value = _measured(cells, name, gaps) if name in numbers else cells.text(name)
            column.append(value)  # type: ignore[arg-type]
    if not all(columns.values()):
        raise InputError(f"`{path}` has no rows.")
    # Texts as objects: else each takes as much as the longest.
    types = {name: float if name in numbers else object for name in columns}
    return Rows({name: np.array(column, types[name]) for name, column in columns.items()})


def _table(path: Path, needed: Iterable[str]) -> Table:
    table = Table(path, most=MOST_TABLE)
    missing = [name for name in needed if name not in table.columns]
    if missing:
        names = brief(", ".join(table.columns), 400)
        raise InputError(f"`{path}` has no column `{missing[0]}`; it has {names}.")
    return table


def _measured(cells: Cells, name: str, gaps: bool) -> float:
    if not cells.text(name):
        if gaps:
            return np.nan
        raise InputError(f"{cells.place}: `{name}` is empty; give a number.")
    if name == "time_us":
        return cells.positive(name, most=MOST_US) or 0.0
    value = cells.whole(name, most=MOST_ELEMENTS if name in _COUNTED else MOST_SIZE)
    if not value and name not in _MAY_BE_ZERO:
        raise InputError(f"{cells.place}: `{name}` is 0; give a number above 0.")
    return value or 0


def folds(rows: Rows, keys: tuple[str, ...], count: int) -> np.ndarray:
    """A fold number for each row; equal keys share a fold, so that a shape left
    out was never seen. Deterministic."""
    mixed = np.zeros(len(rows), dtype=np.uint64)
    for key in keys:
        mixed ^= rows[key].astype(np.uint64)
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(11)) % np.uint64(count)
