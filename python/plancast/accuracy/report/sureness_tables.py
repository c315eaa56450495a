"""Tables of how sure forecasts are, and of what measured runs add to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from plancast.accuracy.report.prior_table import COLUMNS, prior_rows
from plancast.accuracy.report.score_table import ScoreTable
from plancast.textual import change, percent

if TYPE_CHECKING:
    from plancast.accuracy.validation.scoreboard import Scoreboard


def sureness_tables(board: Scoreboard) -> list[ScoreTable]:
    """In the order of pages."""
    return [
        _levels(board),
        _learning(board),
        _intervals(board),
        _narrowed(board),
        _scales(board),
        _pairs(board),
    ]


def _levels(board: Scoreboard) -> ScoreTable:
    return ScoreTable(
        "levels",
        "What runs take beyond their kernels",
        "Errors of what is simulated; with the levels that all other sources tell; and as "
        "shipped, with those of all sources.",
        COLUMNS,
        prior_rows(board),
    )


def _learning(board: Scoreboard) -> ScoreTable:
    return ScoreTable(
        "learning",
        "Learning from runs",
        "Mean errors of plans that were not run, before and after some were (random choices of "
        "them), of the same job or of whatever dense model under one software on one GPU; levels "
        "of software are those that all other sources tell. Regret: by how much the plan that "
        "would be chosen takes longer than the best of those not run. In hindsight: what the best "
        "factor of a job or set would leave, known from all of its runs.",
        (
            "source",
            "of",
            "runs learned from",
            "jobs",
            "before",
            "after",
            "in hindsight",
            "regret before",
            "regret after",
        ),
        [
            (
                c.source,
                c.scope,
                str(c.runs),
                str(c.jobs),
                percent(c.before),
                percent(c.after),
                percent(c.hindsight),
                "" if c.regret_before is None else percent(c.regret_before),
                "" if c.regret_after is None else percent(c.regret_after),
            )
            for c in board.learning
        ],
    )


def _intervals(board: Scoreboard) -> ScoreTable:
    judged = board.intervals
    rows: list[Sequence[str]] = []
    if judged is not None:
        rows = [
            (
                s.source,
                str(s.rows),
                percent(s.coverage, 0),
                percent(s.half_width),
                percent(s.mape),
                f"{s.ratio:.2f}",
                f"{s.best_ratio:.2f}",
            )
            for s in judged.sources
        ]
        rows.append(
            (
                "**all sources**",
                str(len(judged.sources)),
                percent(judged.source_coverage, 0),
                percent(judged.half_width),
                percent(judged.mape),
                f"{judged.half_width / judged.mape:.2f}",
                "",
            )
        )
        rows.append(
            ("**all rows**", str(len(board.residuals)), percent(judged.coverage, 0), *[""] * 4)
        )
    return ScoreTable(
        "intervals",
        "90 % intervals, each source left out",
        "The widths are fitted to all other sources. Inside: share of the rows within. Half-width "
        "is the median, relative to the forecast; the last column is the narrowest interval "
        "around the forecasts that would have held 80 % of the rows, known only afterwards, over "
        "the same mean error. As shipped, "
        f"{board.covered} of {len(board.scored)} measurements are within.",
        ("source", "rows", "inside", "half-width", "MAPE", "half-width / MAPE", "narrowest / MAPE"),
        rows,
    )


def _narrowed(board: Scoreboard) -> ScoreTable:
    judged = board.intervals
    widths = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
    return ScoreTable(
        "narrowed",
        "The same intervals, narrower",
        "What narrower intervals would hold, and of how many sources the half-width would then "
        "be at most 1.5 times the mean error.",
        ("times as wide", "rows inside", "mean of sources", "narrow sources"),
        [
            (
                f"{n.times:.1f}",
                percent(n.coverage, 0),
                percent(n.source_coverage, 0),
                f"{n.narrow} of {len(judged.sources)}",
            )
            for n in map(judged.narrowed, widths)
        ]
        if judged
        else [],
    )


def _scales(board: Scoreboard) -> ScoreTable:
    from plancast.accuracy.validation.uncertainty import Scales

    judged = board.intervals
    names = [f.name for f in fields(Scales)]
    rows: list[Sequence[str]] = []
    if judged is not None:
        rows = [
            ("**all sources**", *(f"{getattr(judged.scales, n):.3f}" for n in names)),
            *(
                (f"without {source}", *(change(values[n], 0) for n in names))
                for source, values in judged.changes().items()
            ),
        ]
    return ScoreTable(
        "scales",
        "Scales of uncertainty, and what leaving out a source changes",
        "No coefficient of a kernel or link is fitted to runs; these scales are.",
        ("", *(n.replace("_", " ") for n in names)),
        rows,
    )


def _pairs(board: Scoreboard) -> ScoreTable:
    return ScoreTable(
        "pairs",
        "Which of two plans is faster",
        "All pairs of plans of one job, by the probability that `plancast compare` states for "
        "the one that it calls faster.",
        ("stated", "pairs", "mean stated", "was faster"),
        [
            (
                f"{percent(p.low, 0)} to {percent(p.high, 0)}",
                str(p.pairs),
                percent(p.stated),
                percent(p.true),
            )
            for p in board.pairs
        ],
    )
