"""The tables of a validation, as plain cells for any page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plancast.accuracy.report.score_table import ScoreTable
from plancast.accuracy.report.sureness_tables import sureness_tables
from plancast.report.tables import PART_LABELS
from plancast.textual import change, percent

if TYPE_CHECKING:
    from plancast.accuracy.validation.predict_row import RowResult
    from plancast.accuracy.validation.scoreboard import Scoreboard

_WORST = 20
_SCORES = ("mape", "bias", "median", "p90", "max")
_SCORE_HEADS = ("MAPE", "bias", "median", "p90", "max")


def score_tables(board: Scoreboard) -> list[ScoreTable]:
    """Every table that has rows, in the order of pages."""
    tables = [
        _targets(board),
        _sources(board),
        _changed(board),
        *_slices(board),
        _bias_by_source(board, "tp"),
        _bias_by_source(board, "pp"),
        _groups(board),
        _layers(board),
        *sureness_tables(board),
        _fits(board),
        _memory(board),
        _worst(board),
        _not_predicted(board),
    ]
    return [table for table in tables if table.rows]


def _targets(board: Scoreboard) -> ScoreTable:
    from plancast.accuracy.validation.targets import Verdict, verdicts

    def figure(v: Verdict, value: float) -> str:
        return f"{value:.3g}" if v.is_ratio else percent(value)

    def wanted(v: Verdict) -> str:
        parts = [f"≥ {figure(v, v.at_least)}"] if v.at_least is not None else []
        parts += [f"≤ {figure(v, v.at_most)}"] if v.at_most is not None else []
        return ", ".join(parts)

    return ScoreTable(
        "targets",
        "Targets",
        "Where a target is for the worst of several, the last column names it.",
        ("target", "wanted", "is", "met", "decided by"),
        [
            (v.text, wanted(v), figure(v, v.figure), "yes" if v.met else "**no**", v.detail)
            for v in verdicts(board)
        ],
        words=(3, 4),
    )


def _score_cells(scores: dict[str, Any]) -> list[str]:
    return [change(scores[n]) if n == "bias" else percent(scores[n]) for n in _SCORES]


def _sources(board: Scoreboard) -> ScoreTable:
    nominal = board.uncalibrated
    rows = [
        [
            source,
            str(int(scores["rows"])),
            *_score_cells(scores),
            percent(scores["constant_mfu_mape"]),
            *([percent(nominal[source]["mape"])] if nominal else []),
        ]
        for source, scores in sorted(board.sources.items())
    ]
    for label, key in (("**all rows**", "row_weighted"), ("**all sources**", "source_weighted")):
        scores = board.overall[key]
        if scores:
            count = int(scores.get("rows", scores.get("sources", 0)))
            rows.append([label, str(count), *_score_cells(scores), *[""] * (2 if nominal else 1)])
    return ScoreTable(
        "sources",
        "Iteration time by source",
        "Error = forecast / measurement − 1. Constant MFU: the mean error that the best constant "
        "MFU of each source reaches on it."
        + (
            " Data sheet: forecasts without any calibration, by nominal peaks and bandwidths."
            if nominal
            else ""
        ),
        (
            "source",
            "rows",
            *_SCORE_HEADS,
            "best constant MFU",
            *(["data sheet"] if nominal else []),
        ),
        rows,
    )


def _changed(board: Scoreboard) -> ScoreTable:
    return ScoreTable(
        "changed",
        f"What if {board.what_if}",
        "Mean error of the forecasts as they are, and with the changes; around the median of each "
        "source likewise.",
        ("source", "rows", "altered", "error", "changed", "bias", "around median", "changed"),
        [
            [
                f"**{source}**" if source == "all rows" else source,
                str(int(scores["rows"])),
                str(int(scores["altered"])),
                percent(scores["as_is"]),
                percent(scores["mape"]),
                change(scores["bias"]),
                percent(scores["spread_as_is"]),
                percent(scores["spread"]),
            ]
            for source, scores in sorted(board.changed.items(), key=lambda s: s[0] == "all rows")
        ],
    )


def _slices(board: Scoreboard) -> list[ScoreTable]:
    from plancast.accuracy.validation.slices import TITLES

    return [
        ScoreTable(
            f"by_{name}",
            f"By {TITLES[name]}",
            "",
            (name, "rows", *_SCORE_HEADS),
            [
                (value, str(scores["rows"]), *_score_cells(scores))
                for value, scores in values.items()
            ],
        )
        for name, values in board.slices.items()
    ]


def _bias_by_source(board: Scoreboard, name: str) -> ScoreTable:
    from plancast.accuracy.validation.slices import TITLES, by_property

    values = list(board.slices[name])
    rows = []
    for source in sorted(board.sources):
        parts = by_property([r for r in board.scored if r.row.source == source], name)
        cells = [
            f"{change(parts[v]['bias'])} ({parts[v]['rows']})" if v in parts else "" for v in values
        ]
        rows.append((source, *cells))
    return ScoreTable(
        f"{name}_by_source",
        f"Bias by source and {TITLES[name]}",
        "Mean signed error, and of how many rows.",
        ("source", *(f"{name}={v}" for v in values)),
        rows,
    )


def _groups(board: Scoreboard) -> ScoreTable:
    def correlation(value: float | None) -> str:
        return "ties" if value is None else f"{value:.2f}"

    ordered = sorted(board.groups.items(), key=lambda item: (-item[1]["rows"], item[0]))
    return ScoreTable(
        "groups",
        "Order of plans for one job",
        "Groups are alternative plans for one job. Regret: how much slower than the best plan "
        "the one is that the forecasts would pick. Constant MFU: that of a ranking by the model's "
        "FLOPs, which are the same for all plans of a job: the mean over them. Constant HFU: by "
        "the FLOPs that are executed, recomputation included: the mean over those with fewest.",
        ("group", "plans", "Spearman", "Kendall", "regret", "constant MFU", "constant HFU"),
        [
            (
                group.replace("|", " "),
                str(scores["rows"]),
                correlation(scores["spearman"]),
                correlation(scores["kendall"]),
                percent(scores["regret"]),
                *(
                    "" if scores[name] is None else percent(scores[name])
                    for name in ("constant_mfu_regret", "constant_hfu_regret")
                ),
            )
            for group, scores in ordered
        ],
    )


def _layers(board: Scoreboard) -> ScoreTable:
    rows = []
    for layer in board.layers:
        if layer.predicted is None or layer.errors is None:
            rows.append([layer.row_id, layer.plan, *[""] * 6, layer.unsupported or ""])
            continue
        cells = [layer.row_id, f"`{layer.plan}`"]
        for measured, predicted, error in zip(
            layer.measured, layer.predicted, layer.errors, strict=True
        ):
            cells += [f"{measured * 1e3:.2f}", f"{predicted * 1e3:.2f}", change(error)]
        rows.append(cells)
    return ScoreTable(
        "layers",
        "Times of one layer, milliseconds",
        "Backward contains recomputation. The forecast is the time from one layer to the next in "
        "the middle of a model.",
        ("row", "plan", "forward", "forecast", "error", "backward", "forecast", "error"),
        rows,
        words=(1,),
    )


def _fits(board: Scoreboard) -> ScoreTable:
    oom = board.oom
    rows = [
        ("ran", str(oom["true_fit"]), str(oom["false_oom"])),
        ("out of memory", str(oom["false_fit"]), str(oom["true_oom"])),
    ]
    return ScoreTable("fits", "Does it fit", "", ("", "said to fit", "said not to fit"), rows)


def _memory(board: Scoreboard) -> ScoreTable:
    return ScoreTable(
        "memory",
        "Peak memory by source",
        "In the row's own meaning: allocated, reserved, or what the device shows.",
        ("source", "rows", *_SCORE_HEADS),
        [
            (source, str(scores["rows"]), *_score_cells(scores))
            for source, scores in sorted(board.memory.items())
        ],
    )


def largest_parts(result: RowResult) -> str:
    """The three largest parts of the forecast with their shares."""
    parts = sorted((result.breakdown or {}).items(), key=lambda item: -item[1])[:3]
    total = result.predicted or 1.0
    return ", ".join(f"{PART_LABELS[part][0]} {percent(s / total, 0)}" for part, s in parts)


def _worst(board: Scoreboard) -> ScoreTable:
    return ScoreTable(
        "worst",
        "Rows that are farthest off",
        "Seconds per iteration.",
        ("row", "strategy", "measured", "forecast", "error", "largest parts"),
        [
            (
                result.row.row_id,
                f"`{result.row.strategy}`",
                f"{result.measured:.3g}",
                f"{result.predicted:.3g}",
                change(result.error or 0.0),
                largest_parts(result),
            )
            for result in board.worst(_WORST)
        ],
        words=(1, 5),
    )


def _not_predicted(board: Scoreboard) -> ScoreTable:
    reasons = [(str(number), reason) for reason, number in board.unsupported.most_common()]
    return ScoreTable(
        "unsupported",
        "Rows without a forecast",
        "",
        ("rows", "reason"),
        reasons or [("0", "every row has one")],
        words=(1,),
    )
