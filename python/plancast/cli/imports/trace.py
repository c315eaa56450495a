"""`plancast import trace`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plancast.cli.imports.trace_file import add_trace_parser

if TYPE_CHECKING:
    from plancast.communication.traces import NcclTrace


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    add_trace_parser(
        commands,
        "trace",
        _kind,
        help="NCCL's own trace events",
        description="Reads what NCCL wrote about itself: the proxy profile of NCCL_PROXY_PROFILE "
        "(2.12 to 2.22) or the dump of its example profiler plugin (NCCL_PROFILE_DUMP_FILE). Says "
        "which collectives ran, what every channel's proxy did and what it waited for.",
        out_help="write a Chrome trace that ui.perfetto.dev opens",
    )


def _kind() -> type[NcclTrace]:
    from plancast.communication.traces import NcclTrace

    return NcclTrace
