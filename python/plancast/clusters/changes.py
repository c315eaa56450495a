"""What would help the jobs of a cluster: one thing changed at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from plancast import _core, arguments
from plancast.checked import checked
from plancast.clusters.job import PLACEMENTS, ClusterJob
from plancast.clusters.outcome import ClusterOutcome, JobOutcome
from plancast.clusters.run import cluster
from plancast.errors import InputError
from plancast.machine import Machine
from plancast.progress import Progress, following
from plancast.session import Session

# Jobs that are moved, those that lose most GPU time first, and partners of each of them.
_MOST_MOVES, _MOST_PARTNERS = 5, 3
# With more jobs than these they do not change places pair by pair.
_MOST_SWAPPED = 300
_SLOWED = 1.001


@dataclass(frozen=True)
class ClusterChange:
    """A change and what comes of it, or why it cannot be made."""

    change: str
    outcome: ClusterOutcome | None
    why: str = ""


@checked
def cluster_changes(
    jobs: Iterable[ClusterJob],
    machine: Machine,
    *,
    tenant: str | None = None,
    wider: Mapping[str, _core.Fabric] | None = None,
    progress: Progress = None,
    **options: Any,
) -> list[ClusterChange]:
    """The jobs as they are, then with one thing changed, the busiest GPUs first.

    Tried are jobs that lose most in other places (packed or spread after all others are placed, or
    in exchange with a job of as many GPUs), paths and sharing of links, a spine more (an uplink for
    every pod) and a rail more (an interface for every host).

    >>> machine = Machine.from_yaml("preset: dgx-a100-80g\\nhosts: 4\\nnics_per_host: 1")
    >>> jobs = [
    ...     ClusterJob(name=name, placement=f"hosts 0-1 gpus {gpus}", compute=1, communicate="1 s")
    ...     for name, gpus in (("a", "0-3"), ("b", "4-7"))]
    >>> rows = cluster_changes(jobs, machine)
    >>> rows[0].change, rows[1].change
    ('as it is', 'links strict by intensity')

    Args:
      jobs: what runs.
      machine: where.
      tenant: the job to do something for: what is best for it comes first, and what is moved is
        this job or those that it waits for.
      wider: networks of a data set with something more each, by what it is.
      progress: called with changes tried and changes in all; by default a bar.
      options: of `cluster`.
    """
    listed = list(jobs)
    told = {"session": Session(), **options}
    if tenant is not None and tenant not in [job.name for job in listed]:
        names = [job.name for job in listed]
        raise InputError(f"there is no job `{tenant}`.{arguments.offer(tenant, names)}")
    now = cluster(listed, machine, **told)
    tried = _candidates(listed, machine, told, now, tenant)
    tried += [
        (what, listed, machine, {**told, "fabric": fabric})
        for what, fabric in (wider or {}).items()
    ]
    rows = []
    with following(progress, "changes") as tell:
        for done, (change, these, where, with_) in enumerate(tried):
            if tell is not None:
                tell(done, len(tried))
            try:
                rows.append(ClusterChange(change, cluster(these, where, **with_)))
            except InputError as error:
                rows.append(ClusterChange(change, None, str(error)))
    rows.sort(key=lambda row: _demerit(row.outcome, tenant))
    return [ClusterChange("as it is", now), *rows]


def _demerit(outcome: ClusterOutcome | None, tenant: str | None) -> tuple[float, float]:
    """How fast all is done, or how busy GPUs are where jobs have no end; of a tenant its time."""
    if outcome is None:
        return float("inf"), 0.0
    if tenant is None:
        return -outcome.busy_share, 0.0
    job = outcome.job(tenant)
    time = job.completion if job.completion is not None else job.iteration
    return (float("inf") if job.start is None else time), -outcome.busy_share


_Candidate = tuple[str, list[ClusterJob], Machine, dict[str, Any]]


def _candidates(
    jobs: list[ClusterJob],
    machine: Machine,
    options: dict[str, Any],
    now: ClusterOutcome,
    tenant: str | None,
) -> list[_Candidate]:
    found: list[_Candidate] = []
    if options.get("sharing", "max-min") != "strict" or options.get("order") == "reverse":
        strict = {**options, "sharing": "strict", "order": "intensity"}
        found.append(("links strict by intensity", jobs, machine, strict))
    uplinks = options.get("uplinks", 1)
    if uplinks > 1 or options.get("fabric") is not None:
        for paths in ("load", "intensity"):
            if options.get("paths", "hash") != paths:
                found.append((f"paths by {paths}", jobs, machine, {**options, "paths": paths}))
    if options.get("fabric") is None:
        found += _wider(jobs, machine, options, uplinks)
    movers = _movers(now, tenant)
    for number in movers:
        job = jobs[number]
        gpus = job.gpus if job.placement in PLACEMENTS else now.jobs[number].gpus
        others = [other for other in jobs if other is not job]
        for how in PLACEMENTS:
            if job.placement != how:
                moved = replace(job, placement=how, gpus=gpus)
                where = f"{job.name} {how} where there is room"
                found.append((where, [*others, moved], machine, options))
    if len(jobs) <= _MOST_SWAPPED:
        found += _swaps(jobs, machine, options, now, movers)
    return found


def _movers(now: ClusterOutcome, tenant: str | None) -> list[int]:
    """Jobs that lose most; of a tenant it, and those that it waits for most."""
    if tenant is not None:
        blamed = [wait.other for wait in now.waits if wait.waiter == tenant]
        names = list(dict.fromkeys([tenant, *blamed]))[:_MOST_MOVES]
        return [number for name in names for number, row in enumerate(now.jobs) if row.name == name]
    lost = [
        (-row.gpus * (row.iteration - row.alone) / row.iteration, number)
        for number, row in enumerate(now.jobs)
        if row.start is not None and row.slowdown > _SLOWED
    ]
    return [number for _, number in sorted(lost)[:_MOST_MOVES]]


def _swaps(
    jobs: list[ClusterJob],
    machine: Machine,
    options: dict[str, Any],
    now: ClusterOutcome,
    movers: list[int],
) -> list[_Candidate]:
    """All stay where they are but two, which change places while both run."""
    if any(row.start is None for row in now.jobs):
        return []
    pinned = [
        replace(
            job,
            placement="devices " + ",".join(map(str, row.devices)),
            gpus=None,
            arrival=max(job.arrival, row.start or 0.0),
        )
        for job, row in zip(jobs, now.jobs, strict=True)
    ]
    found, done = [], set()
    for one in movers:
        partners = [
            other
            for other, row in enumerate(now.jobs)
            if other != one
            and row.gpus == now.jobs[one].gpus
            and _meet(row, now.jobs[one])
            and frozenset((one, other)) not in done
        ]
        # Those that others hold up least first: they are somewhere else.
        partners.sort(key=lambda other: (now.jobs[other].slowdown, other))
        for other in partners[:_MOST_PARTNERS]:
            done.add(frozenset((one, other)))
            moved = list(pinned)
            moved[one] = replace(pinned[one], placement=pinned[other].placement)
            moved[other] = replace(pinned[other], placement=pinned[one].placement)
            what = f"{jobs[one].name} and {jobs[other].name} change places"
            found.append((what, moved, machine, options))
    return found


def _meet(a: JobOutcome, b: JobOutcome) -> bool:
    """Whether both run at a time."""
    if a.start is None or b.start is None:
        return False
    return (a.end is None or b.start < a.end) and (b.end is None or a.start < b.end)


def _wider(
    jobs: list[ClusterJob], machine: Machine, options: dict[str, Any], uplinks: int
) -> list[_Candidate]:
    fields = machine.to_dict()
    found: list[_Candidate] = []
    if fields.get("hosts_per_pod") or fields.get("oversubscription", 1) > 1:
        more = dict(fields)
        more["oversubscription"] = fields.get("oversubscription", 1) * uplinks / (uplinks + 1)
        options_ = {**options, "uplinks": uplinks + 1}
        what = "a spine more (an uplink for every pod)"
        found.append((what, jobs, Machine.from_dict(more), options_))
    nics = fields.get("nics_per_host", 1)
    if nics < machine.gpus_per_host:
        # What is above the hosts stays as it is.
        more = {**fields, "nics_per_host": nics + 1}
        if fields.get("hosts_per_pod"):
            more["oversubscription"] = fields.get("oversubscription", 1) * (nics + 1) / nics
        what = "a rail more (an interface for every host)"
        found.append((what, jobs, Machine.from_dict(more), options))
    return found
