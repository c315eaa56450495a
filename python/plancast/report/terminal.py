"""Printing of tables: nothing in a name moves the cursor, colours a line or is a tag."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from plancast.textual import shown


class Terminal(Console):
    """A console that shows control characters escaped and reads no markup in text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """As rich's, with text escaped before it is broken into lines."""
        if isinstance(renderable, Text) and shown(renderable.plain) != renderable.plain:
            renderable = renderable.copy()
            renderable.plain = shown(renderable.plain)
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else shown(segment.text)
            yield segment if text == segment.text else Segment(text, segment.style)
