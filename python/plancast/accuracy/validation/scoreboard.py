"""The result of a validation."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from plancast.accuracy.validation.ablation import ablation_scores
from plancast.accuracy.validation.fitting_plans import oom_table
from plancast.accuracy.validation.layers import LayerResult
from plancast.accuracy.validation.learning_curve import Learning, learning_curve
from plancast.accuracy.validation.leave_one_out import LeaveOneOut, leave_one_out
from plancast.accuracy.validation.pairs import StatedProbability, stated_probabilities
from plancast.accuracy.validation.predict_row import RowResult
from plancast.accuracy.validation.residuals import Residual
from plancast.accuracy.validation.rows import Skipped
from plancast.accuracy.validation.slices import slices
from plancast.accuracy.validation.statistics import (
    best_constant_mape,
    error_scores,
    group_scores,
    regret,
)
from plancast.cached import cached_property
from plancast.shown import Shown

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class Scoreboard(Shown):
    """Rows beside their forecasts, and the scores."""

    results: tuple[RowResult, ...]
    skipped: tuple[Skipped, ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    layers: tuple[LayerResult, ...] = ()
    what_if: str = ""  # the changes of RowResult.changed
    learn: tuple[int, ...] = ()  # of how many runs of a job `learning` is

    @cached_property
    def scored(self) -> list[RowResult]:
        """Rows with both a measurement and a forecast."""
        return [result for result in self.results if result.error is not None]

    @cached_property
    def residuals(self) -> list[Residual]:
        """What the scored rows say of the errors of forecasts."""
        return [r.residual for r in self.results if r.residual is not None]

    @cached_property
    def intervals(self) -> LeaveOneOut | None:
        """The intervals with each source left out; None for fewer than four sources."""
        if len({r.source for r in self.residuals}) < 4:
            return None
        return leave_one_out(self.residuals)

    @cached_property
    def learning(self) -> list[Learning]:
        """Errors of a job's plans once some runs were learned from, if asked for."""
        return [c for runs in self.learn for c in learning_curve(self.results, runs)]

    @cached_property
    def sources(self) -> dict[str, dict[str, float]]:
        """Scores by source."""
        return {
            source: {
                "rows": len(results),
                **error_scores([_error(result) for result in results]),
                "constant_mfu_mape": _constant_mfu(results),
            }
            for source, results in _by(self.scored, lambda r: r.row.source).items()
        }

    @cached_property
    def groups(self) -> dict[str, dict[str, Any]]:
        """How well the alternative plans of one job are ordered, two measured plans or more."""
        return {
            group: {
                **group_scores([r.predicted or 0.0 for r in results], measured),
                "constant_mfu_regret": _regret([r.ideal_s for r in results], measured),
                "constant_hfu_regret": _regret([r.executed_s for r in results], measured),
            }
            for group, results in _by(self.scored, lambda r: r.row.group).items()
            for measured in [[r.measured or 0.0 for r in results]]
            if group and len(results) >= 2
        }

    @cached_property
    def oom(self) -> dict[str, int]:
        """Memory forecasts against runs: `false_fit` = said to fit and did not."""
        return oom_table(self.results)

    @cached_property
    def overall(self) -> dict[str, dict[str, float]]:
        """All rows alike, and all sources alike."""
        if not self.scored:
            return {"row_weighted": {}, "source_weighted": {}}
        names = ("mape", "bias", "median", "p90", "max")
        rows = {"rows": float(len(self.scored)), **error_scores([_error(r) for r in self.scored])}
        count = len(self.sources)
        sources = {
            name: sum(scores[name] for scores in self.sources.values()) / count for name in names
        }
        return {"row_weighted": rows, "source_weighted": {"sources": float(count), **sources}}

    @cached_property
    def memory(self) -> dict[str, dict[str, float]]:
        """Printed peak memory against the forecast in the row's own meaning, by source."""
        measured = [r for r in self.results if r.memory_error is not None]
        return {
            source: {
                "rows": len(results),
                **error_scores([r.memory_error or 0.0 for r in results]),
            }
            for source, results in _by(measured, lambda r: r.row.source).items()
        }

    @cached_property
    def uncalibrated(self) -> dict[str, dict[str, float]]:
        """Scores by source of what data sheets alone say; empty unless asked for."""
        asked = [r for r in self.scored if r.uncalibrated is not None]
        return {
            source: {
                "rows": len(results),
                **error_scores(
                    [(r.uncalibrated or 0.0) / (r.measured or 1.0) - 1 for r in results]
                ),
            }
            for source, results in _by(asked, lambda r: r.row.source).items()
        }

    @cached_property
    def changed(self) -> dict[str, dict[str, float]]:
        """Scores with the changes of `what_if`, by source and of `all rows`; empty without.

        Fields as of ablation_scores: `altered` rows take another time, `as_is` is the mean
        error of forecasts as they are.
        """
        if not self.what_if:
            return {}
        asked = [r for r in self.scored if r.changed is not None]
        sources = _by(asked, lambda r: r.row.source)
        scores = {source: ablation_scores([results]) for source, results in sources.items()}
        return {**scores, "all rows": ablation_scores(sources.values())} if asked else {}

    @cached_property
    def slices(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Scores by one property of the plans at a time."""
        return slices(self.scored)

    @cached_property
    def pairs(self) -> list[StatedProbability]:
        """Whether plans that are called faster are, as often as said."""
        if self.intervals is None:
            return []
        groups = _by([r for r in self.scored if r.row.group], lambda r: r.row.group)
        return stated_probabilities(groups.values(), self.intervals.scales)

    @property
    def covered(self) -> int:
        """Rows whose measurement lies in the interval that their forecast came with."""
        return sum(
            r.interval is not None and r.interval[0] <= (r.measured or 0.0) <= r.interval[1]
            for r in self.scored
        )

    @property
    def unsupported(self) -> Counter[str]:
        """Reasons why rows have no forecast."""
        return Counter(r.unsupported for r in self.results if r.unsupported is not None)

    def worst(self, number: int) -> list[RowResult]:
        """The rows that are farthest off."""
        return sorted(self.scored, key=lambda r: -abs(_error(r)))[:number]

    def to_dict(self) -> dict[str, Any]:
        """The fields of `plancast validate --json`."""
        return {
            "rows": [result.to_dict() for result in self.results],
            "sources": self.sources,
            "groups": self.groups,
            "oom": self.oom,
            "overall": self.overall,
            "memory": self.memory,
            "slices": self.slices,
            "intervals": self.intervals.to_dict() if self.intervals else None,
            "uncalibrated": self.uncalibrated,
            **({"learning": [asdict(c) for c in self.learning]} if self.learn else {}),
            **({"what_if": self.what_if, "changed": self.changed} if self.what_if else {}),
            "layers": [layer.to_dict() for layer in self.layers],
            "skipped": [{"path": s.path, "reason": s.reason} for s in self.skipped],
            "warnings": list(self.warnings),
        }

    def __rich__(self) -> RenderableType:
        from plancast.accuracy.report.validation import scoreboard_tables

        return scoreboard_tables(self)


def _by(
    results: Iterable[RowResult], key: Callable[[RowResult], str]
) -> dict[str, list[RowResult]]:
    table: dict[str, list[RowResult]] = defaultdict(list)
    for result in results:
        table[key(result)].append(result)
    return table


def _error(result: RowResult) -> float:
    assert result.error is not None
    return result.error


def _regret(ideal: list[float | None], measured: list[float]) -> float | None:
    """Of a ranking by FLOPs alone; None where a plan's are not known."""
    known = [time for time in ideal if time]
    return regret(known, measured) if len(known) == len(measured) else None


def _constant_mfu(results: list[RowResult]) -> float:
    pairs = [(r.ideal_s, r.measured) for r in results if r.ideal_s and r.measured]
    if not pairs:
        return float("nan")
    return best_constant_mape([ideal for ideal, _ in pairs], [t for _, t in pairs])
