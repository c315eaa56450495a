"""`plancast doctor`."""

from __future__ import annotations

import argparse
from typing import Any

from plancast.cli import answers
from plancast.cli import options as opts

_BROKEN = 1


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "doctor",
        help="is this installation whole?",
        description="Checks the installation, its data and versions, and a forecast against its "
        "golden value. Exits with 1 if something is broken.",
    )
    opts.add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from plancast.doctor import findings

    found = findings()
    well = all(finding.well for finding in found)
    if options.json:
        answers.print_json({"well": well, "findings": [finding.to_dict() for finding in found]})
        return 0 if well else _BROKEN
    from rich.text import Text

    from plancast.accuracy.report.fitted_table import FittedTable

    table = FittedTable(plain=True)
    table.words("", least=4)
    table.words("", least=18, style="dim")
    table.words("", least=30)
    for finding in found:
        word = Text("ok", style="green") if finding.well else Text("broken", style="bold red")
        table.row(word, finding.what, finding.found)
    answers.print_rich(table)
    broken = [finding.what for finding in found if not finding.well]
    answers.print_rich(f"broken: {', '.join(broken)}" if broken else "all is well")
    return 0 if well else _BROKEN
