"""A validation as a Markdown page, for documentation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from plancast.textual import change, percent

if TYPE_CHECKING:
    from plancast.validation.scoreboard import Scoreboard

_WORST = 20


def scoreboard_markdown(board: Scoreboard) -> str:
    """The scores of a validation; times are seconds per iteration."""
    predicted = len(board.results) - sum(board.unsupported.values())
    parts = [
        "# Accuracy",
        f"{len(board.results)} measured rows read, {predicted} predicted, "
        f"{len(board.scored)} with a measured time. Error = forecast / measurement − 1. "
        "The last column is the mean absolute error that the best constant MFU of each source "
        "reaches on it.",
        "## Iteration time by source",
        _sources(board),
        "## Order of plans for one job",
        "Groups are alternative plans for one job. Regret: how much slower than the best plan "
        "the one is that the forecasts would pick.",
        _groups(board),
        "## Memory",
        _table(
            ("", "said to fit", "said not to fit"),
            (
                ("ran", board.oom["true_fit"], board.oom["false_oom"]),
                ("out of memory", board.oom["false_fit"], board.oom["true_oom"]),
            ),
        ),
        "## Rows that are farthest off",
        _table(
            ("row", "strategy", "measured", "forecast", "error"),
            (
                (
                    result.row.row_id,
                    f"`{result.row.strategy}`",
                    f"{result.measured:.3g}",
                    f"{result.predicted:.3g}",
                    change(result.error or 0.0),
                )
                for result in board.worst(_WORST)
            ),
        ),
        "## Rows without a forecast",
        _table(
            ("rows", "reason"),
            ((number, reason) for reason, number in board.unsupported.most_common()),
        ),
    ]
    parts += [f"Warning: {warning}" for warning in board.warnings]
    return "\n\n".join(parts) + "\n"


def _sources(board: Scoreboard) -> str:
    names = ("mape", "bias", "median", "p90", "max")
    rows: list[Sequence[object]] = [
        (
            source,
            int(scores["rows"]),
            *(_score(name, scores[name]) for name in names),
            percent(scores["constant_mfu_mape"]),
        )
        for source, scores in sorted(board.sources.items())
    ]
    for label, key in (("**all rows**", "row_weighted"), ("**all sources**", "source_weighted")):
        scores = board.overall[key]
        if scores:
            count = int(scores.get("rows", scores.get("sources", 0)))
            rows.append((label, count, *(_score(name, scores[name]) for name in names), ""))
    return _table(("source", "rows", "MAPE", "bias", "median", "p90", "max", "constant MFU"), rows)


def _score(name: str, value: float) -> str:
    return change(value) if name == "bias" else percent(value)


def _groups(board: Scoreboard) -> str:
    ordered = sorted(board.groups.items(), key=lambda item: -item[1]["rows"])
    return _table(
        ("group", "plans", "Spearman", "Kendall", "regret"),
        (
            (
                group.replace("|", " "),
                scores["rows"],
                _correlation(scores["spearman"]),
                _correlation(scores["kendall"]),
                percent(scores["regret"]),
            )
            for group, scores in ordered
        ),
    )


def _correlation(value: float | None) -> str:
    return "ties" if value is None else f"{value:.2f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |")
    return "\n".join(lines)
