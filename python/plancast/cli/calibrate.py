"""`plancast calibrate`."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from typing import Any

from plancast.cli import answers
from plancast.cli import options as opts


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "calibrate",
        help="fits the cost models to measured kernels and collectives",
        description="Fits the coefficients of the cost models to measurements "
        "(docs/cost_models.md, docs/collectives.md).",
    )
    parser.add_argument("--kernels", metavar="DIR", help="folder of gemm.csv, attention.csv, ...")
    parser.add_argument(
        "--collectives", metavar="DIR", help="folder of measured collectives (docs/collectives.md)"
    )
    parser.add_argument("-o", "--out", metavar="DIR", help="folder to write to")
    parser.add_argument(
        "--evaluate",
        action="store_true",
        help="instead of writing coefficients, tell how well kernels are predicted that no "
        "coefficient was fitted to (docs/kernel_accuracy.md)",
    )
    parser.add_argument(
        "--report", metavar="FILE", help="with --evaluate: file to write all errors to, Markdown"
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        metavar="N",
        help="with --evaluate: which shapes are left out",
    )
    parser.add_argument("--date", metavar="DATE", help="date to write as that of the fit")
    parser.add_argument(
        "--workers", type=opts.threads, metavar="N", help="processes (default: one per core)"
    )
    opts.add_json(parser)
    parser.set_defaults(run=run)


@contextlib.contextmanager
def _readable_errors() -> Iterator[None]:
    """What a file of measurements may lack or hold, in words."""
    import csv

    from plancast.errors import InputError

    try:
        yield
    except InputError:
        raise
    except OSError as error:
        where = f"`{error.filename}`: {error.strerror}." if error.filename else str(error)
        raise InputError(where) from None
    except KeyError as error:
        raise InputError(
            f"a file of measurements has no column or entry {error}. "
            "docs/cost_models.md and docs/collectives.md list them."
        ) from None
    except (ValueError, csv.Error) as error:
        raise InputError(f"a file of measurements cannot be read: {error}") from None


def _evaluate(options: argparse.Namespace) -> int:
    import os
    import sys
    from pathlib import Path

    from plancast import files
    from plancast.accuracy.calibrate_kernels import read_measured
    from plancast.accuracy.calibration import evaluate, report

    scores = evaluate.evaluate(
        read_measured(Path(options.kernels)),
        seed=options.seed,
        workers=options.workers or os.cpu_count() or 1,
        report=lambda line: print(line, file=sys.stderr),
    )
    if options.report is not None:
        files.write_text(options.report, report.markdown(scores, options.seed))
    if options.json:
        answers.print_json(evaluate.as_json(scores))
    else:
        print(report.text(scores))
    return 0


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    import datetime
    import os
    import sys
    from pathlib import Path

    from plancast import files
    from plancast.errors import InputError

    if options.kernels is None and options.collectives is None:
        raise InputError("nothing to fit: give --kernels DIR, --collectives DIR or both.")
    answers.check_outputs(options.report)
    if options.evaluate:
        if options.kernels is None:
            raise InputError("only kernels are evaluated: give --kernels DIR.")
        with _readable_errors():
            return _evaluate(options)
    if options.report is not None:
        raise InputError("`--report` tells of an evaluation; give --evaluate as well.")
    if options.out is None:
        raise InputError("nowhere to write coefficients to: give --out DIR, or --evaluate.")
    out = Path(options.out)
    if files.is_there(out) and not files.is_folder(out):
        raise InputError(f"`{out}` is a file; give a folder to write to.")
    date = options.date or datetime.date.today().isoformat()
    texts: dict[Path, str] = {}

    def report(line: str) -> None:
        print(line, file=sys.stderr)

    with _readable_errors():
        if options.kernels is not None:
            from plancast.accuracy.calibrate_kernels import calibrate

            fitted = calibrate(
                Path(options.kernels),
                date=date,
                workers=options.workers or os.cpu_count() or 1,
                report=report,
            )
            texts |= {out / name: text for name, text in fitted.items()}
        if options.collectives is not None:
            from plancast.accuracy import calibrate_collectives

            text = calibrate_collectives.calibrate(Path(options.collectives), report=report)
            texts[out / "protocols.textproto"] = text
    with files.writing(out):
        out.mkdir(parents=True, exist_ok=True)
    files.write_set(texts)
    written = [str(path) for path in texts]
    if options.json:
        answers.print_json({"written": written})
    else:
        print(f"wrote {len(written)} files to {out}")
    return 0
