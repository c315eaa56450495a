"""`plancast profile`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from plancast.cli import answers, sizes
from plancast.cli import options as opts

if TYPE_CHECKING:
    from plancast.profiling.backend import Backend
    from plancast.records import Kernel


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "profile",
        help="measures kernels on this machine's GPU",
        description="Times the kernels of a plan, or a grid of usual ones, with PyTorch and keeps "
        "them in a store that predictions go by (docs/records.md). A run that was cut short is "
        "resumed by the same command.",
    )
    parser.add_argument(
        "-o",
        "--out",
        metavar="STORE",
        default="kernels.db",
        help="made if absent (default kernels.db)",
    )
    parser.add_argument("-m", "--model", metavar="MODEL", help="whose kernels; with -c and -s")
    opts.add_machine(parser, required=False)
    parser.add_argument("-s", "--strategy", metavar="STRATEGY", help="how they are cut")
    parser.add_argument("--seq", type=sizes.seq, metavar="TOKENS", help="sequence length")
    parser.add_argument("--image", type=opts.positive, metavar="PIXELS", help="image size")
    parser.add_argument("--dtype", type=opts.dtype, default="bf16", metavar="TYPE")
    parser.add_argument("--profile", default="megatron-core", metavar="NAME")
    opts.add_batch(parser)
    parser.add_argument("--gpu", metavar="NAME", help="catalogue's name of this GPU")
    parser.add_argument("--csv", metavar="DIR", help="also write the records as CSV files")
    parser.add_argument(
        "--again", action="store_true", help="measure also what the store has by this library"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="list the kernels and measure nothing"
    )
    parser.add_argument(
        "--replay", metavar="RUN.json", help="take the timings from a recorded run, not from a GPU"
    )
    opts.add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    kernels = _kernels(options)
    if options.dry_run:
        return _list(options, kernels)
    from pathlib import Path

    from plancast.cli.progress import progress_bar
    from plancast.profiling import profile
    from plancast.profiling.tables import write_tables
    from plancast.records import Records

    backend = _backend(options)
    records = Records(options.out)
    with progress_bar("kernels") as progress:
        result = profile(kernels, backend, records, again=options.again, progress=progress)
    written = []
    if options.csv is not None:
        mine = records.select(gpu=backend.gpu, library=backend.library, version=backend.version)
        written = [str(path) for path in write_tables(mine, Path(options.csv))]
    if options.json:
        answers.print_json(
            {
                "gpu": backend.gpu,
                "library": backend.library,
                "version": backend.version,
                "measured": result.measured,
                "known": result.known,
                "unmeasurable": dict(result.unmeasurable),
                "seconds": result.seconds,
                "csv": written,
            }
        )
        return 0
    print(
        f"{options.out}: {result.measured} kernels measured on {backend.gpu} with "
        f"{backend.library} {backend.version} in {result.seconds:.3g} s, "
        f"{result.known} were there"
    )
    for reason, count in result.unmeasurable.most_common():
        print(f"  not measured {count}: {reason}")
    for path in written:
        print(f"wrote {path}")
    return 0


def _kernels(options: argparse.Namespace) -> list[Kernel]:
    from plancast.errors import InputError
    from plancast.profiling.grid import default_grid, kernels_of_plan

    given = (options.model, options.cluster, options.strategy)
    if given == (None, None, None):
        return default_grid()
    if None in given:
        raise InputError(
            "the kernels of a plan need a model, a machine and a strategy. Give -m, -c and -s, or "
            "none of them for a grid of usual kernels."
        )
    return kernels_of_plan(
        *opts.load_plan(options), batch=options.batch, dtype=options.dtype, profile=options.profile
    )


def _backend(options: argparse.Namespace) -> Backend:
    if options.replay is not None:
        from plancast.profiling.replay import ReplayBackend

        return ReplayBackend(options.replay)
    from plancast.profiling.torch_backend import TorchBackend

    return TorchBackend(options.gpu)


def _list(options: argparse.Namespace, kernels: list[Kernel]) -> int:
    if options.json:
        answers.print_json([dict(zip(_FIELDS, kernel.key, strict=True)) for kernel in kernels])
        return 0
    for kernel in kernels:
        print(kernel)
    print(f"{len(kernels)} kernels")
    return 0


_FIELDS = ("op", "shape", "dtype", "layout")
