"""The frame of all pages: one file that needs no network, light and dark, for screen and paper."""

from __future__ import annotations

import base64
import csv
import gzip
import importlib.util
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

from plancast import files
from plancast.errors import InputError
from plancast.textual import escaped, html

# What a browser may do with a page: run what is in it, load nothing from elsewhere.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' blob:; style-src 'unsafe-inline'; "
    "img-src data: blob:"
)


class Part(Protocol):
    """Something of a section."""

    def html(self, page: Page) -> str:
        """Its markup; what its scripts need is left with the page."""
        ...


# Letters of a word that may be broken where a table is narrow.
_LONG = 22


def breakable(text: str) -> str:
    """Markup of a text whose long words, as those of plans are, break behind their commas.

    >>> breakable("a,b"), breakable("dp=64,tp=8,pp=4,zero=1,mb=1")
    ('a,b', 'dp=64,<wbr>tp=8,<wbr>pp=4,<wbr>zero=1,<wbr>mb=1')
    """
    words = [
        html(word).replace(",", ",<wbr>") if len(word) > _LONG else html(word)
        for word in text.split(" ")
    ]
    return _coded(" ".join(words))


# A word that is to be typed, or is a name, in text for a terminal.
_TYPED = re.compile(r"`([^`]+)`")


def _coded(markup: str) -> str:
    return _TYPED.sub(r"<code>\1</code>", markup)


def spoken(text: str) -> str:
    """Markup of a sentence, in which what is to be typed stands between backticks.

    >>> spoken("`-s` is a < b")
    '<code>-s</code> is a &lt; b'
    """
    return _coded(html(text))


@dataclass(frozen=True)
class Card:
    """A figure of the answer: `tone` is good, bad or empty."""

    label: str
    value: str
    more: str = ""
    tone: str = ""

    def html(self) -> str:
        """Its markup."""
        more = f"<small>{breakable(self.more)}</small>" if self.more else ""
        return (
            f'<div class="card {self.tone}"><span>{breakable(self.label)}</span>'
            f"<b>{html(self.value)}</b>{more}</div>"
        )


@dataclass(frozen=True)
class Raw:
    """Markup that is safe already."""

    markup: str

    def html(self, page: Page) -> str:
        """Its markup."""
        return self.markup


@dataclass(frozen=True)
class Words:
    """A paragraph."""

    text: str
    kind: str = ""

    def html(self, page: Page) -> str:
        """Its markup."""
        return f'<p class="{self.kind}">{spoken(self.text)}</p>'


@dataclass(frozen=True)
class Chart:
    """A figure of plotly, or several of which one is shown, by the words of a menu."""

    title: str
    figures: Mapping[str, dict[str, Any]]
    note: str = ""
    menu: str = "of"

    @classmethod
    def of(cls, title: str, figure: dict[str, Any], note: str = "") -> Chart:
        """A single figure."""
        return cls(title, {"": figure}, note)

    def html(self, page: Page) -> str:
        """A place of the right height, which page.js fills."""
        key = f"chart{len(page.charts)}"
        page.charts[key] = [*self.figures.values()]
        height = max(f["layout"].get("height", 320) for f in self.figures.values())
        menu = ""
        if len(self.figures) > 1:
            options = "".join(f"<option>{html(name)}</option>" for name in self.figures)
            menu = (
                f'<label class="menu">{html(self.menu)} <select data-chart="{key}">{options}'
                "</select></label>"
            )
        note = f'<p class="note">{spoken(self.note)}</p>' if self.note else ""
        return (
            f"<figure><figcaption>{html(self.title)}{menu}</figcaption>{note}"
            f'<div class="chart" id="{key}" style="height:{height}px" role="img" '
            f'aria-label="{html(self.title)}"></div></figure>'
        )


