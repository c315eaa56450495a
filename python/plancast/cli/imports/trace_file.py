"""Subcommands of `plancast import` that read a trace and write it for Perfetto."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from plancast.cli import answers
from plancast.cli import options as opts

if TYPE_CHECKING:
    from plancast.communication.chrome import ChromeTrace
    from plancast.communication.traces import NcclTrace


def add_trace_parser(
    commands: Any,
    name: str,
    opener: Callable[[], type[ChromeTrace] | type[NcclTrace]],
    *,
    out_help: str,
    **words: str,
) -> None:
    """Declares a subcommand; `opener` gives the class that reads, once it is needed."""
    parser = commands.add_parser(name, **words)
    parser.add_argument("file", metavar="FILE", help="the trace; gzip is unpacked")
    parser.add_argument("-o", "--out", metavar="OUT.json", help=f"{out_help}; .gz compresses it")
    opts.add_json(parser)
    parser.set_defaults(run=lambda options: _run(options, opener()))


def _run(options: argparse.Namespace, kind: type[ChromeTrace] | type[NcclTrace]) -> int:
    from plancast import files

    files.check_writable(options.out, (".json", ".json.gz"))
    trace = kind.open(options.file)
    if options.out:
        trace.to_perfetto(options.out)
    if options.json:
        answers.print_json(trace.to_dict())
    else:
        answers.print_rich(trace)
    return 0
