"""`plancast calibrate`."""

from __future__ import annotations

import argparse
from typing import Any

from plancast.cli import options as opts


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "calibrate",
        help="fits the cost models to measured kernels and collectives",
        description="Fits the coefficients of the cost models to measurements (docs/cost_models.md).",
    )
    parser.add_argument("--kernels", metavar="DIR", help="folder of gemm.csv, attention.csv, ...")
    parser.add_argument("--collectives", metavar="CSV", help="measured collectives")
    parser.add_argument("-o", "--out", metavar="DIR", required=True, help="folder to write to")
    parser.add_argument("--date", metavar="DATE", help="date to write as that of the fit")
    parser.add_argument(
        "--workers", type=opts.positive, metavar="N", help="processes (default: one per core)"
    )
    opts.add_json(parser)
    parser.set_defaults(run=run)
