"""`plancast import astra`: runs of ASTRA-sim, from a table that describes them."""

from __future__ import annotations

import argparse
from typing import Any

from plancast.cli import answers
from plancast.cli import options as opts


def add_parser(formats: Any) -> None:
    """Declares the format."""
    parser = formats.add_parser(
        "astra",
        help="runs of ASTRA-sim",
        description="Runs every case of a table of ASTRA-sim runs in the compatible mode "
        "(docs/traces.md), with traces made from the words of its `workload` column, and compares "
        "with what the table says: to the nanosecond.",
    )
    parser.add_argument("cases", metavar="CASES.csv", help="see docs/traces.md for the columns")
    parser.add_argument(
        "--only", metavar="TEXT", default="", help="only cases whose names have this in them"
    )
    opts.add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from time import process_time

    from plancast import _core, files
    from plancast.cli.progress import progress_bar

    cases = _core.AstraCases.read(files.read_text(options.cases), f"`{options.cases}`")
    wanted = [i for i in range(len(cases)) if options.only in cases.row(i)[0]]
    rows: list[dict[str, Any]] = []
    with progress_bar(options.cases) as progress:
        for done, index in enumerate(wanted):
            rows.append(_row(cases, index, process_time))
            progress(done + 1, len(wanted))
    known = [row for row in rows if row["equal"] is not None]
    equal = sum(row["equal"] for row in known)
    if options.json:
        answers.print_json({"cases": rows, "compared": len(known), "equal": equal})
        return 0
    for row in rows:
        if row["status"] != "ran":
            print(f"{row['case']:36} {row['status']}: {row['reason']}")
            continue
        verdict = {True: "equal", False: "DIFFERENT", None: ""}[row["equal"]]
        print(
            f"{row['case']:36} {row['finish_min_ns']:>13,} {row['finish_max_ns']:>13,}  {verdict}"
        )
    print(f"{equal} of {len(known)} cases with known times are equal to the nanosecond.")
    return 0


def _row(cases: Any, index: int, clock: Any) -> dict[str, Any]:
    name, status, low, high = cases.row(index)
    begin = clock()
    result, reason = cases.run(index)
    row: dict[str, Any] = {
        "case": name,
        "finish_min_ns": None,
        "finish_max_ns": None,
        "status": "ran" if result is not None else "not run",
        "reason": reason or None,
        "astra_sim_status": status,
        "expected_min_ns": low if low >= 0 else None,
        "expected_max_ns": high if high >= 0 else None,
        "equal": None,
        "cpu_s": round(clock() - begin, 4),
    }
    if result is not None:
        finish = result.finish_ns
        row.update(finish_min_ns=min(finish), finish_max_ns=max(finish), events=result.events)
        if low >= 0 and high >= 0:
            row["equal"] = (min(finish), max(finish)) == (low, high)
    return row
