"""`plancast cluster`."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from plancast.cli import answers
from plancast.cli import options as opts

if TYPE_CHECKING:
    from plancast.clusters.changes import ClusterChange

_SETTINGS = ("sharing", "order", "levels", "paths", "uplinks", "queue", "seed", "until", "detail")


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "cluster",
        help="jobs that share a network",
        description="Runs jobs that arrive, wait for GPUs and share the links of a cluster: a YAML "
        "file, a table (.csv), or the folder of the Lingjun data set.",
    )
    parser.add_argument("jobs", metavar="JOBS.yaml|JOBS.csv|FOLDER", help="what runs")
    opts.add_machine(parser, required=False)
    parser.add_argument("--sharing", metavar="HOW", help="of links: max-min, weighted or strict")
    parser.add_argument(
        "--order", metavar="WHO", help="who goes first if strict: intensity, given or reverse"
    )
    parser.add_argument(
        "--levels", type=opts.positive, metavar="K", help="classes of priority that links know"
    )
    parser.add_argument("--paths", metavar="HOW", help="of flows: hash, load or intensity")
    parser.add_argument(
        "--uplinks", type=opts.positive, metavar="N", help="equal links of a pod's uplink (1)"
    )
    parser.add_argument("--queue", metavar="HOW", help="for GPUs: fifo or backfill")
    parser.add_argument("--seed", type=int, metavar="N", help="of hashes")
    parser.add_argument("--until", type=float, metavar="SECONDS", help="stop there")
    parser.add_argument("--trace", metavar="FILE.json", help="write what ran when (Perfetto)")
    parser.add_argument(
        "--detail",
        type=float,
        metavar="SECONDS",
        help="every phase of the first so many seconds in the trace",
    )
    parser.add_argument(
        "--what-if", action="store_true", help="also what one change would give: a job moved, ..."
    )
    parser.add_argument(
        "--tenant", metavar="JOB", help="what --what-if is for: this job's time, not all GPUs'"
    )
    parser.add_argument("--svg", metavar="FILE.svg", help="write a picture of the jobs over time")
    parser.add_argument(
        "--checkpoint",
        metavar="FILE",
        help="keep how the simulation stands, and go on from there if FILE is there",
    )
    parser.add_argument(
        "--checkpoint-every",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="of computing between two states (default 10)",
    )
    opts.add_report(parser)
    opts.add_json(parser)
    parser.set_defaults(run=_run)


def _name(path: str) -> str:
    """Of a file or folder, without where it lies.

    >>> _name("runs/jobs.yaml"), _name("lingjun/")
    ('jobs.yaml', 'lingjun')
    """
    return os.path.basename(path.rstrip("/")) or path


def _run(options: argparse.Namespace) -> int:
    from rich.console import Group

    from plancast.clusters import job_file, lingjun
    from plancast.clusters.changes import cluster_changes
    from plancast.clusters.run import cluster
    from plancast.errors import InputError
    from plancast.files import is_folder
    from plancast.machine import Machine
    from plancast.report.cluster import change_table
    from plancast.report.page.cluster import cluster_page

    answers.check_outputs(options.trace, options.svg)
    answers.check_page(options.report)
    if options.checkpoint is not None and options.what_if:
        raise InputError(
            "--what-if runs the jobs many times; --checkpoint keeps one. Leave one out."
        )
    if options.tenant is not None and not options.what_if:
        raise InputError("--tenant says for whom --what-if looks; give both.")
    fabric, wider = None, None
    if is_folder(options.jobs):
        if options.cluster is not None:
            raise InputError(
                "a data set brings its own hosts and network; leave `-c` out. What it does not say "
                "is set from Python (`pc.LingjunAssumptions`)."
            )
        jobs, fabric = lingjun.read_lingjun(options.jobs)
        told: dict[str, Any] = {}
        wider = lingjun.wider(options.jobs) if options.what_if else None
        machine = Machine.preset("dgx-a100-80g", hosts=fabric.hosts)
    else:
        if options.cluster is None:
            raise InputError("`-c` is missing: the machine that the jobs share.")
        machine = opts.load_machine(options.cluster, options)
        read = job_file.read(options.jobs)
        jobs, told = read.jobs, read.settings
    for name in _SETTINGS:
        value = getattr(options, name)
        if value is not None:
            told[name] = value
    changes: list[ClusterChange] = []
    if options.what_if:
        changes = cluster_changes(
            jobs, machine, tenant=options.tenant, wider=wider, fabric=fabric, **told
        )
        outcome = changes[0].outcome
    else:
        outcome = cluster(
            jobs, machine, fabric=fabric, checkpoint=options.checkpoint,
            checkpoint_every=options.checkpoint_every, **told,
        )  # fmt: skip
    assert outcome is not None
    if options.trace is not None:
        outcome.write_trace(options.trace)
    if options.svg is not None:
        outcome.to_svg(options.svg, f"Jobs of {_name(options.jobs)}")
    tables = Group(outcome, "", change_table(changes, options.tenant)) if changes else outcome
    fields = outcome.to_dict
    answers.answer_page(
        options,
        lambda command: cluster_page(outcome, f"Jobs of {_name(options.jobs)}", command, changes),
        tables,
        lambda: {**fields(), **_changes(changes)},
    )
    return 0


def _changes(rows: list[ClusterChange]) -> dict[str, Any]:
    if not rows:
        return {}
    told = [
        {"change": row.change, "why_not": row.why}
        if row.outcome is None
        else {
            "change": row.change,
            "busy_share": row.outcome.busy_share,
            "busy_share_of_jobs": row.outcome.busy_share_of_jobs,
            "end_s": row.outcome.end,
            "jobs": [
                {"job": job.name, "iteration_s": job.iteration, "slowdown": job.slowdown}
                for job in row.outcome.jobs
                if job.start is not None
            ],
        }
        for row in rows
    ]
    return {"changes": told}
