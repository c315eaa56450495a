"""`plancast import workload`."""

from __future__ import annotations

import argparse
from typing import Any

from plancast.cli import options as opts
from plancast.errors import InputError


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "workload",
        help="text workloads of ASTRA-sim 1.0 (and SimAI)",
        description="Reads a text workload of ASTRA-sim 1.0, the language of SimAI's workloads, "
        "with parallelism MODEL, and says what every rank computes and moves; with --network and "
        "--system also how long it takes as ASTRA-sim would time it (docs/traces.md).",
    )
    parser.add_argument("file", metavar="FILE", help="the workload")
    opts.add_astra(parser)
    opts.add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from plancast.communication.workloads import TextWorkload

    if (options.network is None) != (options.system is None):
        raise InputError("a run needs both `--network NET.yml` and `--system SYS.json`.")
    workload = TextWorkload.open(options.file)
    totals = workload.totals()
    moved = {kind: size for kind, size in totals.items() if kind != "compute"}
    fields: dict[str, Any] = {
        "nodes": len(workload.nodes),
        "compute_us": totals.get("compute", 0),
        "bytes": moved,
    }
    if options.network is not None:
        run = workload.run(
            options.network,
            options.system,
            backend=options.backend,
            queues_per_dim=options.queues_per_dim,
        )
        fields |= {
            "ranks": len(run.finish_ns),
            "time_s": run.time_s,
            "finish_min_ns": min(run.finish_ns),
            "finish_max_ns": max(run.finish_ns),
            "messages": run.messages,
        }
    if options.json:
        opts.print_json(fields)
        return 0
    print(f"{options.file}: {fields['nodes']:,} nodes, {fields['compute_us']:,} us of kernels")
    for kind, size in moved.items():
        print(f"  {kind:<15} {size:>15,} B")
    if "time_s" in fields:
        print(f"time {fields['time_s'] * 1e6:,.3f} us on {fields['ranks']:,} ranks")
    return 0
