"""`plancast import workload`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plancast.cli import answers
from plancast.cli import options as opts
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.communication.simai import SimAiWorkload


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "workload",
        help="text workloads of ASTRA-sim 1.0 and SimAI",
        description="Reads a text workload and says what every rank computes and moves "
        "(docs/traces.md). One of ASTRA-sim 1.0, with parallelism MODEL, runs with --network and "
        "--system as ASTRA-sim would time it. One of SimAI (HYBRID_TRANSFORMER...) runs on a "
        "machine with -c, and becomes Chakra traces with --out.",
    )
    parser.add_argument("file", metavar="FILE", help="the workload")
    opts.add_machine(parser, required=False)
    parser.add_argument("-o", "--out", metavar="PREFIX", help="write Chakra traces of a stage")
    opts.add_astra(parser)
    opts.add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from plancast import files
    from plancast.communication.simai import SimAiWorkload, is_simai

    text = files.read_text(options.file)
    if is_simai(text):
        return _simai(options, SimAiWorkload.from_text(text, what=f"`{options.file}`"))
    if options.cluster is not None or options.out is not None:
        raise InputError(
            f"`{options.file}` is no workload of SimAI, which `-c` and `--out` are for. Give "
            "`--network NET.yml --system SYS.json`."
        )
    return _astra(options, text)


def _simai(options: argparse.Namespace, workload: SimAiWorkload) -> int:
    if options.network is not None or options.system is not None:
        raise InputError(
            f"`{options.file}` is of SimAI, whose groups of ranks ASTRA-sim's networks have not. "
            "Give a machine, `-c MACHINE`."
        )
    totals = workload.totals()
    moved = {kind: size for kind, size in totals.items() if kind != "compute"}
    fields: dict[str, Any] = {
        "layers": len(workload.layers),
        "gpus": workload.gpus,
        "tp": workload.tp,
        "dp": workload.dp,
        "pp": workload.pp,
        "ep": workload.ep,
        "compute_us": totals["compute"],
        "bytes": moved,
    }
    if options.cluster is not None:
        fields |= vars(workload.run(opts.load_machine(options.cluster, options)))
    if options.out is not None:
        _write(workload, Path(options.out))
        fields["prefix"] = options.out
    if options.json:
        answers.print_json(fields)
        return 0
    mesh = f"tp={workload.tp}, dp={workload.dp}, pp={workload.pp}, ep={workload.ep}"
    print(f"{options.file}: {fields['layers']:,} layers, {workload.gpus:,} GPUs as {mesh}")
    print(f"  {'kernels':<20} {fields['compute_us']:>15,} us")
    _print_moved(moved)
    if "time_s" in fields:
        print(
            f"time {fields['time_s'] * 1e6:,.3f} us: a stage {fields['stage_s'] * 1e6:,.3f}, "
            f"bubble {fields['bubble_s'] * 1e6:,.3f}, messages {fields['messages_s'] * 1e6:,.3f}"
        )
    if options.out is not None:
        print(f"wrote traces of {workload.ranks:,} ranks, {options.out}.0.et and so on")
    return 0


def _write(workload: SimAiWorkload, prefix: Path) -> None:
    from plancast import files
    from plancast.cli.progress import progress_bar
    from plancast.communication import chakra, simai_run
    from plancast.output import Outputs

    stale = chakra.stale_files(prefix, workload.ranks, groups=True)
    with files.writing(prefix), Outputs() as outputs, progress_bar(str(prefix)) as progress:
        for rank, trace in simai_run.traces(workload):
            outputs.write(chakra.rank_file(prefix, rank), trace)
            progress(rank + 1, workload.ranks)
        outputs.write(chakra.groups_file(prefix), simai_run.groups_json(workload).encode())
        for path in stale:
            outputs.remove(path)


def _astra(options: argparse.Namespace, text: str) -> int:
    from plancast.communication.workloads import TextWorkload

    if (options.network is None) != (options.system is None):
        raise InputError("a run needs both `--network NET.yml` and `--system SYS.json`.")
    workload = TextWorkload.from_text(text, what=f"`{options.file}`")
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
        answers.print_json(fields)
        return 0
    print(f"{options.file}: {fields['nodes']:,} nodes, {fields['compute_us']:,} us of kernels")
    _print_moved(moved)
    if "time_s" in fields:
        print(f"time {fields['time_s'] * 1e6:,.3f} us on {fields['ranks']:,} ranks")
    return 0


def _print_moved(moved: dict[str, int]) -> None:
    for kind, size in moved.items():
        print(f"  {kind:<20} {size:>15,} B")
