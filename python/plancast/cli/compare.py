"""`plancast compare`."""

from __future__ import annotations

import argparse
from typing import Any

from plancast.cli import answers
from plancast.cli import options as opts
from plancast.cli.launch_options import open_strategy, settings


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "compare",
        help="plans or machines side by side, and why they differ",
        description="Predicts every pair of the given machines and strategies and says what "
        "makes each faster or slower than the first.",
    )
    opts.add_model(parser)
    opts.add_cuda_graphs(parser)
    opts.add_types(parser)
    opts.add_machine(parser, several=True)
    opts.add_strategy(parser, several=True)
    opts.add_batch(parser)
    opts.add_knowledge(parser)
    opts.add_report(parser)
    opts.add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from plancast.comparison import compare
    from plancast.planning import predict
    from plancast.report.page.compare import comparison_page

    answers.check_page(options.report)
    model, session = opts.load_model(options), opts.load_session(options)
    machines = [opts.load_machine(text, options) for text in options.cluster]
    comparison = compare(
        *(
            predict(
                model,
                machine,
                strategy,
                **settings(options, strategy.launch),
                session=session,
            )
            for machine in machines
            for strategy in [
                open_strategy(text, options, machine, model) for text in options.strategy
            ]
        )
    )
    answers.answer_page(
        options,
        lambda command: comparison_page(comparison, command),
        comparison,
        comparison.to_dict,
    )
    return 0
