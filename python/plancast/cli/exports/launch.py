"""`plancast export launch`: a plan as the argument file of a framework."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from plancast.cli import answers
from plancast.cli import options as opts
from plancast.cli.launch_options import Default
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.strategy import Strategy


def add_parser(formats: Any) -> None:
    """Declares the format."""
    parser = formats.add_parser(
        "launch",
        help="argument files of training frameworks",
        description="Writes the arguments with which a framework runs a plan; refuses a plan that "
        "it cannot run, with the nearest one that it can.",
        epilog="Example: plancast export launch torchtitan -m llama3-8b -c dgx-h100:8 "
        "-s tp=8,sp,zero=3,mb=1 -o llama3_8b.toml",
    )
    parser.add_argument(
        "target", metavar="FRAMEWORK", help="torchtitan, fsdp, composer, deepspeed or megatron-core"
    )
    opts.add_model(parser)
    opts.add_cuda_graphs(parser)
    opts.add_machine(parser)
    opts.add_strategy(parser)
    opts.add_types(parser)
    opts.add_batch(parser)
    parser.add_argument("-o", "--out", metavar="FILE", help="default: standard output")
    opts.add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from plancast import files
    from plancast.planning import predict

    answers.check_outputs(options.out)
    model, machine, strategy = opts.load_plan(options)
    run: dict[str, Any] = {
        "batch": options.batch,
        "dtype": options.dtype,
        "cuda_graphs": options.cuda_graphs,
        **opts.types_of(options),
    }
    profile = _profile(options)
    if _is_simulated(strategy):
        # A forecast settles what the plan leaves open, and checks it against the machine.
        forecast = predict(model, machine, strategy, profile=profile, **run)
        text = forecast.launch_config(options.target)
    else:
        text = strategy.launch_config(
            options.target,
            model=model,
            gpus=machine.devices,
            gpus_per_host=machine.gpus_per_host or None,
            seq=model.seq,
            profile=profile,
            **run,
        )
    if options.json:
        answers.print_json({"framework": options.target, "text": text, "out": options.out})
    if options.out is not None:
        files.write_text(options.out, text)
        if not options.json:
            print(f"wrote {options.out}")
    elif not options.json:
        print(text, end="")
    return 0


def _is_simulated(strategy: Strategy) -> bool:
    try:
        strategy.check_supported()
    except InputError:
        return False
    return True


def _profile(options: argparse.Namespace) -> str:
    """The profile given, or the framework's first."""
    from plancast.frameworks.formats import FRAMEWORKS, framework_name
    from plancast.planning import profiles

    name = framework_name(options.target)
    if not isinstance(options.profile, Default):
        return str(options.profile)
    return next((own for own in FRAMEWORKS[name].profiles if own in profiles()), "fsdp")
