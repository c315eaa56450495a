"""`plancast plan` without a method: the one question."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from plancast.cli import answers, interrupt
from plancast.cli import options as opts
from plancast.cli.adapter_options import add_lora, nodes_of
from plancast.cli.launch_options import Default
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.choice import Choice
    from plancast.machine import Machine
    from plancast.model import Model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the question takes."""
    opts.add_model(parser, required=False)
    opts.add_cuda_graphs(parser)
    opts.add_types(parser)
    opts.add_machine(parser, required=False)
    add_lora(parser)
    opts.add_batch(parser)
    add_framework(parser)
    parser.add_argument(
        "--tokens",
        metavar="N",
        help="how long, for days and dollars: 300B, 15T; samples of models without sequences",
    )
    parser.add_argument(
        "--price",
        metavar="USD",
        help="dollars per GPU-hour, or on-demand (default), reserved, spot",
    )
    opts.add_knowledge(parser)


def add_framework(parser: argparse.ArgumentParser) -> None:
    """--for, --launch."""
    parser.add_argument(
        "--for",
        dest="target",
        metavar="FRAMEWORK",
        help="keep to what it can run: megatron, torchtitan, deepspeed, fsdp or composer",
    )
    parser.add_argument(
        "--launch", metavar="PATH", help="write its argument file into a folder/, or as a file"
    )


def take_nouns(options: argparse.Namespace) -> None:
    """Puts the words without an option where -m and -c would have put them."""
    from plancast.machine import Machine
    from plancast.models import presets

    nouns = list(options.nouns)
    swapped = len(nouns) == 2 and presets.is_machine(nouns[0]) and not presets.is_machine(nouns[1])
    if swapped:
        nouns.reverse()
    if len(nouns) == 1 and options.model is None and presets.is_machine(nouns[0]):
        nouns = ["", *nouns]
    for name in ("model", "cluster"):
        if getattr(options, name) is None and nouns:
            word = nouns.pop(0)
            setattr(options, name, word or None)
    if nouns:
        raise InputError(
            f"`{nouns[0]}` is one word too many; write `plancast plan MODEL MACHINE` and options."
        )
    missing = [
        f"{what}, such as `{such}`"
        for what, such, value in (
            ("a model", "llama3-8b", options.model),
            ("a machine", "dgx-h100:2", options.cluster),
        )
        if value is None
    ]
    if missing:
        raise InputError(
            f"`plancast plan` needs {', and '.join(missing)}. Write `plancast plan MODEL MACHINE`; "
            "`plancast list models` and `plancast list machines` have their names."
        )
    if options.cluster in Machine.presets():
        options.cluster = f"{options.cluster}:1"
        answers.remark(options, f"note: no number of hosts is given: `{options.cluster}`")


def own(options: argparse.Namespace) -> dict[str, Any]:
    """Options of the question that planners of trees do not take, as given."""
    return {
        "--for": options.target,
        "--lora": options.lora,
        "--launch": options.launch,
        "--tokens": options.tokens,
        "--price": options.price,
        "--report": options.report,
    }


def choose(
    options: argparse.Namespace, model: Model, machine: Machine, *, partial: bool = False
) -> Choice:
    """The answer that the options ask for; `partial`: if Ctrl-C stops it, the best until then."""
    from plancast.choice import plan

    profile = None if isinstance(options.profile, Default) else options.profile
    return plan(
        model,
        machine,
        framework=getattr(options, "target", None),
        batch=options.batch,
        **{"tokens" if model.seq > 0 else "samples": getattr(options, "tokens", None)},
        price=getattr(options, "price", None) or "on-demand",
        space=getattr(options, "space", None) or "",
        dtype=None if isinstance(options.dtype, Default) else str(options.dtype),
        profile=profile,
        cuda_graphs=options.cuda_graphs,
        nodes=nodes_of(options),
        session=opts.load_session(options),
        partial=partial,
        **opts.types_of(options),
    )


def run(options: argparse.Namespace) -> int:
    """Answers the question."""
    from plancast import files
    from plancast.frameworks import commands
    from plancast.frameworks.formats import framework_name

    answers.check_page(options.report)
    files.check_writable(options.out, (".yaml", ".yml"))
    if options.target is not None:
        framework_name(options.target)
    if options.launch is not None:
        commands.check(options.target or "megatron", options.launch)
    if options.price is not None and options.tokens is None:
        raise InputError("--price is of a whole run; add --tokens, such as `--tokens 1T`.")
    model, machine = opts.load_model(options), opts.load_machine(options.cluster, options)
    with interrupt.answers_first():
        choice = choose(options, model, machine, partial=True)
        return _answer(options, choice)


def _answer(options: argparse.Namespace, choice: Choice) -> int:
    """Writes what was asked for. If Ctrl-C is pressed, all that is quickly done."""
    from plancast import files
    from plancast.report.page.choice import choice_page
    from plancast.strategy import Strategy

    best = choice.best
    with interrupt.held() as waiting:
        if best is not None and options.launch is not None:
            choice = choice.write_launch(options.launch)
        if best is not None and options.out is not None:
            tree = best.plan if isinstance(best.plan, Strategy) else Strategy.parse(best.plan)
            files.write_text(options.out, tree.to_yaml())
    stopped = choice.stopped or waiting.pressed
    try:
        if not stopped:
            answers.report(options, lambda command: choice_page(choice, command))
    except KeyboardInterrupt as error:
        if type(error) is not KeyboardInterrupt:
            raise
        stopped = True
    if stopped and options.report is not None:
        answers.remark(options, f"stopped, so `{options.report}` was not written")
    with interrupt.held() as waiting:
        answers.show(options, choice, choice.to_dict)
    if stopped or waiting.pressed:
        return interrupt.status_of(KeyboardInterrupt())
    return answers.NOTHING_FITS if best is None else 0
