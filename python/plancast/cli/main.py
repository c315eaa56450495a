"""Entry point: parses the line, runs one subcommand, turns errors into exit codes.

Exit codes: 0 fine; 2 bad input, with one line that says what and where; 3 only
with --require-fit when the plan does not fit.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import itertools
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from plancast.cli import (
    calibrate,
    cluster,
    collective,
    compare,
    compile,
    completion,
    doctor,
    explain,
    export,
    gradients,
    import_,
    learn,
    list_,
    plan,
    predict,
    profile,
    rank,
    records,
    run,
    show,
    size,
    spot,
    streams,
    train,
    ui,
    validate,
)
from plancast.cli.interrupt import status_of, stops_at_once

_SUBCOMMANDS = (
    plan,
    predict,
    rank,
    compare,
    explain,
    train,
    size,
    spot,
    validate,
    ui,
    learn,
    compile,
    calibrate,
    collective,
    cluster,
    gradients,
    records,
    profile,
    run,
    import_,
    export,
    list_,
    show,
    doctor,
    completion,
)
# Of files the writer says the name; these are of standard output, which has none.
_UNWRITABLE = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO)
_WORD, _LINE = 240, 2000
# A part of a plan, as `mb=1` or `sp`.
_PART = re.compile(r"[a-z_]+=[\w:+.|*-]+|sp")
# Formats that people look for in `plancast import` and what there is instead.
_MODELS = ("hf", "huggingface", "transformers", "torch", "pytorch", "onnx", "keras", "model")
_LAUNCHERS = ("megatron", "megatron-core", "torchtitan", "deepspeed", "fsdp", "accelerate")
_OF_FRAMEWORKS = {
    "plancast import": " `plancast import launch FILE` says what settings of {} mean",
    "plancast export": " `plancast export launch {0} -m MODEL ...` writes settings of {0}",
}
# Options that people look for and what there is instead.
_ADAPTERS = ("--lora", "--qlora", "--peft")
_INSTEAD = {
    "--gpus": "How many GPUs there are is part of the machine: `-c dgx-h100:2x4`.",
    "--hosts": "How many hosts there are is part of the machine: `-c dgx-h100:2`.",
}


class UsageError(Exception):
    """A command line that cannot be understood."""


class _Parser(argparse.ArgumentParser):
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        # argparse would keep the last of two values without a word.
        seen = set()
        for word in args or ():
            action = self._option_string_actions.get(word.partition("=")[0])
            if isinstance(action, argparse._StoreAction):
                if action in seen:
                    self.error(f"{'/'.join(action.option_strings)} is given twice")
                seen.add(action)
        return super().parse_known_args(args, namespace)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        from plancast.arguments import offer

        if action.option_strings:
            what = f"{'/'.join(action.option_strings)} is not `{value}`"
        else:
            what = f"no {str(action.metavar).lower()} `{value}`"
        self.error(f"{what}.{_instead(self.prog, value) or offer(value, action.choices)}")

    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith(("?", ".")) else "."
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction) and action.required:
                missing = f"the following arguments are required: {action.metavar}"
                if message == missing:
                    from plancast.arguments import listed

                    kind = str(action.metavar).lower()
                    message = f"`{self.prog}` needs its {kind}: {listed(action.choices)}"
        raise UsageError(f"{message}{end} `{self.prog} --help` shows the options.")


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command."""
    parser = _Parser(
        prog="plancast",
        description="Forecasts what a parallel training plan will do before anyone owns the "
        "hardware.",
        epilog="Example: plancast plan llama3-70b dgx-h100:16 --tokens 2T",
    )
    parser.add_argument("-V", "--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(metavar="COMMAND", parser_class=_Parser, dest="command")
    for module in _SUBCOMMANDS:
        module.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; gives the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    with streams.escaped():
        return _answer(arguments)


def _answer(arguments: list[str]) -> int:
    try:
        return _run(arguments)
    except UsageError as error:
        return _fail(str(error))
    except KeyboardInterrupt as error:
        return _stopped(error)
    except BrokenPipeError:
        # The reader of a pipe that a file was written to went away; that is its right.
        return 0
    except Exception as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # while the core was loaded
            return _stopped(error.__cause__)
        from plancast.errors import InputError

        if isinstance(error, InputError):
            return _fail(str(error))
        if isinstance(error, OSError) and error.filename is None and error.errno in _UNWRITABLE:
            return _fail(f"standard output cannot be written: {error.strerror}.")
        if isinstance(error, MemoryError):
            return _fail("this needs more memory than there is. Narrow the plan or the space.")
        if os.environ.get("PLANCAST_TRACEBACK"):
            raise
        print(
            f"plancast: a defect of plancast: {type(error).__name__}: {_one_line(str(error))}. "
            "PLANCAST_TRACEBACK=1 shows where; please report it.",
            file=sys.stderr,
        )
        return 1


def _stopped(error: KeyboardInterrupt) -> int:
    # Python ends by the signal if it came in code made from text, as of a dataclass, however it
    # was handled; running other such code has it forget that.
    exec("")
    print("plancast: stopped", file=sys.stderr)
    return status_of(error)


def _run(arguments: list[str]) -> int:
    parser = build_parser()
    _check_command(arguments)
    _check_nouns(arguments, parser)
    options, rest = parser.parse_known_args(arguments)
    if rest:
        _check_spaces(rest, options)
        _refuse(rest, parser, options.command)
    if options.version:
        from plancast import __version__

        print(f"plancast {__version__}")
        return 0
    if options.command is None:
        parser.print_help()
        return 0
    options.parser = parser
    options.typed = arguments
    with stops_at_once():
        code: int = options.run(options)
    sys.stdout.flush()
    for remark in getattr(options, "remarks", ()):
        print(f"plancast: {_one_line(remark)}", file=sys.stderr)
    return code


def _check_nouns(arguments: list[str], parser: argparse.ArgumentParser) -> None:
    """Says where names of models and machines go if they come without their options."""
    command = arguments[0] if arguments else ""
    if "-m" not in _options_of(parser, command) or command == "plan":
        return
    words = list(itertools.takewhile(lambda word: not word.startswith("-"), arguments[1:]))
    if not words or len(words) > 2:
        return
    from plancast.models import presets

    taken = [("-c" if presets.is_machine(word) else "-m", word) for word in words]
    if not any(presets.is_machine(word) or presets.is_transformer(word) for word in words):
        return
    typed = " ".join(f"{option} {word}" for option, word in taken)
    raise UsageError(f"`{words[0]}` needs its option. Write `plancast {command} {typed}`.")


def _check_spaces(rest: list[str], options: argparse.Namespace) -> None:
    """Says how a plan is written if its parts stand apart."""
    plan = getattr(options, "strategy", None)
    said = plan[-1] if isinstance(plan, list) and plan else plan
    if isinstance(said, str) and all(_PART.fullmatch(word.strip(",")) for word in rest):
        parts = ",".join(word.strip(",") for word in (said, *rest))
        raise UsageError(f"the parts of a plan are joined by commas. Write `-s {parts}`.")


def _instead(prog: str, word: str) -> str:
    """What to type instead of a format that is none."""
    if prog == "plancast import" and word.lower() in _MODELS:
        return (
            " Models are not imported but named: `-m meta-llama/Llama-3.1-8B`, a config.json, .pt2 "
            "or .onnx file, as in `plancast predict -m config.json -c dgx-h100`"
        )
    if word.lower() in _LAUNCHERS and prog in _OF_FRAMEWORKS:
        return _OF_FRAMEWORKS[prog].format(word.lower())
    return ""


def _refuse(rest: list[str], parser: argparse.ArgumentParser, command: str | None) -> NoReturn:
    """Says what to type instead of words that no option takes."""
    from plancast.arguments import near

    name = f"plancast {command}" if command else "plancast"
    word = next((word for word in rest if word.startswith("-")), rest[0])
    option = word.partition("=")[0]
    if not option.startswith("-"):
        raise UsageError(f"`{word}` is not understood. `{name} --help` shows the options.")
    known = _options_of(parser, command)
    if option in _ADAPTERS:
        from plancast.strategy_words import adapters

        if "--lora" in known:
            typed = "16:nf4" if option == "--qlora" else "16"
            raise UsageError(f"no option `{option}`. Write `--lora {typed}`.")
        taker = "predict" if command is None or "-s" in known else command
        raise UsageError(f"no option `{option}`. {adapters(option, taker)}")
    if option in _INSTEAD:
        raise UsageError(f"no option `{option}`. {_INSTEAD[option]}")
    hint = near(option.lstrip("-"), [one.lstrip("-") for one in known if one.startswith("--")])
    hint = hint.replace("`", "`--", 1)
    raise UsageError(f"no option `{option}`.{hint} `{name} --help` shows the options.")


def _options_of(parser: argparse.ArgumentParser, command: str | None) -> list[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and command in action.choices:
            return list(action.choices[command]._option_string_actions)
    return list(parser._option_string_actions)


def _check_command(arguments: list[str]) -> None:
    if not arguments or arguments[0].startswith("-"):
        return
    names = [module.__name__.rpartition(".")[2].rstrip("_") for module in _SUBCOMMANDS]
    name = arguments[0]
    if name in names:
        return
    from plancast.arguments import offer

    raise UsageError(f"no command `{name}`.{offer(name, names)} `plancast --help` lists all.")


def _fail(message: str) -> int:
    with contextlib.suppress(OSError):  # nobody can read standard error
        print(f"plancast: {_one_line(message)}", file=sys.stderr, flush=True)
    return 2


def _one_line(message: str) -> str:
    """The message on one line that a terminal can show: no endless word, no control character."""
    words = (f"{w[:_WORD]}...{w[-8:]}" if len(w) > _WORD + 8 else w for w in message.split())
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in " ".join(words))
    return line if len(line) <= _LINE else f"{line[:_LINE]}..."


if __name__ == "__main__":
    sys.exit(main())
