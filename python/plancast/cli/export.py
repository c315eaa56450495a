"""`plancast export`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from plancast.cli.exports import chakra, flows, launch, msccl, simai

_FORMATS: tuple[ModuleType, ...] = (chakra, flows, launch, msccl, simai)


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "export",
        help="write files for other tools",
        description="Writes collectives and plans as files that other tools read.",
    )
    formats = parser.add_subparsers(metavar="FORMAT", dest="format", required=True)
    for module in _FORMATS:
        module.add_parser(formats)
