"""Rows of measured kernels -> what a record is known by."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from plancast.arguments import DTYPES
from plancast.errors import InputError
from plancast.records.kernel import Kernel

Row = Mapping[str, str]

_LONGEST_S = 1e6
# The largest whole number that every double below it is.
_MOST_WHOLE = 1 << 53
# Of what kernels bound by memory read and write.
_ELEMENT_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "tf32": 4}


class UnusableError(Exception):
    """A row that is fine but no kernel that can be kept; the message says why."""


class _Cells(dict[str, str]):
    """A row that says which column it lacks."""

    def __missing__(self, column: str) -> str:
        raise InputError(f"there is no column `{column}`, and rows like this one need it.")


class Measured(NamedTuple):
    """One row."""

    kernel: Kernel
    gpu: str
    library: str
    version: str
    sample: tuple[float, float, float, int, str, str, str]


class Table(NamedTuple):
    """A kind of file."""

    columns: frozenset[str]  # that tell it from the others
    kernel: Callable[[Row], Kernel]


def table_of(header: list[str], what: str) -> Table:
    """Which kind of file has these columns."""
    names = set(header)
    for table in _TABLES.values():
        if table.columns <= names:
            return table
    kinds = "; ".join(f"{name}: {', '.join(sorted(t.columns))}" for name, t in _TABLES.items())
    raise InputError(f"{what} has no columns of measured kernels. Files have, by kind: {kinds}.")


def measured(table: Table, row: Row, date: str) -> Measured:
    """One row of a table. Raises UnusableError and, for what is no number, InputError."""
    row = _Cells(row)
    kernel = table.kernel(row)
    software = row.get("impl") or row.get("software") or row.get("source")
    if not software:
        raise InputError(
            "it does not say what ran the kernel. Name it in a column `software`, such as "
            "`cublas 12.4`."
        )
    library, version = _library(software)
    seconds = _number(row, "time_us") * 1e-6
    low, high = (_number(row, f"time_us_{end}", 0.0) * 1e-6 for end in ("min", "max"))
    repetitions = _whole(row, "n_meas", 1)
    if not 0 < seconds <= _LONGEST_S or not 0 <= low <= _LONGEST_S or not 0 <= high <= _LONGEST_S:
        raise InputError(f"its time is `{row['time_us']}` microseconds; times are positive.")
    if repetitions < 1:
        raise InputError(f"column `n_meas` is `{row['n_meas']}`; give a positive number.")
    sample = (
        seconds,
        low,
        max(high, low),
        repetitions,
        row.get("source", ""),
        row.get("timing", ""),
        row.get("date") or date,
    )
    gpu = gpu_aliases().get(row["gpu"], row["gpu"])
    return Measured(kernel, gpu, library, version, sample)


def gpu_aliases() -> dict[str, str]:
    """Names that sources use for a GPU of the catalogue, and that GPU's."""
    aliases: dict[str, str] = _data()["gpus"]
    return aliases


def _library(software: str) -> tuple[str, str]:
    """`cudnn8.9.2` -> (`cudnn`, `8.9.2`).

    >>> _library("sglang 0.5.10 flash_attention"), _library("s|v")
    (('sglang', '0.5.10 flash_attention'), ('sglang+vllm', ''))
    """
    name = _data()["software"].get(software, software)
    if " " in name:
        library, _, version = name.partition(" ")
        return library, version
    found = re.fullmatch(r"([A-Za-z_/+-]+)(\d.*)", name)
    return (found[1], found[2]) if found else (name, "")


def _gemm(row: Row) -> Kernel:
    data = _data()
    layout = row.get("layout", "")
    if layout not in data["gemm_layouts"]:
        raise UnusableError(f"layout `{layout}` is not known")
    which, accumulate = data["gemm_layouts"][layout]
    if row.get("op") in data["plain_products"]:
        which = "forward"
    return Kernel.gemm(
        _whole(row, "m"),
        _whole(row, "n"),
        _whole(row, "k"),
        batch=_whole(row, "batch", 1),
        dtype=_dtype(row),
        which=which,
        accumulate_fp32=accumulate,
    )


def _attention(row: Row) -> Kernel:
    phases = _data()["attention_phases"]
    if row["phase"] not in phases:
        raise UnusableError(f"phase `{row['phase']}` is not one kernel of training")
    if _whole(row, "window", 0):
        raise UnusableError("attention over a window")
    if row.get("kv_dtype") and row["kv_dtype"] != row["dtype"]:
        raise UnusableError("keys and values of another type")
    return Kernel.attention(
        batch=_whole(row, "batch"),
        heads=_whole(row, "heads"),
        kv_heads=_whole(row, "kv_heads"),
        q_len=_whole(row, "q_len"),
        kv_len=_whole(row, "kv_len"),
        head_dim=_whole(row, "head_dim"),
        head_dim_v=_whole(row, "head_dim_v"),
        causal=bool(_whole(row, "causal", 0)),
        backward=phases[row["phase"]],
        dtype=_dtype(row),
    )


