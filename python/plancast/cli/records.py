"""`plancast records`."""

from __future__ import annotations

import argparse
from typing import Any

from plancast.cli import answers
from plancast.cli import options as opts


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "records",
        help="a store of measured kernels",
        description="Keeps measured kernels, which predictions then go by (docs/records.md).",
    )
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    ingest = actions.add_parser(
        "ingest",
        help="read files of measured kernels into a store",
        description="Reads gemm.csv, attention.csv, conv.csv, elementwise.csv and moe.csv, or a "
        "folder of them. Each row enters once, so an ingest that was cut short is resumed by the "
        "same command.",
    )
    ingest.add_argument("files", nargs="+", metavar="DIR|CSV", help="measured kernels")
    ingest.add_argument("-o", "--out", metavar="STORE", required=True, help="made if absent")
    ingest.add_argument("--date", default="", metavar="DATE", help="of rows that say none")
    opts.add_json(ingest)
    ingest.set_defaults(run=_ingest)
    show = actions.add_parser(
        "show",
        help="what a store holds",
        description="Counts kernels and samples by GPU, op and source.",
    )
    show.add_argument("store", metavar="STORE")
    opts.add_json(show)
    show.set_defaults(run=_show)


def _ingest(options: argparse.Namespace) -> int:
    from pathlib import Path

    from plancast.cli.progress import progress_bar
    from plancast.records import Ingested, Records
    from plancast.records.ingest import files_of

    files = [file for text in options.files for file in files_of(Path(text))]
    records = Records(options.out)
    total = Ingested()
    for file in files:
        with progress_bar(file.name) as progress:
            total += records.ingest(file, date=options.date, progress=progress)
    if options.json:
        fields = {"rows": total.rows, "added": total.added, "known": total.known}
        answers.print_json({**fields, "unusable": dict(total.unusable), "kernels": len(records)})
        return 0
    print(
        f"{options.out}: {total.added:,} of {total.rows:,} rows added, {total.known:,} were there; "
        f"{len(records):,} kernels now"
    )
    for reason, count in total.unusable.most_common():
        print(f"  left out {count:,}: {reason}")
    return 0


def _show(options: argparse.Namespace) -> int:
    from plancast.records import Records

    records = Records(options.store, create=False)
    rows = records.summary()
    if options.json:
        answers.print_json({"kernels": len(records), "records": rows})
        return 0
    from plancast.accuracy.report.fitted_table import FittedTable

    table = FittedTable(title=f"{options.store}: {len(records):,} kernels")
    table.words("GPU", "op", least=8)
    table.words("source")
    table.numbers("kernels", "samples")
    for row in rows:
        numbers = (f"{row['kernels']:,}", f"{row['samples']:,}")
        table.row(str(row["gpu"]), str(row["op"]), str(row["source"]), *numbers)
    answers.print_rich(table)
    return 0
