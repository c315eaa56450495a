"""`plancast export simai`: a plan as a workload of SimAI."""

from __future__ import annotations

import argparse
from typing import Any

from plancast.cli import answers
from plancast.cli import options as opts


def add_parser(formats: Any) -> None:
    """Declares the format."""
    parser = formats.add_parser(
        "simai",
        help="a plan as a text workload of SimAI",
        description="Writes what a rank of a plan computes and sends as a workload of SimAI "
        "(docs/traces.md); `plancast import workload` reads and runs it.",
    )
    opts.add_model(parser)
    opts.add_machine(parser)
    opts.add_strategy(parser)
    opts.add_batch(parser)
    parser.add_argument("-o", "--out", metavar="FILE", help="default: standard output")
    opts.add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from plancast import files
    from plancast.communication.simai_plan import simai_workload

    answers.check_outputs(options.out)
    model, machine, strategy = opts.load_plan(options)
    workload = simai_workload(
        model,
        machine,
        strategy,
        batch=options.batch,
        dtype=options.dtype,
        profile=options.profile,
    )
    text = workload.to_text()
    if options.json:
        fields = {"gpus": workload.gpus, "layers": len(workload.layers), "out": options.out}
        answers.print_json({**fields, "totals": workload.totals(), "text": text})
    if options.out is not None:
        files.write_text(options.out, text)
        if not options.json:
            print(f"wrote {options.out}: {len(workload.layers):,} layers")
    elif not options.json:
        print(text, end="")
    return 0
