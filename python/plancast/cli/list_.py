"""`plancast list`."""

from __future__ import annotations

import argparse
from typing import Any

from plancast.cli import answers
from plancast.cli import options as opts


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "list",
        help="models, machines, gpus, profiles, ops or recipes that are known by name",
        description="Lists what is known by name; words behind it keep the names that have them.",
        epilog="Example: plancast list machines h100",
    )
    parser.add_argument(
        "what",
        metavar="WHAT",
        nargs="?",
        help="models, machines, gpus, profiles, ops or recipes",
    )
    parser.add_argument("words", metavar="WORD", nargs="*", help="part of a name")
    parser.add_argument("--names", action="store_true", help="names alone, one a line")
    opts.add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from plancast import arguments, shipped
    from plancast.errors import InputError

    if options.what is None:
        kinds = arguments.listed(list(shipped.KINDS))
        raise InputError(f"`plancast list` needs what to list: {kinds}.")
    kind = shipped.kind_of(options.what)
    names = shipped.names(kind, options.words)
    if options.names and not options.json:
        print("\n".join(names))
        return 0
    facts = list(shipped.all_facts(kind, names))
    if options.json:
        answers.print_json(facts)
        return 0
    from plancast.report.shipped import listing

    answers.print_rich(listing(kind, facts))
    return 0
