"""plancast learn: what runs of one's own tell of forecasts."""

from __future__ import annotations

import argparse
from typing import Any

from plancast.cli import options as opts


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "learn",
        help="learn from runs of your own, for `--learned` of every forecast",
        description="Compares measured runs with their forecasts and keeps what they tell of "
        "kernels, links, software and parts of the time. Columns: docs/cli.md, as for validate.",
    )
    parser.add_argument("rows", nargs="*", metavar="RUNS.csv", help="measured runs")
    parser.add_argument(
        "-o", "--out", metavar="FILE", help="where to write what was learned, for --learned"
    )
    parser.add_argument(
        "--merge",
        action="append",
        default=[],
        metavar="FILE",
        help="add what was learned before; may be given several times",
    )
    opts.add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from plancast.errors import InputError
    from plancast.learned import Learned
    from plancast.learning import learn

    opts.check_outputs(options.out)
    parts = [Learned.read(path) for path in options.merge]
    if options.rows:
        parts.append(learn(options.rows))
    if not parts:
        raise InputError("there is nothing to learn from. Give RUNS.csv, or --merge FILE.")
    learned = parts[0].merge(*parts[1:])
    if options.out is not None:
        learned.write(options.out)
    if options.json:
        opts.print_json(learned.summary())
    else:
        opts.print_rich(learned)
    return 0
