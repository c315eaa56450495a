"""Predicts all rows, on several threads."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from plancast.accuracy.validation.layers import predict_layer, read_layers
from plancast.accuracy.validation.linear import linear_series
from plancast.accuracy.validation.machines import MachineBook
from plancast.accuracy.validation.predict_row import RowResult, predict_row
from plancast.accuracy.validation.rows import read_rows
from plancast.accuracy.validation.scoreboard import Scoreboard
from plancast.accuracy.validation.software import unknown_software
from plancast.progress import Progress, following
from plancast.session import Session


def validate(
    paths: Sequence[str | Path],
    *,
    machines: str | Path | None = None,
    workers: int | None = None,
    progress: Progress = None,
    uncalibrated: bool = False,
    what_if: str = "",
    learn: Sequence[int] = (),
    session: Session | None = None,
) -> Scoreboard:
    """Predicts the measured rows of CSV files and folders, and scores the forecasts.

    Args:
      paths: files, or folders whose `.csv` files are read.
      machines: CSV with figures of the machines that rows name; absent: presets.
      workers: threads; one per core by default. The result does not depend on it.
      progress: called with rows done and rows in all; by default a bar.
      uncalibrated: also say what data sheets alone forecast.
      what_if: also forecast with these changes, such as `sharing=free` (docs/what_if.md):
        what a part of the simulation is worth.
      learn: also say how far a job's other plans are off once so many of its runs were learned
        from (docs/learning.md).
      session: shared memo, with measured kernels if there are any; a fresh one by default.
    """
    begin = time.perf_counter()
    rows, others = read_rows(paths)
    files = {other.path: read_layers(other.path) for other in others}
    layers = [cells for read in files.values() for cells in read or ()]
    skipped = [other for other in others if files[other.path] is None]
    book = MachineBook(machines)
    found = [book.find(row.machine, row.segment) for row in rows]
    session = session or Session()
    results: list[RowResult | None] = [None] * len(rows)
    # Plans of one model share most of a session when they run side by side.
    order = sorted(range(len(rows)), key=lambda i: (rows[i].model, rows[i].machine))
    threads = workers or os.cpu_count() or 1
    with following(progress, "rows") as tell, ThreadPoolExecutor(max_workers=threads) as pool:
        futures = {
            pool.submit(
                predict_row, rows[i], found[i], session, uncalibrated=uncalibrated, what_if=what_if
            ): i
            for i in order
        }
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                results[futures[future]] = future.result()
                if tell is not None:
                    tell(done, len(rows))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return Scoreboard(
        results=tuple(result for result in results if result is not None),
        skipped=tuple(skipped),
        warnings=(*unknown_software(row.software for row in rows), *linear_series(rows)),
        layers=tuple(predict_layer(cells, session) for cells in layers),
        seconds=time.perf_counter() - begin,
        what_if=what_if,
        learn=tuple(learn),
    )
