"""What a profiled run tells of the factors of a forecast's error, each beside its own kernels."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from plancast.learned import PART_OF, Evidence, believed
from plancast.run_traces.compare import RunComparison
from plancast.run_traces.rows import Row
from plancast.run_traces.work import COMPUTING, MESSAGE

# How far kernels of one factor lie apart from plan to plan, and parts of the time as a share of
# the iteration; assumptions, half of what whole runs are apart (learned.py).
_LUCK = 0.03
# Further apart they are not the same kernels.
_MOST = 4.0
_LINKS = "links"
_PARTS_OF_IDLE = ("part/launch", "part/bubble")


def evidence_of(comparison: RunComparison) -> list[Evidence]:
    """Of kernels and links what they themselves took, of the rest what the iteration took.

    Bandwidth-bound kernels count together, for software fuses them as it likes. A message of a
    pipeline waits for its other end, and tells nothing of its link.
    """
    forecast = comparison.forecast
    # Of another run the file may have the same name.
    seconds = comparison.run_s or sum(row.run_s or 0.0 for row in comparison.collectives)
    run = f"{Path(comparison.source).name} ({seconds:.6g} s, {forecast.strategy})"
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in comparison.classes:
        groups[row.kind if row.kind in COMPUTING else "memory"].append(row)
    for row in comparison.collectives:
        alike = row.times is not None and row.forecast_count == row.run_count
        if alike and row.kind != MESSAGE and len(row.factors) == 1:
            groups[f"{_LINKS} {row.factors[0][0]}"].append(row)
    found = []
    for what, rows in sorted(groups.items()):
        log, shares = _of_kernels(rows)
        if shares:
            found.append(Evidence(f"{run}{PART_OF}{what}", forecast.gpu, log, shares, _LUCK))
    found += _of_parts(comparison, run)
    if comparison.run_s is not None:
        found.append(Evidence.of(run, forecast.gpu, forecast, comparison.run_s))
    return found


def _of_kernels(rows: Iterable[Row]) -> tuple[float, dict[str, tuple[float, float]]]:
    """ln(run / forecast) of kernels that are alike, and the shares of their factors."""
    own = run = 0.0
    seconds: dict[str, float] = defaultdict(float)
    sigmas: dict[str, float] = defaultdict(float)
    for row in rows:
        own += row.forecast_s or 0.0
        run += row.run_s or 0.0
        for factor, amount, sigma in row.factors:
            seconds[factor] += amount
            sigmas[factor] = max(sigmas[factor], sigma)
    if own <= 0 or run <= 0 or not 1 / _MOST < run / own < _MOST:
        return 0.0, {}
    shares = {
        factor: (amount / own, believed(factor, sigmas[factor]))
        for factor, amount in seconds.items()
        if sigmas[factor] > 0
    }
    return math.log(run / own), shares


def _of_parts(comparison: RunComparison, run: str) -> list[Evidence]:
    """Of what is not hidden and of gaps: by how much of the iteration they differ."""
    forecast = comparison.forecast
    learnable = forecast.learnable()
    links = [name for row in comparison.collectives for name, _, _ in row.factors]
    found = []
    for row, names in (
        (comparison.exposed, ("part/exposed", *dict.fromkeys(links))),
        (comparison.idle, _PARTS_OF_IDLE),
    ):
        if row is None:
            continue
        shares = {
            name: (share, believed(name, sigma))
            for name in names
            for share, sigma in [learnable.get(name, (0.0, 0.0))]
            if share > 0 and believed(name, sigma) > 0
        }
        log = row.longer_s / forecast.simulated_time
        if shares and abs(log) < math.log(_MOST):
            found.append(Evidence(f"{run}{PART_OF}{row.what}", forecast.gpu, log, shares, _LUCK))
    return found
