"""How far forecasts of other plans are off, once some runs were learned from."""

from __future__ import annotations

import math
import random
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from plancast.accuracy.validation.levels import fit_levels
from plancast.accuracy.validation.predict_row import RowResult
from plancast.learned import Evidence, Learned

_DRAWS = 20
# Plans that are left to forecast, at least.
_FEWEST_LEFT = 3
_SEED = 1
JOB, SOFTWARE = "other plans of the job", "same software and GPU, dense"
ALL = "**all**"


@dataclass(frozen=True)
class Learning:
    """Of one source: mean errors of plans that were not run, before and after `runs` were.

    Levels of software are those that all other sources tell. The regret is of the plan that the
    forecasts of a job's plans would have chosen, among those that were not run: None where what
    is forecast is no choice between plans. `hindsight`: what is left of the errors with the best
    single factor, known from all of the runs afterwards.
    """

    source: str
    scope: str
    runs: int
    jobs: int
    before: float
    after: float
    regret_before: float | None
    regret_after: float | None
    hindsight: float


@dataclass(frozen=True)
class _Run:
    """A measured row: ln(measured / forecast), and of what."""

    evidence: Evidence
    seconds: float


@dataclass
class _Errors:
    before: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)
    regret_before: list[float] = field(default_factory=list)
    regret_after: list[float] = field(default_factory=list)
    hindsight: list[float] = field(default_factory=list)

    def add(self, other: _Errors) -> None:
        """One more mean of each."""
        for name, values in vars(self).items():
            if found := vars(other)[name]:
                values.append(_mean(found))


def learning_curve(results: Sequence[RowResult], runs: int) -> list[Learning]:
    """Over jobs with enough measured plans, and random choices of `runs` of them.

    Also of each software on each GPU, whatever its dense models and jobs. The last row of either
    is the mean of all pools, be they large or small.
    """
    out = []
    for scope in (JOB, SOFTWARE):
        everything, jobs = _Errors(), 0
        for source, pools in sorted(_pools(results, runs, scope).items()):
            draw = random.Random(_SEED)
            errors = _Errors()
            for pool in pools:
                of_pool = _learn(pool, runs, draw, choice=scope == JOB)
                everything.add(of_pool)
                for name, values in vars(errors).items():
                    values += vars(of_pool)[name]
            jobs += len(pools)
            out.append(_row(source, scope, runs, len(pools), errors))
        if jobs:
            out.append(_row(ALL, scope, runs, jobs, everything))
    return out


def _row(source: str, scope: str, runs: int, jobs: int, errors: _Errors) -> Learning:
    return Learning(
        source,
        scope,
        runs,
        jobs,
        _mean(errors.before),
        _mean(errors.after),
        _mean(errors.regret_before) if errors.regret_before else None,
        _mean(errors.regret_after) if errors.regret_after else None,
        _mean(errors.hindsight),
    )


def _learn(pool: Sequence[_Run], runs: int, draw: random.Random, *, choice: bool) -> _Errors:
    errors = _Errors()
    best = statistics.median(r.evidence.log for r in pool)
    errors.hindsight += [abs(math.expm1(best - r.evidence.log)) for r in pool]
    for _ in range(_DRAWS):
        chosen = set(draw.sample(range(len(pool)), runs))
        learned = Learned(tuple(r.evidence for i, r in enumerate(pool) if i in chosen))
        left = [r for i, r in enumerate(pool) if i not in chosen]
        told = [learned.told(r.evidence.shares) for r in left]
        errors.before += [abs(math.expm1(-r.evidence.log)) for r in left]
        errors.after += [
            abs(math.expm1(t - r.evidence.log)) for r, t in zip(left, told, strict=True)
        ]
        if choice:
            errors.regret_before.append(_regret(left, [0.0] * len(left)))
            errors.regret_after.append(_regret(left, told))
    return errors


def _regret(left: Sequence[_Run], told: Sequence[float]) -> float:
    """By how much the run that is forecast to be fastest takes longer than the fastest."""
    forecasts = [r.seconds * math.exp(t - r.evidence.log) for r, t in zip(left, told, strict=True)]
    best = left[min(range(len(left)), key=forecasts.__getitem__)]
    return best.seconds / min(r.seconds for r in left) - 1


def _pools(results: Sequence[RowResult], runs: int, scope: str) -> dict[str, list[list[_Run]]]:
    """By source, the runs of each job, or software on a GPU, with enough plans, in order."""
    known = [r for r in results if r.residual is not None and r.evidence is not None]
    residuals = [r.residual for r in known if r.residual is not None]
    pools: dict[tuple[str, ...], list[RowResult]] = defaultdict(list)
    for r in known:
        assert r.residual is not None and r.evidence is not None
        if scope == JOB and r.row.group:
            pools[r.row.source, r.row.group].append(r)
        elif scope == SOFTWARE and r.row.seq_len and not r.row.experts:
            pools[r.row.source, r.residual.terms.profile, r.evidence.gpu].append(r)
    levels = {
        source: fit_levels(x for x in residuals if x.source != source)
        for source in {key[0] for key, rows in pools.items() if len(rows) >= runs + _FEWEST_LEFT}
    }
    out: dict[str, list[list[_Run]]] = defaultdict(list)
    for key, rows in sorted(pools.items()):
        if len(rows) < runs + _FEWEST_LEFT:
            continue
        pool = []
        for r in rows:
            assert r.residual is not None and r.evidence is not None and r.measured
            log = r.residual.value - levels[key[0]].of(r.residual.terms)
            pool.append(_Run(replace(r.evidence, log=log), r.measured))
        out[key[0]].append(pool)
    return out


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)
