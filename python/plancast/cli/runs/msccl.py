"""`plancast run ALGO.xml`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from plancast.cli import answers
from plancast.cli import options as opts


def accepts(what: str) -> bool:
    """Whether the argument is an MSCCL algorithm."""
    return what.endswith(".xml")


def add_options(parser: Any) -> None:
    """Options of algorithms alone."""
    group = parser.add_argument_group("algorithms")
    group.add_argument(
        "--bytes", type=opts.byte_count, metavar="N[K|M|G]", help="size of the buffer"
    )
    group.add_argument(
        "--topology",
        metavar="NAME|TOPO.xml",
        help="run on the bare links of dgx1, ring:8, mesh:2x4, ... instead of a machine",
    )
    group.add_argument(
        "--link", type=float, metavar="GB/s", help="of one link of the topology (default 25)"
    )
    group.add_argument(
        "--alpha",
        type=float,
        metavar="US",
        help="microseconds that a message takes beside its transfer, instead of all overheads",
    )


def run(options: argparse.Namespace) -> int:
    """Reads, checks and simulates the algorithm."""
    from plancast.communication.algorithms import Algorithm
    from plancast.errors import InputError

    if (options.cluster is None) == (options.topology is None):
        raise InputError("an algorithm runs on -c MACHINE or on --topology; give one of them.")
    if options.topology is None and options.link is not None:
        raise InputError("--link belongs to --topology; a machine has links of its own.")
    if options.bytes is None:
        raise InputError("--bytes is missing; it says how large the buffer is, such as 64M.")
    answers.check_outputs(options.trace)
    algorithm = Algorithm.open(options.what)
    least, most = algorithm.bytes_range
    if options.bytes < (least or 0) or options.bytes > (most or options.bytes):
        print(
            f"plancast: warning: `{options.what}` is meant for {least or 0:,} to {most or 0:,} "
            "bytes.",
            file=sys.stderr,
        )
    for warning in algorithm.warnings:
        print(f"plancast: warning: {warning}", file=sys.stderr)
    result = algorithm.run(
        None if options.cluster is None else opts.load_machine(options.cluster, options),
        bytes=options.bytes,
        topology=options.topology,
        link_bandwidth=(options.link or 25.0) * 1e9,
        alpha=None if options.alpha is None else options.alpha * 1e-6,
        timeline=options.trace is not None,
    )
    if options.trace is not None:
        result.to_perfetto(options.trace)
    if options.json:
        fields = {
            "algorithm": algorithm.name,
            "op": algorithm.op,
            "gpus": algorithm.gpus,
            "protocol": algorithm.protocol,
            "channels": algorithm.channels,
            "chunks": algorithm.chunks,
            "steps_by_type": algorithm.count_steps(),
            "chunks_sent_by_gpu": algorithm.count_sends(),
            "bytes": result.bytes,
            "time_s": result.time,
            "algbw_bytes_per_s": result.algorithm_bandwidth,
            "busbw_bytes_per_s": result.bus_bandwidth,
            "busiest_link": {
                "name": result.busiest_link,
                "bytes": result.busiest_link_bytes,
                "busy": result.busiest_link_share,
            },
            "busiest_thread_block": {
                "name": result.busiest_block,
                "busy": result.busiest_block_share,
            },
            "rank_finish_s": result.rank_times,
            "warnings": algorithm.warnings,
        }
        answers.print_json(fields)
        return 0
    where = options.cluster or options.topology
    print(
        f"{algorithm.name}: {algorithm.op} of {result.bytes:,} bytes by {algorithm.gpus} GPUs "
        f"({algorithm.protocol}, {algorithm.chunks} chunks) on {where}"
    )
    print(
        f"  time {result.time * 1e6:,.2f} us, algbw {result.algorithm_bandwidth / 1e9:,.2f} GB/s, "
        f"busbw {result.bus_bandwidth / 1e9:,.2f} GB/s"
    )
    print(
        f"  busiest link: {result.busiest_link}, {result.busiest_link_share:.0%} of the time"
        + (
            f"; busiest thread block: {result.busiest_block}, {result.busiest_block_share:.0%}"
            if result.busiest_block
            else ""
        )
    )
    print(
        f"  GPUs done after {min(result.rank_times) * 1e6:,.2f} to "
        f"{max(result.rank_times) * 1e6:,.2f} us"
    )
    return 0