def _convolution(row: Row) -> Kernel:
    data, dtype = _data(), _dtype(row)
    layouts = data["conv_layouts"]
    images = row.get("layout") or layouts.get(f"{row.get('source')} {dtype}", layouts["default"])
    phase = row["phase"]
    if phase not in data["conv_phases"]:
        raise UnusableError(f"phase `{phase}` is not known")
    return Kernel.convolution(
        batch=_whole(row, "batch"),
        in_size=(_whole(row, "in_h"), _whole(row, "in_w")),
        in_channels=_whole(row, "in_c"),
        out_channels=_whole(row, "out_c"),
        window=(_whole(row, "kh"), _whole(row, "kw")),
        stride=_whole(row, "stride"),
        out_size=(_whole(row, "out_h"), _whole(row, "out_w")),
        which=data["conv_phases"][phase],
        channels_last=images == "nhwc",
        dtype=dtype,
    )


def _elementwise(row: Row) -> Kernel:
    dtype = _dtype(row)
    rule, optimizer, phase = row["op"], False, row.get("phase") or "fwd"
    if row.get("bytes_read"):  # as `plancast profile` writes it: the rule itself
        read, write = _whole(row, "bytes_read", 0), _whole(row, "bytes_written", 0)
        optimizer = phase == "optimizer"
    else:
        known = _data()["elementwise"].get(rule)
        if known is None or phase not in known:
            raise UnusableError(f"op `{rule}` ({phase}) is no op rule")
        if "->" in row["dtype"] or dtype not in _ELEMENT_BYTES:
            raise UnusableError(f"type `{row['dtype']}`")
        size = _ELEMENT_BYTES[dtype] * _whole(row, "elements")
        read, write = (count * size for count in known[phase])
        rule = known["rule"] + (".bwd" if phase == "bwd" else "")
    return Kernel.memory(
        rule,
        read_bytes=read,
        write_bytes=write,
        launches=_whole(row, "launches", 1),
        dtype=dtype,
        optimizer=optimizer,
    )


def _grouped(row: Row) -> Kernel:
    which = _data()["moe_phases"].get(row["phase"])
    if row["op"] != "grouped_gemm" or which is None:
        raise UnusableError(f"`{row['op']}` is several kernels")
    return Kernel.gemm(
        _whole(row, "group_m"),
        _whole(row, "n"),
        _whole(row, "k"),
        batch=_whole(row, "groups"),
        dtype=_dtype(row),
        which=which,
    )


_TABLES = {
    "moe": Table(frozenset({"gpu", "op", "num_tokens", "group_m", "time_us"}), _grouped),
    "gemm": Table(frozenset({"gpu", "m", "n", "k", "dtype", "time_us"}), _gemm),
    "attention": Table(
        frozenset({"gpu", "phase", "q_len", "kv_len", "heads", "time_us"}), _attention
    ),
    "conv": Table(frozenset({"gpu", "phase", "kh", "kw", "stride", "time_us"}), _convolution),
    "elementwise": Table(frozenset({"gpu", "op", "elements", "dtype", "time_us"}), _elementwise),
}


def _dtype(row: Row) -> str:
    text = row["dtype"]
    plain = text.strip().lower().replace("_", "-")
    name: str = _data()["dtypes"].get(plain, plain)
    if name not in DTYPES:
        raise UnusableError(f"type `{text}`")
    return name


def _whole(row: Row, column: str, default: int | None = None) -> int:
    text = row.get(column) or ""
    if not text and default is not None:
        return default
    try:
        number = float(text)
        if number != int(number) or abs(number) > _MOST_WHOLE:
            raise ValueError
    except (ValueError, OverflowError):
        raise InputError(
            f"column `{column}` is `{text}`; give a whole number of at most 2^53."
        ) from None
    return int(number)


def _number(row: Row, column: str, default: float | None = None) -> float:
    text = row.get(column) or ""
    if not text and default is not None:
        return default
    try:
        return float(text)
    except ValueError:
        raise InputError(f"column `{column}` is `{text}`; give a number.") from None


@functools.cache
def _data() -> dict[str, Any]:
    import yaml

    text = Path(__file__).with_name("columns.yaml").read_text(encoding="utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    return data
