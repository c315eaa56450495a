"""What would help the jobs of a cluster: one thing changed at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from plancast.checked import checked
from plancast.clusters.job import PLACEMENTS, ClusterJob
from plancast.clusters.outcome import ClusterOutcome
from plancast.clusters.run import cluster
from plancast.errors import InputError
from plancast.machine import Machine
from plancast.session import Session

# Jobs that are moved, those that lose most GPU time first.
_MOST_MOVES = 5
_SLOWED = 1.001


@dataclass(frozen=True)
class ClusterChange:
    """A change and what comes of it, or why it cannot be made."""

    change: str
    outcome: ClusterOutcome | None
    why: str = ""


@checked
def cluster_changes(
    jobs: Iterable[ClusterJob], machine: Machine, **options: Any
) -> list[ClusterChange]:
    """The jobs as they are, then with one thing changed, the busiest GPUs first.

    Tried are jobs packed elsewhere that lose most (after all others are placed), paths and sharing
    of links, an uplink more for every pod or rail, and an interface more for every host.

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
      options: of `cluster`.
    """
    listed = list(jobs)
    told = {"session": Session(), **options}
    now = cluster(listed, machine, **told)
    rows = []
    for change, these, where, with_ in _candidates(listed, machine, told, now):
        try:
            rows.append(ClusterChange(change, cluster(these, where, **with_)))
        except InputError as error:
            rows.append(ClusterChange(change, None, str(error)))
    rows.sort(key=lambda row: -_merit(row.outcome) if row.outcome is not None else 1.0)
    return [ClusterChange("as it is", now), *rows]


def _merit(outcome: ClusterOutcome) -> float:
    """Of jobs that end: how fast all is done; else how busy GPUs are."""
    return outcome.busy_share


_Candidate = tuple[str, list[ClusterJob], Machine, dict[str, Any]]


def _candidates(
    jobs: list[ClusterJob], machine: Machine, options: dict[str, Any], now: ClusterOutcome
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
    lost = [
        (row.gpus * (row.iteration - row.alone) / row.iteration, number)
        for number, row in enumerate(now.jobs)
        if row.start is not None and row.slowdown > _SLOWED
    ]
    for _, number in sorted(lost, key=lambda one: (-one[0], one[1]))[:_MOST_MOVES]:
        job = jobs[number]
        if job.placement == "packed":
            continue
        gpus = job.gpus if job.placement in PLACEMENTS else now.jobs[number].gpus
        moved = replace(job, placement="packed", gpus=gpus)
        others = [other for other in jobs if other is not job]
        found.append((f"{job.name} packed where there is room", [*others, moved], machine, options))
    return found


def _wider(
    jobs: list[ClusterJob], machine: Machine, options: dict[str, Any], uplinks: int
) -> list[_Candidate]:
    fields = machine.to_dict()
    found: list[_Candidate] = []
    if fields.get("hosts_per_pod") or fields.get("oversubscription", 1) > 1:
        more = dict(fields)
        more["oversubscription"] = fields.get("oversubscription", 1) * uplinks / (uplinks + 1)
        wider = {**options, "uplinks": uplinks + 1}
        found.append(("an uplink more", jobs, Machine.from_dict(more), wider))
    nics = fields.get("nics_per_host", 1)
    if nics < machine.gpus_per_host:
        # What is above the hosts stays as it is.
        more = {**fields, "nics_per_host": nics + 1}
        if fields.get("hosts_per_pod"):
            more["oversubscription"] = fields.get("oversubscription", 1) * (nics + 1) / nics
        found.append(("an interface more a host", jobs, Machine.from_dict(more), options))
    return found
