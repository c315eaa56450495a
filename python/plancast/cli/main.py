"""Entry point: parses the line, runs one subcommand, turns errors into exit codes.

Exit codes: 0 fine; 2 bad input, with one line that says what and where; 3 only
with --require-fit when the plan does not fit.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from plancast.cli import calibrate, compare, compile, predict, rank, validate

_SUBCOMMANDS = (predict, rank, compare, validate, compile, calibrate)
_PLANNED = ("size", "collective", "profile", "cluster", "run", "import", "export")


class UsageError(Exception):
    """A command line that cannot be understood."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}. `{self.prog} --help` shows the options.")


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command."""
    parser = _Parser(
        prog="plancast",
        description="Forecasts what a parallel training plan will do before anyone owns the "
        "hardware.",
        epilog="Example: plancast predict -m gpt3-175b -c dgx-a100-80g:8 "
        "-s tp=8,pp=8,vpp=3,mb=1,recompute=full --batch 64",
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(metavar="COMMAND", parser_class=_Parser, dest="command")
    for module in _SUBCOMMANDS:
        module.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; gives the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(arguments)
    except UsageError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        print("plancast: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader went away (`| head`); nothing is left to say to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        from plancast.errors import InputError

        if isinstance(error, InputError):
            return _fail(str(error))
        if os.environ.get("PLANCAST_TRACEBACK"):
            raise
        print(
            f"plancast: a defect of plancast: {type(error).__name__}: {_one_line(str(error))}. "
            "PLANCAST_TRACEBACK=1 shows where; please report it.",
            file=sys.stderr,
        )
        return 1


def _run(arguments: list[str]) -> int:
    parser = build_parser()
    _check_command(arguments)
    options = parser.parse_args(arguments)
    if options.version:
        from plancast import __version__

        print(f"plancast {__version__}")
        return 0
    if options.command is None:
        parser.print_help()
        return 0
    code: int = options.run(options)
    sys.stdout.flush()
    return code


def _check_command(arguments: list[str]) -> None:
    if not arguments or arguments[0].startswith("-"):
        return
    names = [module.__name__.rpartition(".")[2] for module in _SUBCOMMANDS]
    name = arguments[0]
    if name in names:
        return
    if name in _PLANNED:
        raise UsageError(f"not supported yet: command `{name}`")
    import difflib

    near = difflib.get_close_matches(name, names, 1)
    hint = f" Did you mean `{near[0]}`?" if near else ""
    listed = ", ".join(f"`{known}`" for known in names)
    raise UsageError(f"no command `{name}`; there are {listed}.{hint}")


def _fail(message: str) -> int:
    print(f"plancast: {_one_line(message)}", file=sys.stderr)
    return 2


def _one_line(message: str) -> str:
    return " ".join(message.split())


if __name__ == "__main__":
    sys.exit(main())
