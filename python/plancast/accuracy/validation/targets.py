"""What the forecasts of published runs are meant to reach, and whether they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from plancast.accuracy.validation.data_files import read_yaml
from plancast.accuracy.validation.fitting_plans import oom_table
from plancast.accuracy.validation.learning_curve import ALL, JOB, SOFTWARE
from plancast.accuracy.validation.predict_row import RowResult
from plancast.accuracy.validation.slices import by_property
from plancast.accuracy.validation.statistics import error_scores

if TYPE_CHECKING:
    from plancast.accuracy.validation.scoreboard import Scoreboard


@dataclass(frozen=True)
class Verdict:
    """A target beside the figure; `detail` names what decides where several are judged."""

    text: str
    figure: float
    at_least: float | None
    at_most: float | None
    detail: str = ""
    is_ratio: bool = False  # not a share, as errors are

    @property
    def met(self) -> bool:
        """Whether the figure is within the target."""
        above = self.at_least is None or self.figure >= self.at_least
        return above and (self.at_most is None or self.figure <= self.at_most)


def verdicts(board: Scoreboard) -> list[Verdict]:
    """The targets whose rows are there, in the order of targets.yaml."""
    out = []
    for target in _targets():
        found = _SCORES[target["score"]](board, target.get("rows", {}))
        if found is None:
            continue
        figure, detail = found
        out.append(
            Verdict(
                target["text"],
                figure,
                target.get("at_least"),
                target.get("at_most"),
                detail,
                target["score"] == "spearman",
            )
        )
    return out


_Found = tuple[float, str] | None


def _rows(board: Scoreboard, choice: dict[str, str]) -> list[RowResult]:
    lacks = choice.get("strategy_lacks", "\0")
    return [
        r
        for r in board.scored
        if r.row.source == choice["source"] and lacks not in r.row.strategy.split(",")
    ]


def _error_score(name: str) -> Callable[[Scoreboard, dict[str, str]], _Found]:
    def score(board: Scoreboard, choice: dict[str, str]) -> _Found:
        rows = _rows(board, choice)
        if not rows:
            return None
        if "by" in choice:
            parts = by_property(rows, choice["by"])
            worst = max(parts, key=lambda value: abs(parts[value][name]))
            return abs(parts[worst][name]), f"{choice['by']}={worst}"
        return abs(error_scores([r.error or 0.0 for r in rows])[name]), ""

    return score


def _group_score(name: str, worst: Callable[..., Any]) -> Any:
    def score(board: Scoreboard, choice: dict[str, str]) -> _Found:
        groups = {r.row.group for r in _rows(board, choice)} & set(board.groups)
        values = {g: board.groups[g][name] for g in groups if board.groups[g][name] is not None}
        if not values:
            return None
        which = worst(sorted(values), key=lambda g: values[g])
        return values[which], which.split("|")[1] if "|" in which else which

    return score


def _memory(board: Scoreboard, choice: dict[str, str]) -> _Found:
    """Rows that print what the framework allocated, or one source of them."""
    rows = [
        r
        for r in board.results
        if r.memory_error is not None
        and (r.row.source == choice["source"] if "source" in choice else r.prints_allocated)
    ]
    if not rows:
        return None
    return error_scores([r.memory_error or 0.0 for r in rows])["mape"], f"{len(rows)} rows"


def _verdicts_of(board: Scoreboard, choice: dict[str, str]) -> dict[str, int]:
    return oom_table(r for r in board.results if r.row.source == choice["source"])


def _balanced_verdicts(board: Scoreboard, choice: dict[str, str]) -> _Found:
    t = _verdicts_of(board, choice)
    ran, out = t["true_fit"] + t["false_oom"], t["true_oom"] + t["false_fit"]
    if not ran or not out:
        return None
    return (t["true_fit"] / ran + t["true_oom"] / out) / 2, f"{ran + out} rows"


def _false_fits(board: Scoreboard, choice: dict[str, str]) -> _Found:
    t = _verdicts_of(board, choice)
    said = t["true_fit"] + t["false_fit"]
    return (t["false_fit"] / said, f"{t['false_fit']} of {said} said to fit") if said else None


def _layers(board: Scoreboard, _: dict[str, str]) -> _Found:
    errors = [abs(e) for layer in board.layers for e in layer.errors or ()]
    return (sum(errors) / len(errors), "forward and backward") if errors else None


def _coverage(board: Scoreboard, _: dict[str, str]) -> _Found:
    return (board.intervals.coverage, "all rows") if board.intervals else None


def _narrow_sources(board: Scoreboard, _: dict[str, str]) -> _Found:
    if board.intervals is None:
        return None
    narrow, sources = board.intervals.narrowed(1.0).narrow, len(board.intervals.sources)
    return narrow / sources, f"{narrow} of {sources} sources"


def _scale_change(board: Scoreboard, _: dict[str, str]) -> _Found:
    if board.intervals is None:
        return None
    found: Sequence[tuple[float, str]] = [
        (abs(change), f"{scale} without {source}")
        for source, scales in board.intervals.changes().items()
        for scale, change in scales.items()
    ]
    return max(found)


def _learned(board: Scoreboard, choice: dict[str, str]) -> _Found:
    """The mean error once so many runs were learned from, over all jobs or all software."""
    scope = {"job": JOB, "software": SOFTWARE}[choice["of"]]
    for c in board.learning:
        if (c.source, c.scope, str(c.runs)) == (ALL, scope, choice["runs"]):
            return c.after, f"{c.jobs} {'jobs' if scope == JOB else 'sets of runs'}"
    return None


def _learned_harm(board: Scoreboard, _: dict[str, str]) -> _Found:
    """By how much learning makes a source worse at most."""
    found = [
        (c.after - c.before, f"{c.source}, {c.scope}, from {c.runs}")
        for c in board.learning
        if c.source != ALL
    ]
    return max(found) if found else None


def _learned_regret(board: Scoreboard, _: dict[str, str]) -> _Found:
    """By how much learning makes the choice of a plan worse, on average."""
    found = [
        (c.regret_after - c.regret_before, f"from {c.runs}")
        for c in board.learning
        if c.source == ALL and c.regret_after is not None and c.regret_before is not None
    ]
    return max(found) if found else None


_SCORES: dict[str, Callable[[Scoreboard, dict[str, str]], _Found]] = {
    "mape": _error_score("mape"),
    "bias": _error_score("bias"),
    "median": _error_score("median"),
    "spearman": _group_score("spearman", min),
    "regret": _group_score("regret", max),
    "layers": _layers,
    "memory": _memory,
    "verdicts": _balanced_verdicts,
    "false_fits": _false_fits,
    "coverage": _coverage,
    "narrow_sources": _narrow_sources,
    "scale_change": _scale_change,
    "learned": _learned,
    "learned_harm": _learned_harm,
    "learned_regret": _learned_regret,
}


@cache
def _targets() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = read_yaml("targets.yaml")
    return entries
