"""`plancast ui`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from plancast.cli import options as opts

if TYPE_CHECKING:
    from plancast.ui.choices import Choice, Desk

_PORT = 8050


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "ui",
        help="a local page to try plans on",
        description="Serves a page on this machine alone (127.0.0.1) on which one chooses model, "
        "machine and plan, drags degrees of parallelism and sees time, memory and pipeline "
        "change. Files behind -m and -c are on offer there beside all presets.",
    )
    opts.add_model(parser, required=False)
    opts.add_machine(parser, required=False)
    parser.add_argument(
        "-s", "--strategy", default="", metavar="STRATEGY", help="begin with tp=8,pp=4,mb=1,..."
    )
    opts.add_batch(parser)
    parser.add_argument(
        "--port",
        type=int,
        default=_PORT,
        metavar="N",
        help=f"of the page (default {_PORT}; 0: any that is free)",
    )
    parser.add_argument("--browser", action="store_true", help="open it in the browser, too")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    from plancast.ui.app import check_library, make_app
    from plancast.ui.serve import check_port, serve

    check_library()
    check_port(options.port)
    desk, first = _begin(options)
    app = make_app(desk, first)

    def announce(address: str) -> None:
        print(f"plancast ui: {address} (Ctrl-C ends it)", flush=True)
        if options.browser:
            import webbrowser

            webbrowser.open(address)

    serve(app, options.port, announce)
    return 0


def _begin(options: argparse.Namespace) -> tuple[Desk, Choice]:
    """What is on offer, and what the page shows first."""
    from plancast.files import looks_like_file
    from plancast.question import core_of
    from plancast.ui.choices import Choice, Desk, read_strategy

    desk = Desk()
    model, cluster = options.model or "llama3-8b", options.cluster or "dgx-h100:2"
    if options.documents is not None or options.image is not None or looks_like_file(model):
        options.model = model
        desk.models[model] = opts.load_model(options)
    machine = opts.load_machine(cluster, options)
    name, _, hosts = cluster.partition(":")
    if looks_like_file(cluster) or not hosts.isdecimal():
        desk.machines[cluster] = machine
        name = cluster
    core_of(options.strategy)
    said = read_strategy(options.strategy)
    if not options.strategy:
        said = {"degrees": {"tp": min(8, machine.gpus_per_domain or 1)}, "sp": True}
    degrees = {"pp": 1, "mb": 1, **said.pop("degrees")}
    choice = Choice(
        model=model,
        machine=name,
        hosts=machine.hosts,
        batch=options.batch or 8 * machine.devices,
        seq=None if model in desk.models else options.seq,
        dtype=str(options.dtype),
        profile=str(options.profile),
        degrees=tuple(degrees.items()),
        **said,
    )
    return desk, choice
