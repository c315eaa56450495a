"""`plancast import`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from plancast.cli.imports import astra, chrome, launch, nccl, trace, workload

_FORMATS: tuple[ModuleType, ...] = (astra, chrome, launch, nccl, trace, workload)


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "import",
        help="read what other tools wrote",
        description="Reads files of other tools and says what they hold.",
    )
    formats = parser.add_subparsers(metavar="FORMAT", dest="format", required=True)
    for module in _FORMATS:
        module.add_parser(formats)
