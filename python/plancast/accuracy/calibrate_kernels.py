"""Fits the coefficients of the kernel cost models to measured kernels.

`plancast calibrate --kernels DIR -o OUT` reads DIR/gemm.csv, attention.csv and
elementwise.csv with GPU figures from hardware.csv (in DIR or beside it) and
writes one text proto a GPU and generic.textproto, as in cost_models/data.
Deterministic: the same input gives the same files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from plancast import files
from plancast.errors import InputError

from .calibration import attention, convolution, gemm, plan
from .calibration.rows import Rows, read_gpus, read_rows
from .calibration.tables import Fitting, Measured, file_texts, fit_tables


def read_measured(kernels: Path) -> Measured:
    """The tables of a folder; convolutions and experts may be absent."""
    either = (kernels / "hardware.csv", kernels.parent / "hardware.csv")
    hardware = next((path for path in either if files.is_there(path)), None)
    if hardware is None:
        raise InputError(
            f"no hardware.csv in `{kernels}` or beside it; it holds the GPUs' nominal figures."
        )
    images, experts = kernels / "conv.csv", kernels / "moe.csv"
    return Measured(
        read_gpus(hardware),
        _with_more(kernels, "gemm", gemm.COLUMNS),
        _with_more(kernels, "attention", attention.COLUMNS),
        read_rows(kernels / "elementwise.csv", ("rows", "cols", "elements", "time_us")),
        read_rows(images, convolution.COLUMNS) if files.is_there(images) else None,
        # Of products that are not grouped, other columns say the sizes.
        read_rows(experts, ("groups", "group_m", "n", "k", "time_us"), gaps=True)
        if files.is_there(experts)
        else None,
    )


def _with_more(kernels: Path, family: str, columns: tuple[str, ...]) -> Rows:
    """The rows of a family, with those of sources that have files of their own and are there."""
    rows = read_rows(kernels / plan.file_of(family), columns)
    for source in plan.OWN_FILES[family]:
        path = kernels / plan.file_of(family, source)
        if files.is_there(path):
            rows = rows.followed_by(read_rows(path, columns))
    return rows


def calibrate(
    kernels: Path, *, date: str, workers: int = 1, report: Callable[[str], None] = lambda _: None
) -> dict[str, str]:
    """File texts by file name, fitted to the CSV files of `kernels`."""
    fitting = Fitting(date, workers=workers, report=report)
    return file_texts(fit_tables(read_measured(kernels), fitting))
