"""`plancast rank`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from plancast.cli import interrupt
from plancast.cli import options as opts

_LONG_S = 10.0
_LISTED = 10  # plans in the table


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "rank",
        help="the best plans for a model on a machine",
        description="Lists the best plans of a space that fit in memory. Only plans are simulated "
        "whose time may be among the best by its lower bound, so no other is better.",
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
        "--where",
        default="",
        metavar="CONDITION",
        help="of the space, plans of which this holds, e.g. 'tp<=8 and mb*seq<=16384'",
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
    parser.add_argument(
        "--all",
        action="store_true",
        help="simulate every plan that fits, also where bounds tell that it is none of the best",
    )
    parser.add_argument("--out", metavar="FILE", help="write the plans as .csv or .parquet")
    parser.add_argument(
        "--workers",
        type=opts.threads,
        metavar="N",
        help="threads, or processes of --ray local (default: one per core)",
    )
    parser.add_argument(
        "--store", metavar="FILE", help="keep what is found of each plan in this new file"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with the search of --store, if it is there"
    )
    parser.add_argument(
        "--export", metavar="FILE", help="write the rows of --store as .csv or .parquet"
    )
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="spread the search over a Ray cluster: HOST:PORT, auto, or local to start one here",
    )
    opts.add_report(parser)
    opts.add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from plancast import files
    from plancast.cli.progress import progress_bar
    from plancast.errors import InputError
    from plancast.planning import rank
    from plancast.ranking import Ranking
    from plancast.report.ranking import ranking_tables
    from plancast.search.pools import has_ray
    from plancast.search.store import SearchStore

    if options.batch is None:
        raise InputError(
            "plans can be compared only at one global batch, and none is given. "
            "Add --batch N (samples per step)."
        )
    Ranking.check_path(options.out)
    files.check_table(options.export)
    for name in ("resume", "export"):
        if getattr(options, name) and options.store is None:
            raise InputError(f"--{name} is of a store; give --store FILE, too.")
    if options.ray is not None and not has_ray(options.ray):
        print("Ray is not installed; threads do the search", file=sys.stderr)
    opts.check_outputs(report=options.report)
    model, machine = opts.load_model(options), opts.load_machine(options.cluster, options)
    # Whoever wants all plans gets all; a table needs the best alone.
    every = options.json or options.out is not None or options.report is not None
    top = options.top or (None if every else _LISTED)
    with progress_bar("plans") as progress, interrupt.answers_first():
        ranking = rank(
            model,
            machine,
            batch=options.batch,
            space=options.space,
            where=options.where,
            objective=options.objective,
            top=top,
            dtype=options.dtype,
            profile=options.profile,
            cuda_graphs=options.cuda_graphs,
            session=opts.load_session(options),
            workers=options.workers,
            exhaustive=options.all,
            partial=True,
            progress=progress,
            found=progress.found,
            announce=_announce,
            store=options.store,
            resume=options.resume,
            ray=options.ray,
            **opts.types_of(options),
        )
    if options.export is not None:
        SearchStore(options.store).write(options.export)
    if ranking.stopped and options.store is not None:
        print(f"{options.store} keeps what was found; --resume goes on", file=sys.stderr)
    if ranking.stopped and not len(ranking):
        raise KeyboardInterrupt
    if options.out is not None:
        ranking.write(options.out)
    tables = ranking_tables(ranking, top=options.top or _LISTED)
    opts.answer(options, f"Plans for {model.name} on {machine}", tables, ranking.to_dict)
    if ranking.stopped:
        return interrupt.status_of(KeyboardInterrupt())
    return 0 if len(ranking) else opts.NOTHING_FITS


def _announce(plans: int, seconds: float) -> None:
    """Says before a long search how long it takes."""
    if seconds < _LONG_S:
        return
    about = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:,.0f} minutes"
    print(f"{plans:,} plans take about {about}; a narrower --space takes less", file=sys.stderr)
