"""`plancast rank`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from plancast.cli import options as opts

_LONG_S = 10.0


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "rank",
        help="the best plans for a model on a machine",
        description="Predicts every plan of a space and lists the best that fit in memory.",
    )
    opts.add_model(parser)
    opts.add_cuda_graphs(parser)
    opts.add_types(parser)
    opts.add_machine(parser)
    opts.add_batch(parser)
    opts.add_knowledge(parser)
    parser.add_argument(
        "--space",
        default="",
        metavar="SPACE",
        help="which plans, e.g. 'tp=1|2|4|8,pp=1..16,mb=*' (default: all sensible ones)",
    )
    parser.add_argument(
        "--objective", default="time", metavar="WHAT", help="time, cost or energy (default time)"
    )
    parser.add_argument(
        "--top",
        type=opts.positive,
        metavar="K",
        help="show the best K (default: 10 in the table, all in JSON and --out)",
    )
    parser.add_argument("--out", metavar="FILE", help="write the plans as .csv or .parquet")
    parser.add_argument(
        "--workers", type=opts.threads, metavar="N", help="threads (default: one per core)"
    )
    opts.add_report(parser)
    opts.add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from plancast.cli.progress import progress_bar
    from plancast.errors import InputError
    from plancast.planning import rank
    from plancast.ranking import Ranking
    from plancast.report.page.rank import ranking_page
    from plancast.report.ranking import ranking_tables

    if options.batch is None:
        raise InputError(
            "plans can be compared only at one global batch, and none is given. "
            "Add --batch N (samples per step)."
        )
    Ranking.check_path(options.out)
    opts.check_page(options.report)
    model, machine = opts.load_model(options), opts.load_machine(options.cluster, options)
    with progress_bar("plans") as progress:
        ranking = rank(
            model,
            machine,
            batch=options.batch,
            space=options.space,
            objective=options.objective,
            top=options.top,
            dtype=options.dtype,
            profile=options.profile,
            cuda_graphs=options.cuda_graphs,
            session=opts.load_session(options),
            workers=options.workers,
            progress=progress,
            announce=_announce,
            **opts.types_of(options),
        )
    if options.out is not None:
        ranking.write(options.out)
    opts.answer_page(
        options,
        lambda command: ranking_page(ranking, command),
        ranking_tables(ranking, top=options.top or 10),
        ranking.to_dict,
    )
    return 0 if len(ranking) else opts.NOTHING_FITS


def _announce(plans: int, seconds: float) -> None:
    """Says before a long search how long it takes."""
    if seconds < _LONG_S:
        return
    about = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:,.0f} minutes"
    print(f"{plans:,} plans take about {about}; a narrower --space takes less", file=sys.stderr)
