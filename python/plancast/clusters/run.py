"""Runs jobs on a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from plancast import _core, arguments
from plancast.checked import checked
from plancast.clusters.job import ClusterJob, Placed, placed
from plancast.clusters.outcome import (
    ClusterOutcome,
    JobOutcome,
    LinkOutcome,
    Phase,
    Stretch,
    Wait,
)
from plancast.clusters.saved import simulate
from plancast.errors import InputError
from plancast.machine import Machine
from plancast.session import Session

SHARING = ("max-min", "weighted", "strict")
ORDERS = ("intensity", "given", "reverse")
PATHS = ("hash", "load", "intensity")
QUEUES = ("fifo", "backfill")
_PS, _SECONDS = 1e12, 1e-12
_MOST_LEVELS = 1 << 16
_MOST_JOBS = 1_000_000
# So many jobs are too many to keep account of who waits for whom, unless asked.
_FEW_JOBS = 300
_LONGEST_S = 7.9e6
_LONGEST_DETAIL_S = 3600


@checked
def cluster(
    jobs: Iterable[ClusterJob],
    machine: Machine,
    *,
    sharing: str = "max-min",
    order: str = "intensity",
    levels: int = 0,
    paths: str = "hash",
    uplinks: int = 1,
    queue: str = "fifo",
    seed: int = 1,
    until: float | None = None,
    waits: bool | None = None,
    detail: float = 0.0,
    shortcuts: bool = True,
    fabric: _core.Fabric | None = None,
    session: Session | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 10.0,
) -> ClusterOutcome:
    """Runs jobs that share the network of a machine.

    Jobs arrive, wait for GPUs, iterate and end. Between two such changes every job goes by the
    steady state of all that share links with it. Without an end of any job the outcome is that
    state.

    >>> one, two = (
    ...     ClusterJob(name=name, placement=f"hosts 0-1 gpus {gpus}", compute=1, communicate="1 s")
    ...     for name, gpus in (("one", "0-3"), ("two", "4-7")))
    >>> machine = Machine.from_yaml("preset: dgx-a100-80g\\nhosts: 2\\nnics_per_host: 1")
    >>> [round(job.iteration, 6) for job in cluster([one, two], machine).jobs]
    [3.0, 3.0]
    >>> [round(job.iteration, 6) for job in cluster([one, two], machine, sharing="strict").jobs]
    [2.0, 2.0]

    Args:
      jobs: what runs.
      machine: where.
      sharing: of links: `max-min` (flows alike), `weighted` (by `weight`) or `strict` (by
        priority).
      order: under `strict`, who goes first: the highest corrected GPU `intensity` (CRUX), the
        `given` priority, or the lowest intensity (`reverse`).
      levels: how many classes of priority links know; 0: as many as there are jobs.
      paths: which uplink a flow takes: by `hash` (ECMP), the least loaded when its job starts
        (`load`), or that for all jobs again, in order of intensity (`intensity`).
      uplinks: equal links that a pod's (or rail's) uplink of the machine consists of.
      queue: `fifo`, or `backfill`: jobs that fit go before one that waits for GPUs.
      seed: of hashes.
      until: stops there, seconds.
      waits: whether to keep account of who waits for whom; by default of up to 300 jobs.
      detail: keep every phase of the first so many seconds, for the timeline.
      shortcuts: leave out what repeats; without, every iteration is simulated.
      fabric: in place of the machine's network, that of a data set.
      session: memo of forecasts.
      checkpoint: a file that says how the simulation stands, written every so often and removed at
        the end; where it is there, the simulation goes on from it, with the same outcome.
      checkpoint_every: seconds that it computes between two.
    """
    listed = list(jobs)
    options = {"sharing": sharing, "order": order, "levels": levels, "paths": paths}
    options |= {"uplinks": uplinks, "queue": queue, "seed": seed}
    _check(listed, options, until, detail)
    endless = [job.name for job in listed if job.iterations is None and job.duration is None]
    if endless and not shortcuts:
        raise InputError(
            f"job `{endless[0]}` has no end, so that not every event can be run. Say `iterations`, "
            "or leave `shortcuts` as they are."
        )
    if fabric is None:
        fabric = _core.Fabric.of(machine._core, arguments.whole(uplinks, "uplinks", 1, 4096))
    memo = session or Session()
    told = [placed(job, fabric, machine, memo) for job in listed]
    if not 0 <= checkpoint_every <= _LONGEST_DETAIL_S:
        raise InputError(f"`checkpoint_every` is {checkpoint_every} s; give 0 to an hour.")
    result, over = simulate(
        checkpoint,
        checkpoint_every,
        fabric,
        [job.core for job in told],
        {
            "sharing": sharing,
            "order": order,
            "levels": levels,
            "paths": paths,
            "backfill": queue == "backfill",
            "seed": seed,
            "until_ps": None if until is None else round(until * _PS),
            "waits": len(listed) <= _FEW_JOBS if waits is None else waits,
            "slices_until": round(detail * _PS),
            "shortcuts": shortcuts,
        },
    )
    outcome = _outcome(result, listed, told, fabric, options | {"until": until})
    over()
    return outcome


def _check(
    jobs: list[ClusterJob], options: dict[str, object], until: float | None, detail: float
) -> None:
    for what, known in (("sharing", SHARING), ("order", ORDERS), ("paths", PATHS)):
        if options[what] not in known:
            raise InputError(f"no {what} `{options[what]}`.{arguments.offer(options[what], known)}")
    if options["queue"] not in QUEUES:
        raise InputError(f"no queue `{options['queue']}`. Say `fifo` or `backfill`.")
    arguments.whole(options["levels"], "levels", 0, _MOST_LEVELS)
    arguments.whole(options["seed"], "seed", 0, 1 << 62)
    if until is not None and not 0 <= until <= _LONGEST_S:
        raise InputError(f"`until` is {until} s; give seconds from 0 to 7.9 million (91 days).")
    if not 0 <= detail <= _LONGEST_DETAIL_S:
        raise InputError(f"`detail` is {detail} s; give seconds from 0 to an hour.")
    if not jobs:
        raise InputError("there are no jobs. Give at least one.")
    if len(jobs) > _MOST_JOBS:
        raise InputError(f"there are {len(jobs):,} jobs; at most {_MOST_JOBS:,} are simulated.")


def _outcome(
    result: _core.ClusterOutcome,
    jobs: list[ClusterJob],
    told: list[Placed],
    fabric: _core.Fabric,
    options: dict[str, object],
) -> ClusterOutcome:
    rows = []
    for job, known, row in zip(jobs, told, result.jobs, strict=True):
        start, end, iterations, alone, steady, intensity, correction, level, devices = row
        ran = start >= 0 and end > start and iterations > 0
        iteration = (end - start) / iterations if ran else steady
        rows.append(
            JobOutcome(
                name=job.name,
                gpus=known.gpus,
                arrival=job.arrival,
                start=start / _PS if start >= 0 else None,
                end=end / _PS if end >= 0 else None,
                iterations=iterations,
                # Rounded as forecasts are, to the digit.
                alone=alone * _SECONDS,
                iteration=iteration * _SECONDS,
                compute=known.busy_s,
                intensity=intensity,
                correction=correction,
                level=level,
                devices=tuple(devices),
            )
        )
    on = any(row.end is None and row.start is not None for row in rows)
    steady = on and options["until"] is None
    end_s = result.end_ps / _PS
    links = []
    for link, size, rate, crossed in result.links:
        used = rate if steady else size / end_s if end_s > 0 else 0.0
        links.append(LinkOutcome(fabric.link_name(link), used / fabric.capacity(link), crossed))
    links.sort(key=lambda link: -link.utilisation)
    return ClusterOutcome(
        jobs=tuple(rows),
        links=tuple(links),
        waits=_waits(result, jobs, fabric),
        stretches=tuple(
            Stretch(job, begin / _PS, until / _PS, iteration / _PS)
            for job, begin, until, iteration in result.stretches
        ),
        phases=tuple(
            Phase(job, sends, iteration, begin / _PS, until / _PS)
            for job, sends, iteration, begin, until in result.slices
        ),
        gpus=fabric.hosts * fabric.gpus_per_host,
        end=end_s,
        steady=steady,
        options=options,
        steady_runs=result.steady_runs,
        off_by=result.off_by,
    )


def _waits(
    result: _core.ClusterOutcome, jobs: list[ClusterJob], fabric: _core.Fabric
) -> tuple[Wait, ...]:
    """Of every pair of jobs, all its links together."""
    total: dict[tuple[int, int], float] = {}
    worst: dict[tuple[int, int], tuple[float, int]] = {}
    for waiter, other, link, lost in result.waits:
        pair = (waiter, other)
        total[pair] = total.get(pair, 0.0) + lost
        worst[pair] = max(worst.get(pair, (0.0, link)), (lost, link))
    found = [
        Wait(jobs[pair[0]].name, jobs[pair[1]].name, lost, fabric.link_name(worst[pair][1]))
        for pair, lost in total.items()
    ]
    return tuple(sorted(found, key=lambda wait: -wait.seconds))
