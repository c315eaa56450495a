"""plancast learn: what runs of one's own tell of forecasts."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from plancast.cli import answers
from plancast.cli import options as opts
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.learned import Learned


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
    parser.add_argument(
        "--log",
        metavar="FILE",
        help="the log of one run of Megatron-LM or torchtitan, of the plan that -m, -c, -s and "
        "--batch say",
    )
    opts.add_model(parser, required=False)
    opts.add_cuda_graphs(parser)
    opts.add_types(parser)
    opts.add_machine(parser, required=False)
    opts.add_strategy(parser, required=False)
    opts.add_batch(parser)
    opts.add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from plancast.learned import Learned
    from plancast.learning import learn

    answers.check_outputs(options.out)
    parts = [Learned.read(path) for path in options.merge]
    if options.rows:
        parts.append(learn(options.rows))
    if options.log is not None:
        parts.append(_of_log(options))
    elif options.model or options.cluster or options.strategy:
        raise InputError("-m, -c and -s say what a log is of. Give the log: --log FILE.")
    if not parts:
        raise InputError(
            "there is nothing to learn from. Give RUNS.csv, --log FILE or --merge FILE."
        )
    learned = parts[0].merge(*parts[1:])
    if options.out is not None:
        learned.write(options.out)
    if options.json:
        answers.print_json(learned.summary())
    else:
        answers.print_rich(learned)
    return 0


def _of_log(options: argparse.Namespace) -> Learned:
    """The run that a log is of."""
    from plancast.learning import learn
    from plancast.planning import predict
    from plancast.run_logs import read_log

    given = {"-m": options.model, "-c": options.cluster, "-s": options.strategy}
    missing = [name for name, value in given.items() if value is None]
    if missing:
        raise InputError(
            f"a log says how long steps take, not of what. Give {' and '.join(missing)} as for "
            "`plancast predict`."
        )
    log = read_log(options.log)
    model, machine, strategy = opts.load_plan(options)
    forecast = predict(
        model,
        machine,
        strategy,
        batch=options.batch,
        dtype=options.dtype,
        profile=options.profile,
        cuda_graphs=options.cuda_graphs,
        **opts.types_of(options),
    )
    tokens = forecast.global_batch * forecast.seq
    if log.seconds is None and not tokens:
        raise InputError(f"{options.log}: it counts tokens, and {model.name} has none.")
    return learn([(forecast, log.iteration_s(tokens, forecast.devices))])
