"""Forecasts in notebooks: the same tables, as self-contained HTML."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import RenderableType

from plancast import files
from plancast.report.terminal import Terminal
from plancast.textual import html

if TYPE_CHECKING:
    from plancast.forecast import Forecast

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


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title>
<style>body {{ background: #fff; color: #222; margin: 2em; font: 14px sans-serif }}</style></head>
<body><h1>{title}</h1>
{body}
</body></html>
"""


def write_report(path: str | Path, title: str, renderable: RenderableType) -> None:
    """Writes tables as one self-contained HTML page; nothing in it is loaded from elsewhere."""
    files.write_text(path, _PAGE.format(title=html(title), body=to_html(renderable)))


def forecast_html(forecast: Forecast) -> str:
    """The tables of a forecast."""
    from plancast.report.tables import forecast_tables

    return to_html(forecast_tables(forecast))
