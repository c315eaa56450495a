"""`plancast predict`."""

from __future__ import annotations

import argparse
from typing import Any

from plancast.cli import options as opts


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "predict",
        help="iteration time and memory of one plan",
        description="Predicts one training step: time, memory, and where the time goes.",
    )
    opts.add_model(parser)
    opts.add_machine(parser)
    opts.add_strategy(parser)
    opts.add_batch(parser)
    parser.add_argument(
        "--trace", metavar="FILE", help="write a Chrome trace for ui.perfetto.dev (.json, .json.gz)"
    )
    opts.add_report(parser)
    parser.add_argument(
        "--require-fit", action="store_true", help="exit with 3 if the plan does not fit in memory"
    )
    parser.add_argument(
        "--no-shortcuts",
        dest="shortcuts",
        action="store_false",
        help="simulate event by event: slower, the same result to the last digit",
    )
    opts.add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from plancast.planning import predict
    from plancast.strategy import Strategy

    opts.check_outputs(options.trace, options.report)
    forecast = predict(
        opts.load_model(options),
        opts.load_machine(options.cluster),
        Strategy.open(options.strategy),
        batch=options.batch,
        dtype=options.dtype,
        profile=options.profile,
        timeline=options.trace is not None,
        shortcuts=options.shortcuts,
    )
    if options.trace is not None:
        forecast.to_perfetto(options.trace)
    opts.write_report(options, f"{forecast.model} on {forecast.machine}", forecast)
    if options.json:
        opts.print_json(forecast.to_dict())
    else:
        opts.print_rich(forecast)
    return 3 if options.require_fit and not forecast.fits else 0
