"""`plancast plan`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from plancast.cli import answers, plan_question
from plancast.cli import options as opts

if TYPE_CHECKING:
    from plancast.machine import Machine
    from plancast.model import Model
    from plancast.planners.plan import Plan

# Each method: what it is in a line, and the options that it takes besides those of all.
METHODS = {
    "grid": ("the best plan that `plancast rank` finds", ("space",)),
    "intra-op": ("splits of every op, as an integer program (Alpa)", ("mesh", "zero", "accum")),
    "inter-op": ("stages with meshes of their own, by dynamic programme (Alpa)", ("samples",)),
    "bisection": ("devices cut into halves again and again (Tofu)", ("accum",)),
    "auto-config": ("depth and micro-batch of a pipeline (Varuna)", ("sizes", "recompute")),
    "local-search": ("small changes of a tree", ("start", "space", "forecasts", "seed")),
    "memory": ("what layers keep, run again or move to the host", ("start", "memory")),
}


def add_parser(commands: Any) -> None:
    """Declares the subcommand."""
    listed = "; ".join(f"{name}: {what}" for name, (what, _) in METHODS.items())
    parser = commands.add_parser(
        "plan",
        help="the best plan for a model on a machine, and how to run it",
        description="Says which plan to train a model with: its speed, memory, days and dollars, "
        "how sure that is, two alternatives and the launch file. With --method it finds a strategy "
        f"tree and prints it as YAML that -s of the other commands reads. Methods are {listed}.",
        epilog="Example: plancast plan llama3-70b dgx-h100:16 --tokens 2T --for torchtitan "
        "--launch out/",
    )
    parser.add_argument(
        "nouns", nargs="*", metavar="MODEL MACHINE", help="the same as -m MODEL -c MACHINE"
    )
    plan_question.add_arguments(parser)
    parser.add_argument(
        "--method", metavar="NAME", help=f"a planner of trees: {', '.join(METHODS)}"
    )
    parser.add_argument(
        "--mesh", type=_mesh, metavar="AxB", help="of intra-op: ranks of its axes (default: best)"
    )
    parser.add_argument("--zero", type=int, metavar="N", help="of intra-op: stage of ZeRO")
    parser.add_argument(
        "--accum", type=opts.positive, metavar="N", help="micro-batches of a rank in turn"
    )
    parser.add_argument(
        "--sizes", type=_sizes, metavar="N,N", help="of auto-config: micro-batches to try"
    )
    parser.add_argument(
        "--samples",
        type=_sizes,
        metavar="N,N",
        help="of inter-op: micro-batches to try, samples on all ranks of dp together",
    )
    parser.add_argument(
        "--recompute", metavar="WHAT", help="of auto-config: what runs again (default full)"
    )
    parser.add_argument("--space", metavar="SPACE", help="of grid: which plans, as for rank")
    parser.add_argument(
        "--start",
        metavar="STRATEGY",
        help="of local-search and memory: where it begins (default: of the grid)",
    )
    parser.add_argument(
        "--memory", type=_gib, metavar="GIB", help="of memory: what of a device may be used"
    )
    parser.add_argument(
        "--forecasts", type=opts.positive, metavar="N", help="of local-search: trees to try"
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="of local-search: which walk (default 0)"
    )
    parser.add_argument("--out", metavar="FILE", help="write the tree to a .yaml file, too")
    opts.add_report(parser)
    opts.add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the subcommand."""
    plan_question.take_nouns(options)
    if options.method is not None:
        return _run_method(options)
    from plancast.errors import InputError

    for name in sorted({one for _, names in METHODS.values() for one in names} - {"space"}):
        if getattr(options, name) is not None:
            method = next(m for m, (_, names) in METHODS.items() if name in names)
            raise InputError(f"--{name} is of planners of trees; add `--method {method}`.")
    return plan_question.run(options)


