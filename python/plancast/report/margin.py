"""Names in a margin, and words beside them, however long."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from plancast.accuracy.report.fitted_table import WrappedText


class Beside(WrappedText):
    """Words that wrap beside a name in a margin of so many columns."""

    def __init__(self, name: str, value: str, style: str = "", *, margin: int) -> None:
        super().__init__(value, indent=margin, style=style)
        self._name, self._margin = name, margin

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        name = Text(f"{self._name:<{self._margin}}", style="dim")
        for line in super().__rich_console__(console, options):
            if isinstance(line, Text):
                yield name + line[self._margin :]
                name = Text(" " * self._margin)
