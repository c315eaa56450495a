"""`plancast show`."""

from __future__ import annotations

import argparse
from typing import Any

from plancast.cli import answers
from plancast.cli import options as opts


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "show",
        help="all about a model, machine, GPU, profile, op or recipe",
        description="Prints what is known of something by its name.",
        epilog="Example: plancast show dgx-h100",
    )
    parser.add_argument("name", metavar="NAME", help="as `plancast list` has it")
    opts.add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from plancast import shipped

    found = shipped.kinds_of(options.name)
    if options.json:
        answers.print_json([{"kind": kind, **_fields(kind, name)} for kind, name in found])
        return 0
    from plancast.report.shipped import story

    answers.print_rich(*(story(kind, name) for kind, name in found))
    return 0


def _fields(kind: str, name: str) -> dict[str, Any]:
    """What --json has of one: a row of the list, and the whole of a model or machine."""
    from plancast import shipped
    from plancast.machine import Machine
    from plancast.model import Model

    fields = shipped.facts(kind, name)
    if kind == "models":
        model = Model.preset(name)
        fields["parameters"] = model.parameters
        fields["config"] = model.config
    if kind == "machines":
        fields["machine"] = Machine.preset(name, hosts=1).to_dict()
    if kind == "ops":
        from plancast.op_rules import Rule

        fields["rule"] = str(Rule.find(name))
    return fields
