"""`plancast run`."""

from __future__ import annotations

import argparse
from types import ModuleType
from typing import Any

from plancast.cli import options as opts
from plancast.cli.runs import chakra, msccl

# Asked in this order; the last takes what the others do not know.
_KINDS: tuple[ModuleType, ...] = (msccl, chakra)


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "run",
        help="execute a trace or an algorithm",
        description="Executes a Chakra trace (PREFIX of PREFIX.0.et, PREFIX.1.et, ...) or an "
        "MSCCL algorithm (an XML file) on a machine.",
    )
    parser.add_argument("what", metavar="PREFIX|ALGO.xml", help="a trace or an algorithm")
    opts.add_machine(parser, required=False)
    parser.add_argument("--trace", metavar="FILE.json", help="write what ran when (Perfetto)")
    opts.add_json(parser)
    for kind in _KINDS:
        kind.add_options(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    kind = next(kind for kind in _KINDS if kind.accepts(options.what) or kind is _KINDS[-1])
    code: int = kind.run(options)
    return code
