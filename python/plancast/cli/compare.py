"""`plancast compare`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plancast.cli import answers
from plancast.cli import options as opts
from plancast.cli.adapter_options import adapted, add_lora
from plancast.cli.launch_options import open_strategy, settings
from plancast.cli.plan_question import choose

if TYPE_CHECKING:
    from plancast.forecast import Forecast
    from plancast.machine import Machine
    from plancast.model import Model


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
    opts.add_strategy(
        parser,
        several=True,
        required=False,
        absent=" (default: what `plancast plan` chooses for each machine)",
    )
    add_lora(parser)
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
    if options.strategy is None:
        forecasts = _chosen(options, model, machines)
    else:
        forecasts = [
            predict(model, machine, strategy, **settings(options, strategy.launch), session=session)
            for machine in machines
            for strategy in [
                adapted(open_strategy(text, options, machine, model), options)
                for text in options.strategy
            ]
        ]
    comparison = compare(*forecasts)
    answers.answer_page(
        options,
        lambda command: comparison_page(comparison, command),
        comparison,
        comparison.to_dict,
    )
    return 0


def _chosen(
    options: argparse.Namespace, model: Model, machines: Sequence[Machine]
) -> list[Forecast]:
    """The plan for each machine, all at one batch."""
    from plancast.errors import InputError

    if len(machines) < 2:
        raise InputError(
            "without -s the plans for several machines are compared, and this is one; add "
            "another `-c`, or plans with `-s`."
        )
    found = []
    for machine in machines:
        choice = choose(options, model, machine)
        if choice.best is None:
            raise InputError(
                f"no plan of `{model.name}` fits on {machine}; `plancast plan` says what would."
            )
        if options.batch is None:
            answers.remark(options, f"note: {choice.said[0]}")
            options.batch = choice.batch
        found.append(choice.best)
    answers.remark(
        options, "note: without -s it is the plan that `plancast plan` chooses for each machine"
    )
    return found
