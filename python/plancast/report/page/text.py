"""A page of what a command prints, and pictures: for answers that have no page of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plancast.report.html import to_html
from plancast.report.page.frame import Page, Part, Raw, Section, script_json

if TYPE_CHECKING:
    from rich.console import RenderableType


def text_page(
    title: str,
    answer: RenderableType,
    fields: Any,
    command: str = "",
    pictures: Sequence[str] = (),
) -> Page:
    """The answer as a terminal shows it; `pictures` are SVG, `fields` what --json prints."""
    parts: list[Part] = [Raw(f'<figure class="picture">{picture}</figure>') for picture in pictures]
    parts.append(Raw(f'<div class="scroll printed">{to_html(answer)}</div>'))
    return Page(
        title=title,
        sections=[Section("The answer", parts, "answer")],
        command=command,
        files={"answer.json": script_json(fields).replace("\\u003c", "<")},
    )
