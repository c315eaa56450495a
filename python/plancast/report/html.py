"""Forecasts in notebooks: the same tables, as self-contained HTML."""

from __future__ import annotations

import io

from rich.console import RenderableType

from plancast.report.terminal import Terminal

_WIDTH = 150
_FRAME = (
    '<pre style="white-space:pre;overflow-x:auto;line-height:normal;'
    "font-family:Menlo,'DejaVu Sans Mono',consolas,monospace\">{code}</pre>"
)


def to_html(renderable: RenderableType) -> str:
    """Inline-styled HTML of anything rich can print."""
    console = Terminal(record=True, width=_WIDTH, file=io.StringIO())
    console.print(renderable)
    return console.export_html(inline_styles=True, code_format=_FRAME)
