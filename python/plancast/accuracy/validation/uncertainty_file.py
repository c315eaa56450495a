"""Writes the fitted uncertainty as the text proto that forecasts read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import fields

from plancast.accuracy.validation.levels import Levels
from plancast.accuracy.validation.predict_row import RowResult
from plancast.accuracy.validation.uncertainty import Scales

_HEAD = """# proto-file: proto/uncertainty.proto
# proto-message: plancast.proto.Uncertainty
"""


def uncertainty_text(
    scales: Scales,
    levels: Levels,
    results: Sequence[RowResult],
    *,
    data: str,
    command: str,
    date: str,
) -> str:
    """uncertainty.textproto (planner/uncertainty/data) of rows with measurement and forecast."""
    scored = [r for r in results if r.residual is not None]
    lines = [
        f"data: {_quoted(data)}",
        f"command: {_quoted(command)}",
        f"date: {_quoted(date)}",
        f"rows: {len(scored)}",
        f"sources: {len({r.row.source for r in scored})}",
        *(f"{f.name}: {getattr(scales, f.name):.4g}" for f in fields(Scales)),
        f"level: {levels.all:.4g}",
        *(_lineage(name, levels) for name in sorted(levels.lineages)),
    ]
    by_profile: dict[str, list[RowResult]] = defaultdict(list)
    for result in scored:
        assert result.terms is not None
        by_profile[result.terms.profile].append(result)
    for profile in sorted(by_profile):
        lines += _software(profile, by_profile[profile], levels)
    return _HEAD + "\n".join(lines) + "\n"


def _lineage(name: str, levels: Levels) -> str:
    level, sources = levels.lineages[name], levels.sources[name]
    return f"lineage {{ name: {_quoted(name)} level: {level:.4g} sources: {sources} }}"


def _software(profile: str, results: Sequence[RowResult], levels: Levels) -> list[str]:
    plans = [_degrees(r.strategy) for r in results]
    return [
        "software {",
        f"  profile: {_quoted(profile)}",
        *(f"  source: {_quoted(s)}" for s in sorted({r.row.source for r in results})),
        f"  rows: {len(results)}",
        f"  level: {levels.profiles.get(profile, 0.0):.4g}",
        *(f"  device: {_quoted(d)}" for d in sorted({r.terms.device for r in results if r.terms})),
        f"  most_devices: {max(r.devices for r in results)}",
        *(f"  most_{k}: {max(p.get(k, 1) for p in plans)}" for k in ("tp", "pp", "cp", "ep")),
        f"  most_zero: {max(p.get('zero', 0) for p in plans)}",
        f"  longest_sequence: {max(r.row.seq_len or 0 for r in results)}",
        "}",
    ]


def _degrees(strategy: str) -> dict[str, int]:
    """The whole numbers of a short form.

    >>> _degrees("dp=2,sp,tp=8,attn=flash")
    {'dp': 2, 'tp': 8}
    """
    pairs = (item.partition("=") for item in strategy.split(","))
    return {key: int(value) for key, _, value in pairs if value.isdigit()}


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
