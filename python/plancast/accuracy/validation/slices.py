"""Scores by one property of the plans at a time: where errors come from."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from plancast.accuracy.validation.predict_row import RowResult
from plancast.accuracy.validation.statistics import error_scores


def _key(name: str, default: str = "1") -> Callable[[RowResult], str]:
    def value(result: RowResult) -> str:
        return _keys(result).get(name, default)

    return value


def _keys(result: RowResult) -> dict[str, str]:
    pairs = (item.partition("=") for item in result.strategy.split(","))
    return {key: value for key, _, value in pairs}


# Labels of sizes, and below how many billions of parameters each holds.
_SIZES = {"< 1B": 1, "1B to 5B": 5, "5B to 20B": 20, "20B to 100B": 100, "> 100B": math.inf}


def _size(result: RowResult) -> str:
    size = result.parameters / 1e9
    return next(label for label, limit in _SIZES.items() if size < limit)


def _of_terms(name: str) -> Callable[[RowResult], str]:
    return lambda result: str(getattr(result.terms, name, "?"))


# Property -> its value of a row.
PROPERTIES: dict[str, Callable[[RowResult], str]] = {
    "tp": _key("tp"),
    "pp": _key("pp"),
    "mb": _key("mb", "?"),
    "recompute": _key("recompute", "none"),
    "size": _size,
    "gpu": _of_terms("device"),
    "profile": _of_terms("profile"),
}
TITLES = {
    "tp": "tensor parallelism",
    "pp": "pipeline stages",
    "mb": "micro-batch",
    "recompute": "recomputation",
    "size": "parameters",
    "gpu": "GPU",
    "profile": "software profile",
}


def slices(results: Sequence[RowResult]) -> dict[str, dict[str, dict[str, Any]]]:
    """Property -> value -> rows and scores, values in their order."""
    return {name: by_property(results, name) for name in PROPERTIES}


def by_property(results: Sequence[RowResult], name: str) -> dict[str, dict[str, Any]]:
    """Scores of the rows with a measurement, by one property."""
    table: dict[str, list[RowResult]] = defaultdict(list)
    for result in results:
        if result.error is not None:
            table[PROPERTIES[name](result)].append(result)
    return {
        value: {"rows": len(table[value]), **error_scores([r.error or 0.0 for r in table[value]])}
        for value in sorted(table, key=_order)
    }


def _order(value: str) -> tuple[int, float, str]:
    if value in _SIZES:
        return 0, _SIZES[value], value
    return (0, float(value), value) if value.isdigit() else (1, 0.0, value)
