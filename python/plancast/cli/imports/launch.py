"""`plancast import launch`: what an argument file of a framework says."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from plancast.cli import answers
from plancast.cli import options as opts
from plancast.cli.launch_options import add_from


def add_parser(formats: Any) -> None:
    """Declares the format."""
    parser = formats.add_parser(
        "launch",
        help="argument files of training frameworks",
        description="Says what an argument file of torchtitan, FSDP (accelerate, Trainer, "
        "Composer), DeepSpeed or Megatron means: the plan, what else it settles, what makes no "
        "difference and what a plan cannot say.",
    )
    parser.add_argument("file", metavar="FILE", help="TOML, YAML, JSON, or a script")
    add_from(parser)
    parser.add_argument("--gpus", type=opts.positive, metavar="N", help="number of GPUs")
    parser.add_argument(
        "-m", "--model", metavar="MODEL", help="what is trained, if the file does not say it"
    )
    opts.add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from plancast import launchers
    from plancast.model import Model

    model = None if options.model is None else Model.open(options.model)
    launch = launchers.read(Path(options.file), options.framework, gpus=options.gpus, model=model)
    fields = launch.to_dict()
    if options.json:
        answers.print_json(fields)
        return 0
    notes, unsupported = fields.pop("notes"), fields.pop("unsupported")
    types = fields.pop("types")
    for name, value in {**fields, **types}.items():
        if value not in (None, False, ""):
            print(f"{name:<12} {value}")
    for line in unsupported:
        print(f"not in the plan: {line}")
    for line in notes:
        print(f"note: {line}")
    return 0
