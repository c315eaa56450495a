"""How far forecasts of a job's other plans are off, once some of its runs were learned from."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from plancast.accuracy.validation.levels import fit_levels
from plancast.accuracy.validation.predict_row import RowResult
from plancast.learned import Evidence, Learned

_DRAWS = 20
# Plans of a job that are left to forecast, at least.
_FEWEST_LEFT = 3
_SEED = 1


@dataclass(frozen=True)
class Learning:
    """Of one source: mean errors of plans that were not run, before and after `runs` were.

    Levels of software are those that all other sources tell.
    """

    source: str
    runs: int
    jobs: int
    before: float
    after: float


def learning_curve(results: Sequence[RowResult], runs: int) -> list[Learning]:
    """Over jobs with enough measured plans, and random choices of `runs` of them."""
    out = []
    for source, jobs in sorted(_jobs(results, runs).items()):
        draw = random.Random(_SEED)
        before, after = [], []
        for job in jobs:
            for _ in range(_DRAWS):
                chosen = set(draw.sample(range(len(job)), runs))
                learned = Learned(tuple(e for i, e in enumerate(job) if i in chosen))
                for i, e in enumerate(job):
                    if i in chosen:
                        continue
                    before.append(abs(math.expm1(-e.log)))
                    after.append(abs(math.expm1(learned.told(e.shares) - e.log)))
        out.append(
            Learning(source, runs, len(jobs), sum(before) / len(before), sum(after) / len(after))
        )
    return out


def _jobs(results: Sequence[RowResult], runs: int) -> dict[str, list[list[Evidence]]]:
    """By source, the evidence of each job with enough plans, in the order of the rows."""
    residuals = [r.residual for r in results if r.residual is not None]
    jobs: dict[tuple[str, str], list[RowResult]] = defaultdict(list)
    for r in results:
        if r.residual is not None and r.evidence is not None and r.row.group:
            jobs[r.row.source, r.row.group].append(r)
    out: dict[str, list[list[Evidence]]] = defaultdict(list)
    for (source, _), rows in sorted(jobs.items()):
        if len(rows) < runs + _FEWEST_LEFT:
            continue
        levels = fit_levels(x for x in residuals if x.source != source)
        job = []
        for r in rows:
            assert r.residual is not None and r.evidence is not None
            log = r.residual.value - levels.of(r.residual.terms)
            job.append(replace(r.evidence, log=log))
        out[source].append(job)
    return out
