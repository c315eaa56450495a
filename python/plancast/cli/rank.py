"""`plancast rank`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from plancast.cli import answers, interrupt
from plancast.cli import options as opts
from plancast.cli.adapter_options import add_lora, nodes_of
from plancast.cli.launch_options import Default
from plancast.cli.plan_question import add_framework

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
    add_lora(parser)
    opts.add_batch(parser)
    add_framework(parser)
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
    parser.add_argument(
        "--pareto",
        action="store_true",
        help="only plans that none is both faster than and smaller in memory",
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
    from plancast.adapters import NOT_IN_FILES
    from plancast.errors import InputError
    from plancast.frameworks import commands
    from plancast.plan_search import wider
    from plancast.planning import rank
    from plancast.ranking import Ranking
    from plancast.report.page.rank import ranking_page
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
    answers.check_page(options.report)
    model, machine = opts.load_model(options), opts.load_machine(options.cluster, options)
    framework, profile = _software(options, model)
    if options.launch is not None:
        commands.check(framework, options.launch)
    how: dict[str, Any] = {
        "batch": options.batch,
        "objective": options.objective,
        "dtype": options.dtype,
        "profile": profile,
        "cuda_graphs": options.cuda_graphs,
        "nodes": nodes_of(options),
        "session": opts.load_session(options),
        "workers": options.workers,
        **opts.types_of(options),
    }
    # Whoever wants all plans gets all; a table needs the best alone. What a framework can run, and
    # what nothing is better than, is told of all plans.
    every = options.json or options.out is not None or options.report is not None
    picks = bool(framework) or options.pareto
    top = None if picks else options.top or (None if every else _LISTED)
    with interrupt.answers_first():
        ranking = rank(
            model,
            machine,
            space=options.space,
            where=options.where,
            top=top,
            exhaustive=options.all,
            partial=True,
            announce=_announce,
            store=options.store,
            resume=options.resume,
            ray=options.ray,
            **how,
        )
    if options.export is not None:
        SearchStore(options.store).write(options.export)
    if ranking.stopped and options.store is not None:
        print(f"{options.store} keeps what was found; --resume goes on", file=sys.stderr)
    if ranking.stopped and not len(ranking):
        raise KeyboardInterrupt
    if not len(ranking):
        ranking = wider(ranking, model, machine, **how)
    if framework:
        ranking = ranking.for_framework(framework, None if options.pareto else options.top)
    if options.pareto:
        ranking = ranking.pareto(options.top)
    if options.launch is not None and len(ranking):
        text = ranking[0].without_nodes().launch_config(framework)
        file = commands.write(framework, options.launch, text)
        answers.remark(options, f"wrote {file} of the best plan")
        if options.lora is not None:
            answers.remark(options, f"it says {NOT_IN_FILES}")
    if options.out is not None:
        ranking.write(options.out)
    answers.answer_page(
        options,
        lambda command: ranking_page(ranking, command),
        ranking_tables(ranking, top=options.top or _LISTED, learned=how["session"].learned),
        ranking.to_dict,
    )
    if ranking.stopped:
        return interrupt.status_of(KeyboardInterrupt())
    return 0 if len(ranking) else answers.NOTHING_FITS


def _software(options: argparse.Namespace, model: Any) -> tuple[str, str]:
    """The framework that plans are kept to, or none, and the software profile."""
    from plancast.plan_search import software

    profile = None if isinstance(options.profile, Default) else str(options.profile)
    if options.target is None and options.launch is None:
        return "", str(options.profile)
    return software(options.target, profile, model)


def _announce(plans: int, seconds: float) -> None:
    """Says before a long search how long it takes."""
    if seconds < _LONG_S:
        return
    about = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:,.0f} minutes"
    print(f"{plans:,} plans take about {about}; a narrower --space takes less", file=sys.stderr)
