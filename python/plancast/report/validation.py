"""Rich tables of a validation."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from plancast.report.tables import PART_LABELS
from plancast.textual import change, duration, percent

if TYPE_CHECKING:
    from plancast.validation.predict_row import RowResult
    from plancast.validation.scoreboard import Scoreboard

_WORST = 12
_LONGEST_REASON = 120


def scoreboard_tables(board: Scoreboard) -> RenderableType:
    """Sources, order of plans, memory, worst rows, and what was not predicted."""
    parts: list[RenderableType] = [_sources(board)]
    if board.groups:
        parts.append(_groups(board))
    parts.append(_memory(board))
    if board.scored:
        parts.append(_worst(board))
    parts += _not_predicted(board)
    parts += [Text(f"warning: {warning}", style="yellow") for warning in board.warnings]
    return Group(*parts)


def _table(title: str, *columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    table.add_column(columns[0], no_wrap=True)
    for column in columns[1:]:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _sources(board: Scoreboard) -> Table:
    table = _table(
        "Iteration time: forecast against measurement",
        "source", "rows", "MAPE", "bias", "median", "p90", "max", "best constant MFU",
    )  # fmt: skip
    for source, scores in sorted(board.sources.items()):
        better = scores["mape"] < scores["constant_mfu_mape"]
        table.add_row(
            source,
            str(int(scores["rows"])),
            Text(percent(scores["mape"]), style="green" if better else "yellow"),
            change(scores["bias"]),
            percent(scores["median"]),
            percent(scores["p90"]),
            percent(scores["max"]),
            percent(scores["constant_mfu_mape"]),
        )
    for label, scores in (
        ("all rows", board.overall["row_weighted"]),
        ("all sources", board.overall["source_weighted"]),
    ):
        if not scores:
            continue
        if label == "all rows":
            table.add_section()
        table.add_row(
            label,
            str(int(scores.get("rows", scores.get("sources", 0)))),
            percent(scores["mape"]),
            change(scores["bias"]),
            *(percent(scores[name]) for name in ("median", "p90", "max")),
            "",
            style="bold",
        )
    return table


def _groups(board: Scoreboard) -> Table:
    table = _table("Order of plans for one job", "group", "plans", "Spearman", "Kendall", "regret")
    for group, scores in sorted(board.groups.items(), key=lambda item: -item[1]["rows"]):
        table.add_row(
            Text(group, overflow="ellipsis"),
            str(scores["rows"]),
            _correlation(scores["spearman"]),
            _correlation(scores["kendall"]),
            percent(scores["regret"]),
        )
    return table


def _correlation(value: float | None) -> str:
    return "ties" if value is None else f"{value:.2f}"


def _memory(board: Scoreboard) -> Table:
    table = _table("Memory", "", "said to fit", "said not to fit")
    oom = board.oom
    table.add_row("ran", str(oom["true_fit"]), str(oom["false_oom"]))
    table.add_row("out of memory", str(oom["false_fit"]), str(oom["true_oom"]))
    return table


def _worst(board: Scoreboard) -> Table:
    table = _table("Farthest off", "row", "measured", "forecast", "error")
    table.add_column("largest parts")
    for result in board.worst(_WORST):
        table.add_row(
            result.row.row_id,
            duration(result.measured or 0.0),
            duration(result.predicted or 0.0),
            change(result.error or 0.0),
            _largest_parts(result),
        )
    return table


def _largest_parts(result: RowResult) -> str:
    parts = sorted((result.breakdown or {}).items(), key=lambda item: -item[1])[:3]
    total = result.predicted or 1.0
    return ", ".join(f"{PART_LABELS[part][0]} {percent(s / total, 0)}" for part, s in parts)


def _shorten(reason: str) -> str:
    return reason if len(reason) <= _LONGEST_REASON else reason[: _LONGEST_REASON - 3] + "..."


def _not_predicted(board: Scoreboard) -> list[RenderableType]:
    lines: list[RenderableType] = []
    total = sum(board.unsupported.values())
    predicted = len(board.results) - total
    lines.append(
        Text(
            f"{len(board.results)} rows read, {predicted} predicted in {duration(board.seconds)}, "
            f"{total} not supported{':' if total else ''}"
        )
    )
    shortened: Counter[str] = Counter()
    for reason, number in board.unsupported.items():
        shortened[_shorten(reason)] += number
    for reason, number in shortened.most_common():
        lines.append(Text(f"  {number:>4}  {reason}", style="dim"))
    lines += [Text(f"skipped `{s.path}`: {s.reason}", style="dim") for s in board.skipped]
    return lines
