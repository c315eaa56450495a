"""Jobs of a cluster over time, for Perfetto."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plancast import files

if TYPE_CHECKING:
    from plancast.clusters.outcome import ClusterOutcome

_US = 1e6
# Tracks of a job: its stay, its computation, its communication.
_STAY, _COMPUTE, _SEND = 0, 1, 2
_CLUSTER = 0


def events(outcome: ClusterOutcome) -> list[dict[str, Any]]:
    """Slices of every job, and counters of the cluster."""
    found = [_name("process_name", _CLUSTER, 0, "cluster")]
    for number, job in enumerate(outcome.jobs):
        process = number + 1
        found.append(_name("process_name", process, 0, f"{job.name} ({job.gpus} GPUs)"))
        found.append(_name("thread_name", process, _STAY, "job"))
        begin = outcome.end if job.start is None else job.start
        if begin > job.arrival:
            found.append(_slice("waits for GPUs", process, _STAY, job.arrival, begin))
    for stretch in outcome.stretches:
        job = outcome.jobs[stretch.job]
        slower = stretch.iteration / job.alone if job.alone > 0 and stretch.iteration > 0 else 1.0
        name = "runs" if slower < 1.0005 else f"runs, iteration x {slower:.3f}"
        arguments = {"iteration_s": stretch.iteration, "slowdown": slower}
        found.append(_slice(name, stretch.job + 1, _STAY, stretch.start, stretch.end, arguments))
    for phase in outcome.phases:
        name, track = ("communicates", _SEND) if phase.transfer else ("computes", _COMPUTE)
        found.append(
            _slice(
                name, phase.job + 1, track, phase.start, phase.end, {"iteration": phase.iteration}
            )
        )
    return found + _counters(outcome)


def _counters(outcome: ClusterOutcome) -> list[dict[str, Any]]:
    changes: dict[float, list[float]] = {}
    for job in outcome.jobs:
        if job.start is None:
            continue
        changes.setdefault(job.start, [0, 0])[0] += job.gpus
        if job.end is not None:
            changes.setdefault(job.end, [0, 0])[0] -= job.gpus
    for stretch in outcome.stretches:
        job = outcome.jobs[stretch.job]
        if stretch.iteration > 0:
            busy = job.gpus * min(job.compute / stretch.iteration, 1.0)
            changes.setdefault(stretch.start, [0, 0])[1] += busy
            changes.setdefault(stretch.end, [0, 0])[1] -= busy
    taken = busy = 0.0
    found = []
    for time in sorted(changes):
        taken += changes[time][0]
        busy += changes[time][1]
        values = {"taken": taken, "computing": max(round(busy, 6), 0.0)}
        found.append({"ph": "C", "pid": _CLUSTER, "name": "GPUs", "ts": time * _US, "args": values})
    return found


def _name(what: str, process: int, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": track, "args": {"name": name}}


def _slice(
    name: str,
    process: int,
    track: int,
    start: float,
    end: float,
    arguments: dict[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "pid": process,
        "tid": track,
        "ts": start * _US,
        "dur": (end - start) * _US,
        "args": arguments or {},
    }


def write(outcome: ClusterOutcome, path: str | Path) -> None:
    """Writes the timeline as a Chrome trace."""
    files.write_text(path, json.dumps({"traceEvents": events(outcome)}) + "\n")