def _run_method(options: argparse.Namespace) -> int:
    """A tree, by one of the planners."""
    from plancast import arguments, files
    from plancast.errors import InputError

    method = options.method
    if method not in METHODS:
        raise InputError(f"no method `{method}`.{arguments.offer(method, METHODS)}")
    takes = METHODS[method][1]
    for name in sorted({one for _, names in METHODS.values() for one in names} - set(takes)):
        if getattr(options, name) is not None:
            owners = [other for other, (_, names) in METHODS.items() if name in names]
            raise InputError(
                f"method `{method}` takes no --{name}; {arguments.listed(owners)} "
                f"{'does' if len(owners) == 1 else 'do'}."
            )
    _check_for_method(options)
    files.check_writable(options.out, (".yaml", ".yml"))
    model, machine = opts.load_model(options), opts.load_machine(options.cluster, options)
    asked = {name: getattr(options, name) for name in takes if getattr(options, name) is not None}
    plan = _plan(method, model, machine, options, asked)
    if options.out is not None:
        files.write_text(options.out, str(plan))
    if options.json:
        answers.print_json(plan.to_dict())
    else:
        print("\n".join(f"# {line}" for line in _facts(plan)))
        print(str(plan), end="")
    return 0 if plan.forecast is None or plan.forecast.fits else answers.NOTHING_FITS


def _check_for_method(options: argparse.Namespace) -> None:
    """Raises InputError for what a method needs and for what it does not take."""
    from plancast.errors import InputError

    if options.batch is None:
        raise InputError("a planner needs the batch; add --batch N (samples per step).")
    for name, value in plan_question.own(options).items():
        if value is not None:
            raise InputError(f"{name} is of `plancast plan` without --method; leave one out.")


def _plan(
    method: str, model: Model, machine: Machine, options: argparse.Namespace, asked: dict[str, Any]
) -> Plan:
    common = {"batch": options.batch, "dtype": str(options.dtype), "profile": str(options.profile)}
    if method == "intra-op":
        from plancast.planners.intra_op import plan_intra_op

        return plan_intra_op(model, machine, **common, **asked)
    if method == "inter-op":
        from plancast.planners.inter_op import plan_inter_op

        return plan_inter_op(model, machine, **common, **asked)
    if method == "bisection":
        from plancast.planners.bisection import recursive_bisection

        return recursive_bisection(model, machine, **common, **asked)
    if method == "auto-config":
        from plancast.planners.auto_config import auto_config

        return auto_config(model, machine, **common, **asked)
    if method == "local-search":
        from plancast.planners.local_search import local_search
        from plancast.strategy import Strategy

        if "start" in asked:
            asked = {**asked, "start": Strategy.open(asked["start"])}
        return local_search(model, machine, **common, **asked)
    if method == "memory":
        from plancast.planners.memory_budget import plan_memory

        return plan_memory(model, machine, **common, **asked)
    from plancast.planners.grid import best_of_grid

    return best_of_grid(model, machine, **common, **asked)


def _facts(plan: Plan) -> list[str]:
    from plancast.textual import duration, gib

    count = f"{plan.objective:,.0f}" if plan.unit == "bytes" else f"{plan.objective:.6g}"
    what = f"{count} {plan.unit}".rstrip()
    lines = [f"method {plan.method}: its objective is {what}"]
    forecast = plan.forecast
    if forecast is not None:
        fit = "fits" if forecast.fits else "does not fit"
        lines.append(
            f"forecast: {duration(forecast.iteration_time)} an iteration of "
            f"{forecast.global_batch} samples, {gib(forecast.peak_memory)} GiB, {fit}"
        )
    return [*lines, *plan.remarks]


def _mesh(text: str) -> list[int]:
    parts = text.lower().split("x")
    if not all(part.isdecimal() and len(part) < 8 for part in parts):
        raise argparse.ArgumentTypeError(f"`{text}` is no mesh; write 8 or 2x4")
    return [int(part) for part in parts]


def _gib(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of GiB; write 60") from None


def _sizes(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.isdecimal() and 0 < len(part) < 8 for part in parts):
        raise argparse.ArgumentTypeError(f"`{text}` are no sizes; write 1,2,4")
    return [int(part) for part in parts]
