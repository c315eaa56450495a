"""`plancast train`."""

from __future__ import annotations

import argparse
from typing import Any

from plancast.cli import answers, sizes
from plancast.cli import options as opts
from plancast.cli.adapter_options import adapted, add_lora, nodes_of
from plancast.cli.launch_options import add_from, open_strategy
from plancast.errors import InputError


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "train",
        help="a whole run: days, dollars, energy, failures",
        description="Forecasts a whole training run: time, GPU-hours, dollars and energy, with "
        "failures and checkpoints.",
        epilog="Example: plancast train -m llama3-70b -c dgx-h100:128 --tokens 15T",
    )
    opts.add_model(parser)
    opts.add_cuda_graphs(parser)
    opts.add_types(parser)
    opts.add_machine(parser)
    parser.add_argument(
        "-s",
        "--strategy",
        default="best",
        metavar="STRATEGY",
        help="tp=8,pp=4,mb=1,..., a file as of predict, or `best` (default)",
    )
    add_from(parser)
    add_lora(parser)
    add_amounts(parser)
    parser.add_argument(
        "--batch",
        type=sizes.batch,
        metavar="SAMPLES",
        help="global batch, samples a step, or tokens: 4Mtok (default: about 4 M tokens)",
    )
    parser.add_argument(
        "--days", metavar="N", help="also tell with which probability it is through: 30, 12weeks"
    )
    parser.add_argument(
        "--ramp",
        metavar="START:STEP:TOKENS",
        help="a batch that grows: 256:256:100B",
    )
    parser.add_argument(
        "--phase",
        action="append",
        metavar="PHASE",
        help="a part of the run, in order; may be given several times: 'tokens=800B seq=131072 "
        "batch=128 strategy=tp=8,cp=16,mb=1'",
    )
    parser.add_argument(
        "--evaluate", metavar="STEPS:TIME", help="pauses: 1000:2min is two after 1,000 steps each"
    )
    add_reliability(parser)
    parser.add_argument(
        "--slow-hosts",
        metavar="HOW",
        help="hosts that turn slow: host=5000h,speed=0.8,detect=30min, evicted then; or with "
        "keep,lasts=1day (default: none)",
    )
    parser.add_argument(
        "--jitter",
        type=float,
        metavar="SIGMA",
        help="kernels and messages vary by exp(SIGMA N); a step takes what it does on average",
    )
    parser.add_argument(
        "--stragglers",
        metavar="P:SPEED",
        help="in a step each device runs at SPEED with probability P: 1%%:0.9",
    )
    parser.add_argument(
        "--draws",
        type=opts.positive,
        metavar="N",
        help="random steps that are simulated for each phase (default 50)",
    )
    parser.add_argument(
        "--simulate",
        type=opts.positive,
        default=0,
        metavar="N",
        help="also simulate N runs failure by failure",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of simulated runs and random steps (0)"
    )
    add_prices(parser)
    opts.add_knowledge(parser)
    parser.add_argument(
        "--require-fit", action="store_true", help="exit with 3 if a plan does not fit in memory"
    )
    opts.add_report(parser)
    parser.add_argument(
        "--svg",
        metavar="FILE.svg",
        help="write where the time goes by the interval of checkpoints, as a picture",
    )
    opts.add_json(parser)
    parser.set_defaults(run=run)


def add_amounts(parser: argparse.ArgumentParser) -> None:
    """--tokens, --samples."""
    parser.add_argument("--tokens", metavar="N", help="how long: 300B, 15T, ...")
    parser.add_argument("--samples", metavar="N", help="the same for models without sequences")


def add_reliability(parser: argparse.ArgumentParser) -> None:
    """--failures, --checkpoints."""
    parser.add_argument(
        "--failures",
        default="llama3",
        metavar="RATES",
        help="llama3 (default), rsc-1, rsc-2, nebius, opt-175b, bloom, none, or gpu=80000h,"
        "host=20000h,detect=10min,restart=5min,spares=4,repair=1day,replaced=0.8",
    )
    parser.add_argument(
        "--checkpoints",
        metavar="HOW",
        help="blocking or async, store or host, unsharded, store=2TB/s, host_write=5GB/s, "
        "every=30min (default: blocking, as often as is best)",
    )


