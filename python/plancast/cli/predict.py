"""`plancast predict`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from plancast.cli import answers
from plancast.cli import options as opts
from plancast.cli.adapter_options import add_lora

if TYPE_CHECKING:
    from plancast.buckets import Buckets
    from plancast.changes import Sensitivities, WhatIf
    from plancast.choice import Choice
    from plancast.forecast import Forecast
    from plancast.machine import Machine
    from plancast.model import Model
    from plancast.randomness import Randomness


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "predict",
        help="iteration time and memory of one plan",
        description="Predicts one training step: time, memory, and where the time goes.",
    )
    opts.add_model(parser)
    opts.add_cuda_graphs(parser)
    opts.add_types(parser)
    opts.add_machine(parser)
    opts.add_strategy(parser, required=False, absent=" (default: what `plancast plan` chooses)")
    add_lora(parser)
    opts.add_batch(parser)
    opts.add_knowledge(parser)
    parser.add_argument(
        "--trace", metavar="FILE", help="write a Chrome trace for ui.perfetto.dev (.json, .json.gz)"
    )
    opts.add_report(parser)
    parser.add_argument(
        "--memory-timeline",
        action="store_true",
        help="show memory over the iteration and what is alive at its peak",
    )
    parser.add_argument(
        "--memory-svg",
        metavar="FILE.svg",
        help="write memory over the iteration as a picture",
    )
    parser.add_argument(
        "--require-fit", action="store_true", help="exit with 3 if the plan does not fit in memory"
    )
    parser.add_argument(
        "--no-shortcuts",
        dest="shortcuts",
        action="store_false",
        help="simulate event by event: slower, the same result to the last digit",
    )
    opts.add_fidelity(parser)
    _add_questions(parser)
    opts.add_json(parser)
    parser.set_defaults(run=run)


def _add_questions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--what-if",
        default="",
        metavar="CHANGES",
        help="simulate with changes: nic=2x, op:attn=free, purpose:tp=2x, device:3=80%%, ...",
    )
    parser.add_argument(
        "--sensitivities",
        action="store_true",
        help="also try one change at a time and rank what helps most",
    )
    parser.add_argument(
        "--tune",
        default="",
        metavar="KEYS",
        help="also try sizes of gradient buckets: bucket, first_bucket",
    )
    parser.add_argument(
        "--jitter",
        type=float,
        default=0.0,
        metavar="SIGMA",
        help="noise on every kernel and communication: sigma of the logarithm, such as 0.02",
    )
    parser.add_argument(
        "--stragglers",
        metavar="P:SPEED",
        help="devices that are slow for an iteration: 1%%:0.9 is one in a hundred at 90 %%",
    )
    parser.add_argument(
        "--samples", type=opts.positive, metavar="N", help="random iterations (default 50)"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="of random numbers (default 0)")
    parser.add_argument(
        "--workers",
        type=opts.threads,
        default=1,
        metavar="N",
        help="threads that simulate samples (default 1)",
    )


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from plancast.files import check_writable

    answers.check_page(options.report)
    check_writable(options.trace, (".json", ".json.gz"))
    check_writable(options.memory_svg, (".svg",))
    if options.strategy is None:
        choice = _choice(options)
        if choice.best is None:
            from plancast.report.page.choice import choice_page

            answers.answer_page(
                options, lambda command: choice_page(choice, command), choice, choice.to_dict
            )
            return answers.NOTHING_FITS
    model, machine, strategy = opts.load_plan(options)
    plan: dict[str, Any] = {
        "strategy": strategy,
        "batch": options.batch,
        "dtype": options.dtype,
        "profile": options.profile,
        "cuda_graphs": options.cuda_graphs,
        "session": opts.load_session(options),
        **opts.types_of(options),
    }
    forecast = _predict(options, model, machine, plan)
    if options.trace is not None:
        forecast.to_perfetto(options.trace)
    _write_report(options, forecast)
    _write_picture(options, forecast)
    asked = _answers(options, model, machine, plan, forecast)
    if options.json:
        extra = {name: answer.to_dict() for name, answer in asked.items()}
        answers.print_json({**forecast.to_dict(), **extra, **_memory(options, forecast)})
    else:
        answers.print_rich(forecast)
        if options.memory_timeline:
            from plancast.report.memory import memory_story

            answers.print_rich("", memory_story(forecast.memory))
        if forecast.distribution is not None:
            answers.print_rich(f"random iterations: {forecast.distribution}")
        for answer in asked.values():
            answers.print_rich(answer if hasattr(answer, "__rich__") else f"what if {answer}")
    return answers.NOTHING_FITS if options.require_fit and not forecast.fits else 0


def _choice(options: argparse.Namespace) -> Choice:
    """What `plancast plan` chooses where no -s is given; the options are set to it."""
    from plancast.cli.plan_question import choose

    model, machine = opts.load_model(options), opts.load_machine(options.cluster, options)
    choice = choose(options, model, machine)
    if choice.best is not None:
        options.strategy, options.batch = choice.best.strategy, choice.batch
        options.batch_said, options.profile = choice.batch, choice.best.profile
        options.dtype = choice.best.dtype
        answers.remark(options, "note: without -s it is the plan that `plancast plan` chooses")
        for text in choice.said:
            answers.remark(options, f"note: {text}")
    return choice


def _predict(options: argparse.Namespace, model: Model, machine: Machine, plan: Any) -> Forecast:
    from plancast.planning import predict

    return predict(
        model,
        machine,
        timeline=options.trace is not None or options.memory_timeline,
        shortcuts=options.shortcuts,
        fidelity=options.fidelity,
        what_if=options.what_if,
        randomness=_randomness(options),
        **plan,
    )


def _randomness(options: argparse.Namespace) -> Randomness | None:
    from plancast.randomness import Randomness

    asked = {name: getattr(options, name) for name in ("stragglers", "samples", "seed")}
    said = {name: value for name, value in asked.items() if value is not None}
    if options.jitter:
        said["jitter"] = options.jitter
    return Randomness(**said, workers=options.workers) if said else None


def _answers(
    options: argparse.Namespace, model: Model, machine: Machine, plan: Any, forecast: Forecast
) -> dict[str, WhatIf | Sensitivities | Buckets]:
    """What --what-if, --sensitivities and --tune ask for, by the name of the JSON field."""
    from plancast.buckets import tune_buckets
    from plancast.changes import WhatIf, sensitivities
    from plancast.planning import predict

    asked: dict[str, WhatIf | Sensitivities | Buckets] = {}
    if options.what_if:
        asked["what_if"] = WhatIf(options.what_if, predict(model, machine, **plan), forecast)
    if options.sensitivities:
        asked["sensitivities"] = sensitivities(model, machine, **plan)
    if options.tune:
        asked["tuned"] = tune_buckets(model, machine, knobs=options.tune, **plan)
    return asked


def _memory(options: argparse.Namespace, forecast: Forecast) -> dict[str, Any]:
    """The fields that --memory-timeline adds to --json."""
    if not options.memory_timeline:
        return {}
    memory = forecast.memory
    classes = [entry.device_class for entry in memory]
    return {
        "memory_timeline": [memory.timeline(name).to_dict() for name in classes],
        "memory_peak": [memory.explain(name).to_dict() for name in classes],
    }


def _write_report(options: argparse.Namespace, forecast: Forecast) -> None:
    """The answer as a page that draws."""
    if options.report is None:
        return
    from plancast.report.page.frame import write_page
    from plancast.report.page.predict import forecast_page

    write_page(options.report, forecast_page(forecast, answers.said_command(options)))


def _write_picture(options: argparse.Namespace, forecast: Forecast) -> None:
    if options.memory_svg is None:
        return
    from plancast import files
    from plancast.report.memory_svg import timeline_svg

    picture = timeline_svg(forecast.memory.timeline(), standalone=True)
    files.write_text(options.memory_svg, picture)
