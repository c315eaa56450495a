"""`plancast spot`."""

from __future__ import annotations

import argparse
from typing import Any

from plancast.cli import answers
from plancast.cli import options as opts
from plancast.cli.train import add_amounts


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "spot",
        help="a run on hosts that are taken away and come back",
        description="Simulates a run on hosts of an availability trace: planned anew for what is "
        "left, with lost work, restarts and moved state; against hosts that never go.",
        epilog="Example: plancast spot -m llama3-8b -c dgx-h100 --availability trace.csv "
        "--tokens 100B",
    )
    opts.add_model(parser)
    opts.add_types(parser)
    opts.add_machine(parser)
    parser.add_argument(
        "--availability",
        required=True,
        metavar="FILE.csv",
        help="hosts over time: columns time_s (time_min, time_h, time_d) and hosts, or change",
    )
    add_amounts(parser)
    opts.add_batch(parser)
    parser.add_argument(
        "--notice", default="0s", metavar="TIME", help="of a loss: 2min, 30s (default none)"
    )
    parser.add_argument(
        "--restart", metavar="TIME", help="of a start, without loading the state (default 5min)"
    )
    parser.add_argument(
        "--checkpoints", metavar="HOW", help="as of train, such as async,store=2TB/s,every=30min"
    )
    parser.add_argument(
        "--price",
        default="spot",
        metavar="USD",
        help="dollars per GPU-hour, or spot (default), reserved or on-demand as on record",
    )
    parser.add_argument(
        "--dedicated-price",
        default="on-demand",
        metavar="USD",
        help="the same of hosts that never go (default on-demand)",
    )
    opts.add_knowledge(parser)
    opts.add_report(parser)
    opts.add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from plancast.cli.progress import progress_bar
    from plancast.machine import Machine
    from plancast.report.page.spot import spot_page
    from plancast.training.availability import Availability
    from plancast.training.spot import spot

    answers.check_page(options.report)
    trace = Availability.from_file(options.availability)
    model = opts.load_model(options)
    # How many hosts there are is in the trace.
    one = options.cluster in Machine.presets()
    machine = opts.load_machine(options.cluster + (":1" if one else ""), options)
    with progress_bar("host counts") as progress:
        result = spot(
            model,
            machine,
            trace,
            tokens=options.tokens,
            samples=options.samples,
            batch=options.batch,
            notice=options.notice,
            restart=options.restart,
            checkpoints=options.checkpoints,
            price=options.price,
            dedicated_price=options.dedicated_price,
            dtype=options.dtype,
            profile=options.profile,
            session=opts.load_session(options),
            progress=progress,
            **opts.types_of(options),
        )
    title = f"{model.name} on hosts of {options.availability}"
    answers.answer_page(
        options, lambda command: spot_page(result, title, command), result, result.to_dict
    )
    return 0