def add_prices(parser: argparse.ArgumentParser) -> None:
    """--price, --pue, --watts."""
    parser.add_argument(
        "--price",
        default="on-demand",
        metavar="USD",
        help="dollars per GPU-hour, or on-demand (default), reserved or spot as on record",
    )
    parser.add_argument(
        "--pue", type=float, metavar="X", help="power usage effectiveness (default 1.15)"
    )
    parser.add_argument(
        "--watts", type=float, metavar="W", help="of a GPU with its share of the host"
    )


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from plancast.cli.progress import progress_bar
    from plancast.files import check_writable
    from plancast.training.phases import Phase
    from plancast.training.run import train

    answers.check_page(options.report)
    check_writable(options.svg, (".svg",))
    phases = [Phase.parse(text) for text in options.phase or ()]
    strategy: Any = options.strategy
    if strategy == "best":
        model = opts.load_model(options)
        machine = opts.load_machine(options.cluster, options)
    else:
        model, machine, strategy = opts.load_plan(options)
    with progress_bar("plans") as progress:
        result = train(
            model,
            machine,
            strategy,
            tokens=options.tokens,
            samples=options.samples,
            batch=options.batch,
            ramp=options.ramp,
            phases=[_opened(phase, options, machine, model) for phase in phases],
            days=options.days,
            evaluate=options.evaluate,
            failures=options.failures,
            checkpoints=options.checkpoints,
            slow_hosts=options.slow_hosts,
            randomness=_randomness(options),
            simulate_runs=options.simulate,
            seed=options.seed,
            price=options.price,
            pue=options.pue,
            watts=options.watts,
            dtype=options.dtype,
            profile=options.profile,
            cuda_graphs=options.cuda_graphs,
            nodes=nodes_of(options),
            session=opts.load_session(options),
            progress=progress,
            **opts.types_of(options),
        )
    _write_pictures(options, f"{model.name} on {machine}", result)
    if options.json:
        answers.print_json(result.to_dict())
    else:
        answers.print_rich(result)
    return answers.NOTHING_FITS if options.require_fit and not result.fits else 0


def _randomness(options: argparse.Namespace) -> Any:
    """What --jitter, --stragglers and --draws ask for."""
    from plancast.randomness import DEFAULT_SAMPLES, Randomness

    if options.jitter is None and options.stragglers is None:
        if options.draws is not None:
            raise InputError("--draws needs something random; give --jitter or --stragglers.")
        return None
    return Randomness(
        jitter=options.jitter or 0.0,
        stragglers=options.stragglers,
        samples=options.draws or DEFAULT_SAMPLES,
        seed=options.seed,
    )


def _write_pictures(options: argparse.Namespace, title: str, result: Any) -> None:
    """What --report and --svg ask for."""
    if options.report is None and options.svg is None:
        return
    from plancast import files
    from plancast.report.page.frame import write_page
    from plancast.report.page.train import run_page
    from plancast.report.run_svg import goodput_svg

    found = result.reliability
    if options.report is not None:
        write_page(options.report, run_page(result, answers.said_command(options)))
    if options.svg is not None:
        if found is None:
            raise InputError(
                "--svg shows checkpoints and failures, and there are none; leave `--failures none` "
                "out."
            )
        files.write_text(options.svg, goodput_svg(found, title, standalone=True))


def _opened(phase: Any, options: argparse.Namespace, machine: Any, model: Any) -> Any:
    """A phase with the strategy that its words name."""
    from dataclasses import replace

    if not isinstance(phase.strategy, str) or phase.strategy == "best":
        return phase
    opened = open_strategy(phase.strategy, options, machine, model)
    return replace(phase, strategy=adapted(opened, options))
