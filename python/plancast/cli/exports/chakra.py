"""`plancast export chakra`: a plan or a collective as Chakra execution traces."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from plancast.cli import answers
from plancast.cli import options as opts
from plancast.errors import InputError

_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


def add_parser(formats: Any) -> None:
    """Declares the format."""
    parser = formats.add_parser(
        "chakra",
        help="Chakra execution traces",
        description="Writes PREFIX.0.et, PREFIX.1.et, ... (schema 0.0.4), which ASTRA-sim and "
        "`plancast run` execute: a plan (-m, -c, -s), with its groups in PREFIX.groups.json, or "
        "one collective (--collective, --bytes, --ranks).",
    )
    parser.add_argument("-o", "--out", metavar="PREFIX", required=True)
    plan = parser.add_argument_group("a plan", "as for `plancast predict`")
    opts.add_model(plan)
    opts.add_machine(plan)
    opts.add_strategy(plan)
    opts.add_batch(plan)
    for action in plan._group_actions:
        action.required = False
    one = parser.add_argument_group("a collective")
    one.add_argument("--collective", choices=_COLLECTIVES)
    one.add_argument(
        "--bytes",
        type=opts.byte_count,
        metavar="N[K|M|G]",
        help="on each rank; of an all_gather what a rank gives",
    )
    one.add_argument("--ranks", type=opts.positive, metavar="N")
    opts.add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    plan = [options.model, options.cluster, options.strategy]
    collective = [options.collective, options.bytes, options.ranks]
    if any(plan) == any(collective) or not (all(plan) or all(collective)):
        raise InputError(
            "say either a plan (-m MODEL -c MACHINE -s STRATEGY) or a collective "
            "(--collective KIND --bytes B --ranks N)."
        )
    from plancast import files

    prefix = Path(options.out)
    if not prefix.name:
        raise InputError(f"`--out {options.out}` names no file; give a prefix such as `out/run`.")
    if not files.is_folder(prefix.parent):
        raise InputError(f"there is no folder `{prefix.parent}` for the traces; make it first.")
    written = _write_plan(options, prefix) if all(plan) else _write_collective(options, prefix)
    if options.json:
        answers.print_json(written)
        return 0
    print(f"wrote {written['ranks']} traces, {prefix}.0.et ...")
    if written["groups"]:
        print(f"      {written['groups']} (--comm-groups)")
    return 0


def _write_collective(options: argparse.Namespace, prefix: Path) -> dict[str, Any]:
    from plancast import _core, files
    from plancast.communication import chakra
    from plancast.output import Outputs

    trace = _core.microbenchmark_trace(options.collective, options.ranks, options.bytes)
    if options.ranks > 65536:
        raise InputError(f"--ranks {options.ranks}: at most 65536 traces are written.")
    stale = chakra.stale_files(prefix, options.ranks, groups=False)
    with files.writing(prefix), Outputs() as outputs:
        for rank in range(options.ranks):
            outputs.write(chakra.rank_file(prefix, rank), trace)
        for path in stale:
            outputs.remove(path)
    return {"ranks": options.ranks, "prefix": str(prefix), "groups": None}


def _write_plan(options: argparse.Namespace, prefix: Path) -> dict[str, Any]:
    from plancast import _core, files
    from plancast.cli.progress import progress_bar
    from plancast.communication import chakra
    from plancast.output import Outputs
    from plancast.session import Session

    model, machine, strategy = opts.load_plan(options)
    traces = _core.plan_traces(
        model._core,
        machine._core,
        strategy._core,
        Session()._core,
        batch=options.batch,
        dtype=options.dtype,
        profile=options.profile,
    )
    groups = chakra.groups_file(prefix)
    stale = chakra.stale_files(prefix, traces.ranks, groups=True)
    with files.writing(prefix), Outputs() as outputs, progress_bar(str(prefix)) as progress:
        for rank in range(traces.ranks):
            outputs.write(chakra.rank_file(prefix, rank), traces.trace(rank))
            progress(rank + 1, traces.ranks)
        outputs.write(groups, traces.groups().encode())
        for path in stale:
            outputs.remove(path)
    return {"ranks": traces.ranks, "prefix": str(prefix), "groups": str(groups)}
