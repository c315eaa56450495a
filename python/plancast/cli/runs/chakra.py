"""`plancast run PREFIX`: a Chakra trace, on a machine or as ASTRA-sim would run it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plancast.cli import answers
from plancast.cli import options as opts
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast import _core


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of this kind."""
    group = parser.add_argument_group(
        "Chakra traces",
        "With -c, on the machine, as our executor sees it. With --network and --system instead, "
        "in a mode compatible with ASTRA-sim's analytical backends, its mistakes included "
        "(docs/traces.md).",
    )
    group.add_argument(
        "--comm-groups",
        metavar="G.json",
        help='ranks of groups: {"1": [0, 2], ...}; default: PREFIX.groups.json, if it is there',
    )
    opts.add_astra(group)


def accepts(what: str) -> bool:
    """Whether `what` is the prefix of traces."""
    from plancast import files

    return files.is_there(f"{what}.0.et") or files.is_there(f"{what}.0.et.gz")


def run(options: argparse.Namespace) -> int:
    """Runs the trace and says how long each rank took."""
    from plancast.communication import chakra

    compatible = options.network is not None or options.system is not None
    if compatible == (options.cluster is not None):
        raise InputError(
            "a trace runs on a machine (`-c MACHINE`), or as ASTRA-sim would run it "
            "(`--network NET.yml --system SYS.json`): say one of both."
        )
    if compatible and (options.network is None or options.system is None):
        raise InputError("ASTRA-sim's mode needs both `--network NET.yml` and `--system SYS.json`.")
    traces = chakra.read(options.what)
    result = _as_astra(options, traces) if compatible else _on_machine(options, traces)
    if options.json:
        answers.print_json(result)
        return 0
    _print(result)
    return 0


_BUFFERED = (
    "ranks would wait for each other in a circle if sends waited for their receives, as on the "
    "machine; they do not wait here."
)


def _text(path: str) -> tuple[str, str]:
    from plancast import files

    return files.read_text(path), f"`{path}`"


def _groups_file(options: argparse.Namespace) -> str | None:
    """The file of groups that is said, or the one that was exported beside the traces."""
    if options.comm_groups is not None:
        return str(options.comm_groups)
    from plancast import files
    from plancast.communication import chakra

    own = str(chakra.groups_file(Path(options.what)))
    return own if files.is_file(own) else None


def _groups(options: argparse.Namespace) -> tuple[str, str] | None:
    path = _groups_file(options)
    return None if path is None else _text(path)


def _as_astra(options: argparse.Namespace, traces: _core.ChakraTraces) -> dict[str, Any]:
    from plancast import _core, files
    from plancast.communication import chakra

    system = _text(options.system)
    prefix = _core.astra_custom_prefix(*system)
    custom = None
    if prefix:
        what = f"the custom collective of `{options.system}`"
        custom = chakra.read(files.beside(Path(options.system).parent, prefix, what))
    run = traces.run_astra(
        _text(options.network),
        system,
        _groups(options),
        aware=options.backend == "aware",
        queues=options.queues_per_dim,
        custom=custom,
    )
    ranks = [
        {
            "rank": rank,
            "finish_s": finish / 1e9,
            "kernels_s": compute / 1e9,
            "exposed_communication_s": (finish - compute) / 1e9,
        }
        for rank, (finish, compute) in enumerate(zip(run.finish_ns, run.compute_ns, strict=True))
    ]
    return {
        "mode": f"ASTRA-sim compatible, congestion-{options.backend}",
        "trace": options.what,
        "groups": _groups_file(options),
        "nodes": traces.nodes,
        "notes": traces.notes,
        "time_s": max(run.finish_ns) / 1e9,
        "finish_min_ns": min(run.finish_ns),
        "finish_max_ns": max(run.finish_ns),
        "messages": run.messages,
        "ranks": ranks,
    }


def _on_machine(options: argparse.Namespace, traces: _core.ChakraTraces) -> dict[str, Any]:
    from plancast import _core

    machine = opts.load_machine(options.cluster, options)
    run = _core.run_traces(traces, machine._core, _groups(options))
    ranks = [
        {
            "rank": rank,
            "finish_s": finish,
            "kernels_s": kernels,
            "exposed_communication_s": exposed,
            "idle_s": idle,
        }
        for rank, (finish, kernels, exposed, idle) in enumerate(run.ranks)
    ]
    comms = [
        {
            "kind": kind,
            "bytes": size,
            "members": members,
            "algorithm": algorithm,
            "protocol": protocol,
            "count": count,
            "mean_s": seconds / count,
        }
        for kind, size, members, algorithm, protocol, count, seconds in run.communications
    ]
    return {
        "mode": "executor",
        "trace": options.what,
        "groups": _groups_file(options),
        "machine": machine.name,
        "nodes": traces.nodes,
        "notes": [*traces.notes, *([_BUFFERED] if run.buffered_sends else [])],
        "time_s": run.time_s,
        "ranks": ranks,
        "communications": comms,
    }


def _print(result: dict[str, Any], most: int = 16) -> None:
    ranks = result["ranks"]
    print(f"{result['trace']}: {len(ranks)} ranks, {result['nodes']:,} nodes; {result['mode']}")
    if result["groups"] is not None:
        print(f"groups of {result['groups']}")
    print(f"{'rank':>6} {'time':>14} {'kernels':>14} {'exposed comm.':>14}  us")
    for row in ranks[:most]:
        print(
            f"{row['rank']:>6} {row['finish_s'] * 1e6:>14,.3f} {row['kernels_s'] * 1e6:>14,.3f} "
            f"{row['exposed_communication_s'] * 1e6:>14,.3f}"
        )
    if len(ranks) > most:
        print(f"  ... and {len(ranks) - most} more")
    for row in result.get("communications", [])[:most]:
        print(
            f"{row['count']:>6} x {row['kind']} of {row['bytes']:,} B over {row['members']}: "
            f"{row['mean_s'] * 1e6:,.3f} us each, {row['algorithm']} {row['protocol']}"
        )
    print(f"time {result['time_s'] * 1e6:,.3f} us")
    for note in result["notes"]:
        print(f"note: {note}")
