"""`plancast import chrome`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plancast.cli.imports.trace_file import add_trace_parser

if TYPE_CHECKING:
    from plancast.communication.chrome import ChromeTrace


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    add_trace_parser(
        commands,
        "chrome",
        _kind,
        help="traces in the Chrome format",
        description="Reads a trace in the Chrome format, as PyTorch's profiler, Perfetto and "
        "`predict --trace` write it, and says where its time goes. Files that are not quite JSON "
        "are mended, and what cannot be understood is listed (docs/traces.md).",
        out_help="write it again for ui.perfetto.dev, mended and with tracks apart",
    )


def _kind() -> type[ChromeTrace]:
    from plancast.communication.chrome import ChromeTrace

    return ChromeTrace
