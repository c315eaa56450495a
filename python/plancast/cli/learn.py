"""plancast learn: what runs of one's own tell of forecasts."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plancast.cli import answers
from plancast.cli import options as opts
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.forecast import Forecast
    from plancast.learned import Learned
    from plancast.run_traces.compare import RunComparison


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
    parser.add_argument(
        "--trace",
        action="append",
        default=[],
        metavar="FILE",
        help="what PyTorch's profiler (one rank, `ProfilerStep#N`) or NCCL's wrote of one run, "
        "likewise; several ranks of it: give it several times",
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
    from plancast.run_traces.compare import compare_run

    answers.check_outputs(options.out)
    parts = [Learned.read(path) for path in options.merge]
    if options.rows:
        parts.append(learn(options.rows))
    compared: RunComparison | None = None
    if options.log is not None or options.trace:
        forecast = _forecast(options)
        if options.log is not None:
            parts.append(_of_log(options.log, forecast))
        if options.trace:
            compared = compare_run(forecast, options.trace)
            parts.append(learn([compared]))
    elif options.model or options.cluster or options.strategy:
        raise InputError(
            "-m, -c and -s say what a log or a trace is of. Give it: --log FILE or --trace FILE."
        )
    if not parts:
        raise InputError(
            "there is nothing to learn from. Give RUNS.csv, --log FILE, --trace FILE or --merge "
            "FILE."
        )
    learned = parts[0].merge(*parts[1:])
    if options.out is not None:
        learned.write(options.out)
    if options.json:
        run = {} if compared is None else {"run": compared.to_dict()}
        answers.print_json({**learned.summary(), **run})
        return 0
    if compared is not None:
        answers.print_rich(compared)
        print()
    answers.print_rich(learned)
    return 0


def _forecast(options: argparse.Namespace) -> Forecast:
    """Of the plan that a log or a trace is of."""
    from plancast.planning import predict

    given = {"-m": options.model, "-c": options.cluster, "-s": options.strategy}
    missing = [name for name, value in given.items() if value is None]
    if missing:
        raise InputError(
            f"a log or a trace says how long steps take, not of what. Give {' and '.join(missing)} "
            "as for `plancast predict`."
        )
    model, machine, strategy = opts.load_plan(options)
    return predict(
        model,
        machine,
        strategy,
        batch=options.batch,
        dtype=options.dtype,
        profile=options.profile,
        cuda_graphs=options.cuda_graphs,
        timeline=bool(options.trace),
        **opts.types_of(options),
    )


def _of_log(path: str, forecast: Forecast) -> Learned:
    """The run that a log is of."""
    from plancast.learned import Evidence, Learned
    from plancast.learned_memory import MemoryEvidence
    from plancast.run_logs import read_log

    log = read_log(path)
    held: tuple[MemoryEvidence, ...] = ()
    if log.ran_out:
        name = f"{Path(path).name} (out of memory, {forecast.strategy})"
        held = (MemoryEvidence.of(name, forecast.gpu, forecast, None),)
        return Learned((), memory=held)
    tokens = forecast.global_batch * forecast.seq
    if log.seconds is None and not tokens:
        raise InputError(f"{path}: it counts tokens, and {forecast.model} has none.")
    seconds = log.iteration_s(tokens, forecast.devices)
    # Of another run the file may have the same name.
    name = f"{Path(path).name} ({seconds:.6g} s, {forecast.strategy})"
    if log.reserved is not None:
        expected = forecast.memory.placement().reserved
        held = (MemoryEvidence.of(name, forecast.gpu, forecast, log.reserved, of=float(expected)),)
    return Learned((Evidence.of(name, forecast.gpu, forecast, seconds),), memory=held)
