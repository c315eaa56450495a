"""Measured kernels and GPU figures, read from CSV files into numpy columns."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import numpy as np

from plancast.records.columns import gpu_aliases

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

    def same_design(self, other: Gpu) -> bool:
        """Whether both have SMs of one design, as cost_models/coefficient_family.h tells them."""
        grades = self.speed_grade, other.speed_grade
        return (
            self.vendor == other.vendor
            and min(grades) > 0
            and abs(np.log(grades[0] / grades[1])) < 0.1
        )

    @property
    def fp32_speed_grade(self) -> float:
        """The same of the units for fp32."""
        clock = self.sms * self.boost_mhz * 1e6
        return self.peaks["fp32"] / clock if clock else 0.0


def _number(text: str | None) -> float:
    return float(text) if text else 0.0


def read_gpus(path: Path) -> dict[str, Gpu]:
    """GPUs by name, from hardware.csv."""
    gpus = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            peaks = {
                name: _number(row[f"{name}_tflops"]) * 1e12
                for name in ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4")
            }
            gpus[row["gpu"]] = Gpu(
                row["gpu"],
                _number(row["sm_count"]),
                _number(row["boost_mhz"]),
                _number(row["mem_gbps"]) * 1e9,
                peaks,
                row.get("vendor", ""),
                _number(row.get("l2_mb")) * 2**20,
                _number(row.get("tdp_w")),
            )
    return gpus


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


def read_rows(path: Path, numbers: tuple[str, ...]) -> Rows:
    """All columns of a CSV file; those named in `numbers` as floats, empty as NaN."""
    with path.open(newline="") as file:
        reader = csv.reader(file)
        header = next(reader, [])
        lines = []
        for fields in filter(None, reader):
            if len(fields) != len(header):
                raise ValueError(
                    f"`{path}`:{reader.line_num} has {len(fields)} fields and the header "
                    f"{len(header)}; give every row one field for each column."
                )
            lines.append(fields)
    columns = list(zip(*lines, strict=True))
    if not columns:
        raise ValueError(f"`{path}` has no rows.")
    missing = [name for name in numbers if name not in header]
    if missing:
        raise ValueError(f"`{path}` has no column `{missing[0]}`; it has {', '.join(header)}.")
    result = {}
    for name, values in zip(header, columns, strict=True):
        if name in numbers:
            try:
                result[name] = np.array([float(v) if v else np.nan for v in values])
            except ValueError as error:
                raise ValueError(f"`{path}`: column `{name}`: {error}.") from None
        else:
            result[name] = np.array(values)
    return Rows(result)


def folds(rows: Rows, keys: tuple[str, ...], count: int) -> np.ndarray:
    """A fold number for each row; equal keys share a fold, so that a shape left
    out was never seen. Deterministic."""
    mixed = np.zeros(len(rows), dtype=np.uint64)
    for key in keys:
        mixed ^= rows[key].astype(np.uint64)
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(11)) % np.uint64(count)
