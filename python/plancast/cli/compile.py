"""`plancast compile`."""

from __future__ import annotations

import argparse
from typing import Any

from plancast.cli import answers
from plancast.cli import options as opts
from plancast.cli.adapter_options import add_lora

PASSES = ("bind", "differentiate", "partition", "relayout", "synchronise", "schedule", "lower")


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "compile",
        help="the distributed execution graph as text",
        description="Compiles a plan and prints what a pass leaves (default: the last).",
    )
    opts.add_model(parser)
    opts.add_machine(parser)
    opts.add_strategy(parser)
    add_lora(parser)
    opts.add_batch(parser)
    opts.add_types(parser)
    parser.add_argument(
        "--dump-after", metavar="PASS", action="append", help=f"{', '.join(PASSES)} or all"
    )
    opts.add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from plancast.planning import compile_passes

    wanted = _wanted(options.dump_after)
    texts = compile_passes(
        *opts.load_plan(options),
        batch=options.batch,
        dtype=options.dtype,
        profile=options.profile,
        **opts.types_of(options),
    )
    chosen = {name: text for name, text in texts.items() if name in wanted}
    if options.json:
        answers.print_json(chosen)
        return 0
    for name, text in chosen.items():
        if len(chosen) > 1:
            print(f"== after {name}")
        print(text.rstrip("\n"))
    return 0


def _wanted(passes: list[str] | None) -> tuple[str, ...]:
    from plancast.errors import InputError

    if passes is None:
        return (PASSES[-1],)
    for name in passes:
        if name != "all" and name not in PASSES:
            from plancast import arguments

            raise InputError(f"no pass `{name}`.{arguments.offer(name, [*PASSES, 'all'])}")
    return PASSES if "all" in passes else tuple(passes)
