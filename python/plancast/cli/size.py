"""`plancast size`."""

from __future__ import annotations

import argparse
from typing import Any

from plancast.cli import answers
from plancast.cli import options as opts
from plancast.cli.adapter_options import add_lora, nodes_of
from plancast.cli.train import add_amounts, add_prices, add_reliability


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "size",
        help="the fewest hosts for a date and a budget",
        description="Finds how many hosts of which machine train a model by a date and within a "
        "budget.",
        epilog="Example: plancast size -m llama3-70b --tokens 15T --days 30 --budget 15M",
    )
    opts.add_model(parser)
    opts.add_types(parser)
    parser.add_argument(
        "-c",
        "--machine",
        "--cluster",
        dest="cluster",
        action="append",
        metavar="PRESET",
        help="a preset or machine file without a number of hosts; may be given several times "
        "(default: dgx-h100, dgx-h200, dgx-b200, gb200-nvl72)",
    )
    add_amounts(parser)
    add_lora(parser)
    parser.add_argument("--days", metavar="N", help="by when: 30, 12h, 6weeks")
    parser.add_argument("--budget", metavar="USD", help="for how much at most: 3M")
    parser.add_argument(
        "--confidence",
        type=float,
        default=0.5,
        metavar="P",
        help="with which probability the date is to be kept (default 0.5)",
    )
    parser.add_argument(
        "--most-gpus",
        type=opts.positive,
        default=32_768,
        metavar="N",
        help="larger machines are not tried (default 32768)",
    )
    parser.add_argument(
        "--no-curve",
        dest="curve",
        action="store_false",
        help="do not look how the best machine scales",
    )
    opts.add_batch(parser)
    add_reliability(parser)
    add_prices(parser)
    opts.add_knowledge(parser)
    opts.add_report(parser)
    opts.add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from plancast.cli.progress import progress_bar
    from plancast.report.page.size import sizing_page
    from plancast.training.sizing import size

    answers.check_page(options.report)
    model = opts.load_model(options)
    with progress_bar("machines") as progress:
        sizing = size(
            model,
            options.cluster,
            tokens=options.tokens,
            samples=options.samples,
            days=options.days,
            budget=options.budget,
            confidence=options.confidence,
            batch=options.batch,
            most_gpus=options.most_gpus,
            curve=options.curve,
            failures=options.failures,
            checkpoints=options.checkpoints,
            price=options.price,
            pue=options.pue,
            watts=options.watts,
            dtype=options.dtype,
            profile=options.profile,
            nodes=nodes_of(options),
            session=opts.load_session(options),
            progress=progress,
            **opts.types_of(options),
        )
    title = f"Machines for {model.name}"
    answers.answer_page(
        options, lambda command: sizing_page(sizing, title, command), sizing, sizing.to_dict
    )
    return 0 if sizing.best is not None else answers.NOTHING_FITS
