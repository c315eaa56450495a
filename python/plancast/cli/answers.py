"""What commands answer with: tables, JSON, pages, and remarks behind them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any

# The exit code where the answer is that nothing fits, or does what is asked.
NOTHING_FITS = 3
# Columns of output that nobody looks at.
_UNBOUNDED = 100_000


def check_outputs(*paths: str | None, report: str | None = None) -> None:
    """Raises InputError for files that cannot be written, before any work is done."""
    from plancast.files import check_writable

    for path in paths:
        check_writable(path)
    check_writable(report, (".html", ".htm"))


def check_page(report: str | None) -> None:
    """Raises InputError where a page that draws cannot be written."""
    from plancast.report.page.frame import check_library

    check_outputs(report=report)
    if report is not None:
        check_library()


def said_command(options: argparse.Namespace) -> str:
    """The command line, to be run again."""
    import shlex

    return shlex.join(["plancast", *getattr(options, "typed", ())])


def answer_page(
    options: argparse.Namespace,
    page: Callable[[str], Any],
    shown: Any,
    fields: Callable[[], Any],
) -> None:
    """The page that --report asks for, made by `page` of the command line; then what is `shown`,
    or `fields()` as JSON with --json.
    """
    report(options, page)
    show(options, shown, fields)


def report(options: argparse.Namespace, page: Callable[[str], Any]) -> None:
    """The page that --report asks for."""
    if options.report is not None:
        from plancast.report.page.frame import write_page

        write_page(options.report, page(said_command(options)))


def show(options: argparse.Namespace, shown: Any, fields: Callable[[], Any]) -> None:
    """What is `shown`, or `fields()` as JSON with --json."""
    if options.json:
        print_json(fields())
    else:
        print_rich(shown)


def remark(options: argparse.Namespace, text: str) -> None:
    """What is told behind the result, once."""
    options.remarks = [*dict.fromkeys([*getattr(options, "remarks", []), text])]


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """One JSON document on stdout."""
    import json

    from plancast.textual import escaped

    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    # What a terminal would obey, as JSON writes it: outside strings there is none.
    print(escaped(text, lambda character: f"\\u{ord(character):04x}"))


def print_rich(*renderables: Any) -> None:
    """Tables on stdout, as wide as the terminal or $COLUMNS; in a pipe, as they are."""
    from plancast.report.terminal import Terminal

    said = os.environ.get("COLUMNS", "")
    width = int(said) if said.isdecimal() and 0 < int(said) < _UNBOUNDED else None
    if width is None and not sys.stdout.isatty():
        width = _UNBOUNDED
    console = Terminal(width=width, soft_wrap=False, file=getattr(sys.stdout, "plain", sys.stdout))
    for renderable in renderables:
        console.print(renderable, crop=False)
