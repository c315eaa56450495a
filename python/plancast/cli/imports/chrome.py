"""`plancast import chrome`."""

from __future__ import annotations

import argparse
from typing import Any

from plancast.cli import options as opts


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "chrome",
        help="traces in the Chrome format",
        description="Reads a trace in the Chrome format, as PyTorch's profiler, Perfetto and "
        "`predict --trace` write it, and says where its time goes. Files that are not quite JSON "
        "are mended, and what cannot be understood is listed (docs/traces.md).",
    )
    parser.add_argument("file", metavar="FILE", help="the trace; gzip is unpacked")
    parser.add_argument(
        "-o",
        "--out",
        metavar="OUT.json",
        help="write it again for ui.perfetto.dev, mended and with tracks apart; .gz compresses it",
    )
    opts.add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from plancast import files
    from plancast.chrome import ChromeTrace

    files.check_writable(options.out, (".json", ".json.gz"))
    trace = ChromeTrace.open(options.file)
    if options.out:
        trace.to_perfetto(options.out)
    if options.json:
        opts.print_json(trace.to_dict())
    else:
        opts.print_rich(trace)
    return 0
