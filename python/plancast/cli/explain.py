"""`plancast explain`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from plancast.cli import answers
from plancast.cli import options as opts
from plancast.cli.adapter_options import adapted, add_lora
from plancast.cli.launch_options import open_strategy, settings

if TYPE_CHECKING:
    from plancast.explaining.alone import Explanation
    from plancast.explaining.difference import ExplainedDifference


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "explain",
        help="what a plan's time hangs on, or why it is not another's",
        description="Says what binds each stage of a plan, what would bind it next, and what more "
        "of each resource is worth; or, with --versus, which seconds moved and why.",
    )
    opts.add_model(parser)
    opts.add_cuda_graphs(parser)
    opts.add_types(parser)
    opts.add_machine(parser)
    opts.add_strategy(parser)
    parser.add_argument(
        "--versus", metavar="PLAN", help="another plan, as for -s, that it is compared with"
    )
    parser.add_argument(
        "--versus-cluster", metavar="MACHINE", help="the other plan's machine, as for -c"
    )
    add_lora(parser)
    opts.add_batch(parser)
    opts.add_knowledge(parser)
    parser.add_argument(
        "--svg", metavar="FILE.svg", help="with --versus: write a waterfall of the difference"
    )
    opts.add_report(parser)
    opts.add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from plancast import files
    from plancast.errors import InputError
    from plancast.planning import predict
    from plancast.report.page.text import text_page

    answers.check_page(options.report)
    files.check_writable(options.svg, (".svg",))
    compared = options.versus is not None or options.versus_cluster is not None
    if options.svg is not None and not compared:
        raise InputError("`--svg` draws a difference; say from which plan: `--versus PLAN`.")
    model, session = opts.load_model(options), opts.load_session(options)

    def forecast(plan: str, cluster: str) -> Any:
        machine = opts.load_machine(cluster, options)
        strategy = adapted(open_strategy(plan, options, machine, model), options)
        return predict(
            model, machine, strategy, **settings(options, strategy.launch), session=session
        )

    own = forecast(options.strategy, options.cluster)
    answer: Explanation | ExplainedDifference
    pictures = []
    if compared:
        other = forecast(
            options.strategy if options.versus is None else options.versus,
            options.cluster if options.versus_cluster is None else options.versus_cluster,
        )
        answer = difference = own.explain(versus=other)
        pictures = [difference.to_svg(standalone=False)]
        if options.svg is not None:
            files.write_text(options.svg, difference.to_svg())
    else:
        answer = own.explain()
    fields, title = answer.to_dict, f"Why: {model.name}"
    answers.answer_page(
        options, lambda said: text_page(title, answer, fields(), said, pictures), answer, fields
    )
    return 0
