"""`plancast gradients`."""

from __future__ import annotations

import argparse
from typing import Any

from plancast.cli import answers
from plancast.cli import options as opts

_KNOBS = (
    ("bucket", "SIZE", "join gradients until a message has so many bytes; 0: each tensor"),
    ("first-bucket", "SIZE", "the same of the first message"),
    ("partition", "SIZE", "send messages in parts of so many bytes; 0: whole"),
    ("order", "HOW", "made: first come, first served; priority: first layers first"),
    (
        "credit",
        "SIZE",
        "bytes in flight below which a part begins; `one` at a time, one to `each` server",
    ),
    ("spread", "SIZE", "whole messages of so many bytes go to all servers, a part to each"),
    ("wait", "FOR", "the next forward pass: all gradients, or each layer for its own"),
    ("sync", "WHEN", "of several passes: last (no_sync), or each"),
    ("half-bytes", "SIZE", "of --bus-gb-per-s: a message that reaches half of it"),
)


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "gradients",
        help="when gradients are sent: buckets, priority, servers",
        description="Forecasts an iteration of data-parallel workers, each with the whole model, "
        "by when and in what pieces their gradients are sent.",
        epilog="Example: plancast gradients -m resnet50 -c t4-pcie:1 -s mb=32 --tune bucket",
    )
    opts.add_model(parser, profile="ddp")
    opts.add_types(parser)
    opts.add_machine(parser)
    parser.add_argument(
        "-s",
        "--strategy",
        default="",
        metavar="PLAN",
        help="of one worker: mb=8,accum=4,recompute=full",
    )
    opts.add_batch(parser)
    parser.add_argument(
        "--scheme",
        default="ddp",
        metavar="NAME",
        help="where the knobs begin: ddp (default), tensors or bytescheduler",
    )
    parser.add_argument(
        "--against", metavar="NAME", help="also as another scheme sends them, without other knobs"
    )
    for name, metavar, text in _KNOBS:
        parser.add_argument(f"--{name}", metavar=metavar, help=text)
    parser.add_argument(
        "--servers",
        type=opts.positive,
        metavar="N",
        help="hosts beside the workers' that sum; default: all-reduces",
    )
    parser.add_argument(
        "--no-host-sums",
        action="store_true",
        help="every worker pushes all, without sums inside of hosts",
    )
    for name, of in (
        ("bucket-view", "gradient_as_bucket_view: no copies, no memory beside gradients"),
        ("find-unused", "find_unused_parameters: a last message says which were used"),
        ("static-graph", "static_graph: nobody looks for unused parameters"),
    ):
        parser.add_argument(f"--{name}", action="store_true", default=None, help=f"DDP's {of}")
    parser.add_argument(
        "--call-us", type=float, metavar="US", help="of each part beside what the machine says"
    )
    parser.add_argument(
        "--bus-gb-per-s",
        type=float,
        metavar="GB/s",
        help="what links are known to reach, in place of the machine's prices",
    )
    parser.add_argument(
        "--tune", default="", metavar="KNOBS", help="find the best: bucket,partition,credit"
    )
    parser.add_argument(
        "--advice",
        action="store_true",
        help="what larger buckets, accumulation, 16 bits, views and fewer cards give here",
    )
    parser.add_argument("--svg", metavar="FILE.svg", help="write a picture of the iteration")
    opts.add_knowledge(parser)
    opts.add_report(parser)
    opts.add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from plancast.gradient_traffic.forecast import gradients
    from plancast.report.gradients import gradient_tables
    from plancast.report.gradients_svg import gradients_svg
    from plancast.report.page.text import text_page

    answers.check_outputs(options.svg)
    answers.check_page(options.report)
    model = opts.load_model(options)
    machine = opts.load_machine(options.cluster, options)
    job: dict[str, Any] = {
        "servers": options.servers or 0,
        "host_sums": False if options.no_host_sums else None,
        "call_us": options.call_us,
        "bus_gb_per_s": options.bus_gb_per_s,
        "half_bytes": options.half_bytes,
        "batch": options.batch,
        "dtype": options.dtype,
        "profile": options.profile,
        "session": opts.load_session(options),
        **opts.types_of(options),
    }
    names = [name.replace("-", "_") for name, *_ in _KNOBS if name != "half-bytes"]
    names += ["bucket_view", "find_unused", "static_graph"]
    knobs = {name: getattr(options, name) for name in names}
    if options.advice:
        return _advise(options, model, machine, {**knobs, "scheme": options.scheme, **job})
    other = None
    if options.against is not None:
        other = gradients(model, machine, options.strategy, scheme=options.against, **job)
    found = gradients(
        model, machine, options.strategy, scheme=options.scheme, tune=options.tune, **knobs, **job
    )
    if options.svg is not None:
        found.to_svg(options.svg, against=other)

    def fields() -> dict[str, Any]:
        against = {} if other is None else {"against": other.to_dict()}
        return {**found.to_dict(), **against}

    title = f"{model.name}: when gradients are sent"
    shown = gradient_tables(found, other)
    picture = gradients_svg([found, *([] if other is None else [other])], standalone=False)
    answers.answer_page(
        options,
        lambda command: text_page(title, shown, fields(), command, [picture]),
        shown,
        fields,
    )
    return 0


def _advise(options: argparse.Namespace, model: Any, machine: Any, job: dict[str, Any]) -> int:
    """--advice."""
    from plancast.errors import InputError
    from plancast.gradient_traffic.advice import gradient_advice
    from plancast.report.page.text import text_page

    if options.against or options.svg or options.tune:
        raise InputError("--advice stands alone; leave --against, --svg and --tune out.")
    found = gradient_advice(model, machine, options.strategy, **job)
    title = f"{model.name}: what advice on gradients is worth"
    told = found.to_dict()
    answers.answer_page(
        options, lambda command: text_page(title, found, told, command), found, lambda: told
    )
    return 0
