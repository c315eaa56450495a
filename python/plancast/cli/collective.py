"""`plancast collective`."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, Any

from plancast.cli import answers
from plancast.cli import options as opts
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.communication.collective_table import CollectiveTable
    from plancast.communication.nccl_tests import Comparison, TestLog

_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_MOST_SIZES = 1000


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "collective",
        help="how long a collective takes by size, as nccl-tests would print it",
        description="Forecasts one collective over a range of sizes, alone on an idle machine "
        "(docs/collectives.md), and compares it with a log of nccl-tests.",
    )
    opts.add_machine(parser)
    parser.add_argument(
        "--op",
        default=None,
        metavar="OP",
        help="all_reduce (default), all_gather, reduce_scatter, all_to_all, broadcast, send_recv",
    )
    parser.add_argument("--gpus", type=opts.positive, metavar="N", help="the first N; default: all")
    parser.add_argument(
        "--bytes",
        metavar="FROM..TO[*STEP]",
        help="sizes, e.g. 1K..16G, 8M..64M*4, or 1M,5M,1G (default 1K..16G; the log's with "
        "--against); K, M, G are powers of 1024",
    )
    parser.add_argument("--algo", default="", metavar="A", help="ring, tree, nvls, nvls-tree, ...")
    parser.add_argument("--proto", default="", metavar="P", help="LL, LL128 or Simple")
    parser.add_argument(
        "--nccl-version",
        default="2.27",
        metavar="V",
        help="whose own forecast stands beside ours: 2.17, 2.27 (default) or 2.30",
    )
    opts.add_fidelity(parser)
    parser.add_argument("--dtype", default="float", metavar="TYPE", help="for the count column")
    parser.add_argument(
        "--launch",
        type=float,
        default=0.0,
        metavar="US",
        help="microseconds that a harness counts before each kernel (default 0)",
    )
    parser.add_argument("--against", metavar="LOG", help="text that nccl-tests printed")
    parser.add_argument("--plot", metavar="FILE", help="a chart, .html or .png")
    opts.add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from plancast import files
    from plancast.communication.collective_table import collective
    from plancast.communication.nccl_tests import compare, read_log

    files.check_writable(options.plot, (".html", ".png"))
    log = read_log(options.against) if options.against is not None else None
    machine = opts.load_machine(options.cluster, options)
    if log is not None and options.bytes is None:
        sizes = [row.size_bytes for row in log.rows]
    else:
        sizes = parse_sizes(options.bytes or "1K..16G")
    gpus = options.gpus
    if gpus is None and log is not None and log.ranks is not None:
        gpus = log.ranks
    op = options.op or (log.op if log is not None else None) or "all_reduce"
    table = collective(
        machine,
        op,
        gpus=gpus,
        sizes=sizes,
        algorithm=options.algo,
        protocol=options.proto,
        nccl_version=options.nccl_version,
        dtype=options.dtype,
        launch_us=options.launch,
        fidelity=options.fidelity,
    )
    comparison = None
    if log is not None:
        comparison = compare(table.rows, log)
        if not comparison.rows:
            raise InputError(f"`{options.against}` has none of the sizes of --bytes; leave it out.")
        for line in log.skipped[:5]:
            print(
                f"plancast: warning: `{options.against}` line {line} looks like a row and has no "
                "time; skipped",
                file=sys.stderr,
            )
    if options.plot is not None:
        from plancast.report.collective_chart import write_chart

        write_chart(options.plot, table, comparison)
    if options.json:
        answers.print_json(_document(table, comparison))
        return 0
    _print_table(table)
    if comparison is not None and log is not None:
        _print_comparison(comparison, options.against, log)
    return 0


def parse_sizes(text: str) -> list[int]:
    """Sizes in bytes: `1K..16G`, `1M..64M*4`, `1M,3M,1G`.

    >>> parse_sizes("1K..8K")
    [1024, 2048, 4096, 8192]
    """
    sizes = []
    for part in text.split(","):
        if ".." not in part:
            sizes.append(_size(part, text))
            continue
        first, _, last = part.partition("..")
        last, _, step = last.partition("*")
        try:
            factor = float(step) if step else 2.0
        except ValueError:
            factor = 0.0
        low, high = _size(first, text), _size(last, text)
        if not 1 < factor <= 1e6:
            raise InputError(f"`{text}`: the step `{step}` has to be a factor above 1.")
        if low > high:
            raise InputError(f"`{text}`: {first} is above {last}. Write the smaller size first.")
        size = float(low)
        while size <= high and len(sizes) <= _MOST_SIZES:
            sizes.append(round(size))
            size *= factor
    if len(sizes) > _MOST_SIZES:
        raise InputError(f"`{text}` names more than {_MOST_SIZES} sizes. Take a larger step.")
    return sizes


def _size(text: str, whole: str) -> int:
    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,6})?)\s*([KMGT]?)i?B?\s*", text, re.IGNORECASE)
    if match is None:
        raise InputError(f"`{whole}`: `{text}` is no size. Write bytes, or 32K, 4M, 1G.")
    size = round(float(match.group(1)) * (1 << _UNITS[match.group(2).upper()]))
    if not 1 <= size <= 1 << 50:
        raise InputError(f"`{whole}`: `{text}` has to lie between 1 byte and 1024T.")
    return size


def _document(table: CollectiveTable, comparison: Comparison | None) -> dict[str, Any]:
    from plancast.communication.collective_table import row_fields

    document: dict[str, Any] = {"rows": [row_fields(row) for row in table.rows]}
    if comparison is not None:
        launched = comparison.with_launch(comparison.launch_us)
        document["against"] = {
            "rows": [
                {
                    "size_bytes": row.size_bytes,
                    "measured_us": row.measured_us,
                    "forecast_us": row.forecast_us,
                    "error": row.error,
                }
                for row in comparison.rows
            ],
            **_errors(comparison),
            "launch_us": comparison.launch_us,
            "with_launch": _errors(launched),
        }
    return document


def _errors(comparison: Comparison) -> dict[str, float]:
    return {
        "median_error": comparison.median_error,
        "mean_error": comparison.mean_error,
        "worst_error": comparison.worst_error,
    }


def _print_table(table: CollectiveTable) -> None:
    from plancast.accuracy.report.fitted_table import FittedTable

    shown = FittedTable(plain=True)
    shown.numbers("size (B)")
    shown.numbers("count", leaves=2)
    shown.words("type", leaves=1)
    shown.numbers("time (us)")
    shown.numbers("algbw (GB/s)", leaves=4)
    shown.numbers("busbw (GB/s)")
    shown.words("algorithm", "protocol", least=6)
    shown.numbers("channels", leaves=3)
    shown.numbers("NCCL says (us)", leaves=5)
    for row in table.rows:
        shown.row(
            str(row.size_bytes),
            str(row.count),
            row.dtype,
            _microseconds(row.time_us),
            f"{row.algbw_gb_per_s:.2f}",
            f"{row.busbw_gb_per_s:.2f}",
            row.algorithm,
            row.protocol,
            str(row.channels),
            "" if row.nccl_us is None else _microseconds(row.nccl_us),
        )
    answers.print_rich(shown)


def _print_comparison(comparison: Comparison, name: str, log: TestLog) -> None:
    from plancast.accuracy.report.fitted_table import FittedTable

    launched = comparison.with_launch(comparison.launch_us)
    shown = FittedTable(plain=True, title=f"against {name}")
    shown.numbers("size (B)", "measured (us)", "forecast (us)", "error", "error with launch")
    for row, after in zip(comparison.rows, launched.rows, strict=True):
        shown.row(
            str(row.size_bytes),
            _microseconds(row.measured_us),
            _microseconds(row.forecast_us),
            f"{100 * row.error:+.1f} %",
            f"{100 * after.error:+.1f} %",
        )
    answers.print_rich("", shown)
    print(_summary("as forecast", comparison))
    print(
        _summary(f"with a launch of {comparison.launch_us:.1f} us, from the smallest", launched)
        + "; --launch sets it"
    )
    missing = len(log.rows) - len(comparison.rows)
    if missing > 0:
        print(f"{missing} sizes of the log are not among --bytes")


def _summary(what: str, comparison: Comparison) -> str:
    return (
        f"error {what}: median {100 * comparison.median_error:.1f} %, "
        f"mean {100 * comparison.mean_error:.1f} %, worst {100 * comparison.worst_error:.1f} %"
    )


def _microseconds(value: float) -> str:
    return f"{value:.2f}" if value < 1000 else f"{value:.1f}"
