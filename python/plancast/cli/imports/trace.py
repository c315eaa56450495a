"""`plancast import trace`."""

from __future__ import annotations

import argparse
from typing import Any

from plancast.cli import options as opts


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "trace",
        help="NCCL's own trace events",
        description="Reads what NCCL wrote about itself: the proxy profile of NCCL_PROXY_PROFILE "
        "(2.12 to 2.22) or the dump of its example profiler plugin (NCCL_PROFILE_DUMP_FILE). Says "
        "which collectives ran, what every channel's proxy did and what it waited for.",
    )
    parser.add_argument("file", metavar="FILE", help="the trace; gzip is unpacked")
    parser.add_argument(
        "-o",
        "--out",
        metavar="OUT.json",
        help="write a Chrome trace that ui.perfetto.dev opens; .gz compresses it",
    )
    opts.add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from plancast import files
    from plancast.traces import NcclTrace

    files.check_writable(options.out, (".json", ".json.gz"))
    trace = NcclTrace.open(options.file)
    if options.out:
        trace.to_perfetto(options.out)
    if options.json:
        opts.print_json(trace.to_dict())
    else:
        opts.print_rich(trace)
    return 0
