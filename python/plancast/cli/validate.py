"""`plancast validate`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from plancast.cli import answers
from plancast.cli import options as opts
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.accuracy.validation.scoreboard import Scoreboard


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "validate",
        help="forecasts beside published measurements",
        description="Predicts measured rows and scores the forecasts by source, beside the best "
        "constant MFU. Columns: docs/cli.md.",
    )
    parser.add_argument("rows", nargs="+", metavar="ROWS.csv|DIR", help="measured rows")
    parser.add_argument(
        "--machines",
        metavar="CSV",
        help="figures of the machines the rows name, instead of presets",
    )
    parser.add_argument(
        "--workers", type=opts.threads, metavar="N", help="threads (default: one per core)"
    )
    parser.add_argument(
        "--report", metavar="FILE", help="write the scores as a page, .html or .md (Markdown)"
    )
    parser.add_argument(
        "--template",
        metavar="FILE",
        help="a text for the Markdown report, with {{table NAME}} where tables go: docs/cli.md",
    )
    parser.add_argument(
        "--uncalibrated",
        action="store_true",
        help="also forecast with data sheets alone: nominal peaks and bandwidths",
    )
    parser.add_argument(
        "--what-if",
        metavar="CHANGES",
        default="",
        help="also forecast with changes, such as `sharing=free,interference=free`: what a part "
        "of the simulation is worth (docs/what_if.md)",
    )
    parser.add_argument(
        "--learn",
        type=opts.positive,
        action="append",
        default=[],
        metavar="K",
        help="also say how far a job's other plans are off once K of its runs were learned from; "
        "may be given several times",
    )
    parser.add_argument(
        "--fit-uncertainty",
        metavar="FILE.textproto",
        help="write how far the rows lie from their forecasts: "
        "planner/uncertainty/data/uncertainty.textproto",
    )
    opts.add_knowledge(parser)
    parser.add_argument("--date", metavar="YYYY-MM-DD", help="date of the fit (default: today)")
    opts.add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from plancast.accuracy.validation.run import validate
    from plancast.cli.progress import progress_bar
    from plancast.files import check_writable
    from plancast.report.page.frame import check_library

    answers.check_outputs(options.fit_uncertainty)
    check_writable(options.report, (".html", ".htm", ".md"))
    if options.template is None and not str(options.report or ".md").endswith(".md"):
        check_library()
    if options.template is not None and options.report is None:
        raise InputError("`--template` is the text of a report. Say where: `--report FILE.md`.")
    session = opts.load_session(options)
    with progress_bar("rows") as progress:
        scoreboard = validate(
            options.rows,
            machines=options.machines,
            workers=options.workers,
            progress=progress,
            uncalibrated=options.uncalibrated,
            what_if=options.what_if,
            learn=options.learn,
            session=session,
        )
    if options.fit_uncertainty is not None:
        _write_uncertainty(options, scoreboard)
    if options.report is not None:
        _write_report(options, scoreboard)
    if options.json:
        answers.print_json(scoreboard.to_dict())
    else:
        answers.print_rich(scoreboard)
    return 0


def _write_report(options: argparse.Namespace, scoreboard: Scoreboard) -> None:
    """A page by its extension, or a template filled in."""
    from pathlib import Path

    from plancast.accuracy.report.score_page import scoreboard_page
    from plancast.files import read_text, write_text
    from plancast.report.markdown import fill, scoreboard_markdown

    if options.template is not None:
        text = fill(read_text(options.template), scoreboard, Path(options.template).parent)
    elif options.report.endswith(".md"):
        text = scoreboard_markdown(scoreboard)
    else:
        text = scoreboard_page(scoreboard, answers.said_command(options)).render()
    write_text(options.report, text)


def _write_uncertainty(options: argparse.Namespace, scoreboard: Scoreboard) -> None:
    """What forecasts say of themselves from then on, once it is compiled in."""
    import datetime
    from pathlib import Path

    from plancast.accuracy.validation.levels import fit_levels
    from plancast.accuracy.validation.uncertainty import fit
    from plancast.accuracy.validation.uncertainty_file import uncertainty_text
    from plancast.files import write_text

    names = " ".join(Path(path).name for path in options.rows)
    text = uncertainty_text(
        fit(scoreboard.residuals),
        fit_levels(scoreboard.residuals),
        scoreboard.results,
        data=names,
        command=f"plancast validate {names} --fit-uncertainty",
        date=options.date or datetime.date.today().isoformat(),
    )
    write_text(options.fit_uncertainty, text)
