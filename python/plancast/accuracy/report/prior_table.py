"""What the levels of software do to forecasts of sources that they were not learned from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plancast.accuracy.validation.statistics import error_scores
from plancast.textual import change, percent

if TYPE_CHECKING:
    from plancast.accuracy.validation.leave_one_out import LeftOut
    from plancast.accuracy.validation.predict_row import RowResult
    from plancast.accuracy.validation.scoreboard import Scoreboard

COLUMNS = (
    "source",
    "rows",
    "MAPE simulated",
    "source left out",
    "as shipped",
    "bias simulated",
    "left out",
    "shipped",
)


@dataclass(frozen=True)
class _Errors:
    """forecast / measured - 1 of one row, three ways."""

    result: RowResult
    plain: float
    left_out: float
    shipped: float


def prior_rows(board: Scoreboard) -> list[Sequence[str]]:
    """Of each source and of kinds of models; none for fewer than four sources."""
    judged = board.intervals
    if judged is None:
        return []
    errors = [e for source in judged.sources for e in _errors(source, board)]
    kinds: list[tuple[str, Callable[[RowResult], bool]]] = [
        ("**dense transformers**", lambda r: bool(r.row.seq_len) and not r.row.experts),
        (
            "**without DeepSpeed's ZeRO-3**",
            lambda r: bool(r.row.seq_len) and not r.row.experts and not _early_zero3(r),
        ),
        ("**mixtures of experts**", lambda r: bool(r.row.experts)),
        ("**all rows**", lambda _: True),
    ]
    rows = [
        _scores(source.source, [e for e in errors if e.result.row.source == source.source])
        for source in judged.sources
    ]
    return rows + [
        _scores(name, found)
        for name, belongs in kinds
        if (found := [e for e in errors if belongs(e.result)])
    ]


def _early_zero3(result: RowResult) -> bool:
    """DeepSpeed's ZeRO-3 of 2021, which fetched parameters one by one and is not modelled."""
    return "DeepSpeed" in result.row.software and "zero=3" in result.strategy


def _errors(source: LeftOut, board: Scoreboard) -> list[_Errors]:
    results = [r for r in board.results if r.residual is not None and r.row.source == source.source]
    return [
        _Errors(result, math.expm1(-plain), math.expm1(-point[0]), result.error or 0.0)
        for result, plain, point in zip(results, source.plain, source.points, strict=True)
    ]


def _scores(name: str, errors: Sequence[_Errors]) -> Sequence[str]:
    ways = [
        error_scores([getattr(e, way) for e in errors]) for way in ("plain", "left_out", "shipped")
    ]
    return (
        name,
        str(len(errors)),
        *(percent(scores["mape"]) for scores in ways),
        *(change(scores["bias"]) for scores in ways),
    )