@dataclass(frozen=True)
class Table:
    """A plain table; columns that are no `words` (by position) stand at the right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: Sequence[int] = (0,)
    bars: Sequence[float] = ()  # shares, drawn behind the first cell of each row

    def html(self, page: Page) -> str:
        """Its markup."""
        heads = "".join(
            f"<th{'' if i in self.words else ' class=n'}>{html(c)}</th>"
            for i, c in enumerate(self.columns)
        )
        body = []
        for at, row in enumerate(self.rows):
            cells = []
            for i, cell in enumerate(row):
                bar = ""
                if i == 0 and self.bars:
                    width = 100 * max(0.0, min(1.0, self.bars[at]))
                    bar = f'<i class="bar" style="width:{width:.1f}%"></i>'
                kinds = [] if i in self.words else ["n"]
                if any(len(word) > _LONG for word in cell.split()):
                    kinds.append("long")
                kind = f' class="{" ".join(kinds)}"' if kinds else ""
                cells.append(f"<td{kind}>{bar}{breakable(cell)}</td>")
            body.append(f"<tr>{''.join(cells)}</tr>")
        return (
            f'<div class="scroll"><table><thead><tr>{heads}</tr></thead>'
            f"<tbody>{''.join(body)}</tbody></table></div>"
        )


@dataclass
class Section:
    """A heading and what is below it."""

    title: str
    parts: list[Part] = field(default_factory=list)
    key: str = ""


@dataclass
class Page:
    """One answer; `render` makes the file.

    `files` are what can be saved from the page, by name; `data` is for scripts of the page's own,
    which are named in `scripts` (files in assets/).
    """

    title: str
    subtitle: str = ""
    facts: Sequence[str] = ()
    chosen: Sequence[str] = ()
    cards: Sequence[Card] = ()
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()
    sections: list[Section] = field(default_factory=list)
    command: str = ""
    files: dict[str, str] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    scripts: Sequence[str] = ()
    charts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def render(self) -> str:
        """The whole file."""
        check_library()
        self.charts = {}
        body = [self._head()]
        if self.cards:
            body.append(f'<div class="cards">{"".join(c.html() for c in self.cards)}</div>')
        body += [f'<p class="warning">{spoken(text)}</p>' for text in self.warnings]
        for section in self.sections:
            key = section.key or section.title.lower().replace(" ", "-")
            inner = "\n".join(part.html(self) for part in section.parts)
            body.append(
                f'<section id="{html(key)}"><h2>{html(section.title)}</h2>\n{inner}</section>'
            )
        if self.notes:
            items = "".join(f"<li>{spoken(text)}</li>" for text in self.notes)
            body.append(f'<section id="notes"><h2>Notes</h2><ul>{items}</ul></section>')
        body.append(self._foot())
        data = {"charts": self.charts, "files": self.files, **self.data}
        library = _library() if self.charts or self.scripts else ""  # what draws, where any does
        scripts = "\n".join(asset(name) for name in ("page.js", *self.scripts))
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{html(self.title)}</title>\n<style>\n{asset('page.css')}</style>\n</head>\n"
            f"<body>\n<main>\n{chr(10).join(body)}\n</main>\n"
            f'<script type="application/json" id="data">{script_json(data)}</script>\n'
            f"<script>\n{scripts}</script>\n"
            f'<script type="text/plain" id="library">{library}</script>\n'
            "<script>plancast.start();</script>\n</body>\n</html>\n"
        )

    def _head(self) -> str:
        facts = "".join(f"<li>{html(fact)}</li>" for fact in self.facts)
        more = ""
        if self.chosen:
            items = "".join(f"<li>{html(fact)}</li>" for fact in self.chosen)
            more = (
                f'<details class="facts-more"><summary>{len(self.chosen)} choices that the plan '
                f'left open</summary><ul class="facts">{items}</ul></details>'
            )
        return (
            f"<header><div><h1>{html(self.title)}</h1>"
            f'<p class="plan">{breakable(self.subtitle)}</p>'
            f'<ul class="facts">{facts}</ul>{more}</div>'
            '<button id="theme" title="automatic, light or dark">automatic</button></header>'
            "<noscript><p class=warning>Charts of this page are drawn by scripts in it, which "
            "this browser does not run.</p></noscript>"
        )

    def _foot(self) -> str:
        parts = []
        if self.command:
            parts.append(
                f'<section id="command"><h2>To repeat it</h2><pre id="line">{html(self.command)}'
                '</pre><button id="copy">copy</button></section>'
            )
        buttons = "".join(
            f'<button class="save" data-file="{html(name)}">{html(name)}</button>'
            for name in self.files
        )
        parts.append(
            f'<section id="saved"><h2>The data</h2><p>In this file: {buttons}'
            '<button id="print">print</button></p></section>'
        )
        return "\n".join(parts)


def check_library() -> None:
    """Raises InputError where what draws the charts is not installed."""
    if importlib.util.find_spec("plotly") is None:
        raise InputError("the page's charts need plotly. Run `pip install 'plancast[report]'`.")


def write_page(path: str | Path, page: Page) -> None:
    """Writes a page as one file."""
    files.write_text(path, page.render())


def asset(name: str) -> str:
    """The text of a file in assets/."""
    return resources.files("plancast.report.page").joinpath("assets", name).read_text("utf-8")


@cache
def _library() -> str:
    """The charting library, packed: a page with it is 2 MB, not 5."""
    packed = gzip.compress(
        resources.files("plotly").joinpath("package_data", "plotly.min.js").read_bytes(), 6, mtime=0
    )
    return base64.b64encode(packed).decode("ascii")


def script_json(value: Any) -> str:
    """JSON that may stand in a script element: nothing in it ends the element.

    >>> script_json({"a": "</script>"})
    '{"a":"\\\\u003c/script>"}'
    """
    text = json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return escaped(text.replace("<", "\\u003c"), lambda one: f"\\u{ord(one):04x}")


def _finite(value: Any) -> Any:
    """What JSON has no word for becomes null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows as comma-separated values.

    >>> csv_text(["a", "b"], [[1, "x,y"]])
    'a,b\\n1,"x,y"\\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
