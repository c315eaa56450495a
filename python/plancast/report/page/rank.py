"""The page of a ranking."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plancast.forecast_fields import usd_of
from plancast.report.page.figures import LABELS
from plancast.report.page.frame import Card, Page, Raw, Section, Words
from plancast.report.page.predict import mfu_beside
from plancast.report.remarks import NO_CHANGE, merged, place, setting
from plancast.textual import GIB, duration, gib, html, percent, ranges

if TYPE_CHECKING:
    from plancast.forecast import Forecast
    from plancast.ranking import Ranking

# Keys of short forms that come first; others follow where plans differ in them.
_FIRST = ("tp", "pp", "dp", "mb")
# Plans whose notes and warnings are said, as in the terminal.
_REMARKS_OF = 10
# Options of `rank` that `compare` does not have.
_OWN = (
    "--space", "--where", "--objective", "--top", "--out", "--workers", "--store", "--export",
    "--ray", "--for", "--launch", "--report",
)  # fmt: skip
_OWN_FLAGS = ("--json", "--all", "--pareto", "--resume")

_PLANS = (
    '<div class="filters" id="filters"></div><div id="plans-table"></div>'
    '<p class="note">Click a heading to sort by it. Select two plans to see what makes them '
    "differ.</p>"
)
_TRADE = (
    '<figure><figcaption>Time against <select id="against">{options}</select></figcaption>'
    '<div class="chart" id="tradeoff" style="height:430px" role="img" '
    'aria-label="time against memory or cost"></div></figure>'
    "<figure><figcaption>Every plan a line, the fastest sixth in blue, the slowest in red"
    "</figcaption>"
    '<div class="chart" id="parallel" style="height:420px" role="img" '
    'aria-label="parallel coordinates"></div></figure>'
)
_DIFFERENCE = (
    '<div id="difference"></div><div class="chart" id="difference-chart" role="img" '
    'aria-label="difference by part" hidden></div><pre id="compare-line" hidden></pre>'
)


def ranking_page(ranking: Ranking, command: str = "") -> Page:
    """Plans to sort, filter and select, their trade-offs, and what makes two of them differ."""
    plans = list(ranking)
    if not plans:
        return _nothing(ranking, command)
    first = plans[0]
    columns = plan_columns(plans)
    told = plans[:_REMARKS_OF]
    page = Page(
        title=f"Plans for {first.model} on {place(first)}",
        subtitle=f"best by {ranking.objective}: {first.strategy}",
        facts=[
            *(f"{name} {value}" for name, value in setting(first).items()),
            f"{ranking.evaluated:,} plans simulated in {duration(ranking.seconds)}",
        ],
        cards=_cards(ranking),
        warnings=_remarks([plan.warnings for plan in told]),
        notes=[
            *_remarks([plan.notes for plan in told]),
            f"Space: {ranking.space}.",
            *(f"{n:,} plans left out: {why}." for why, n in _largest_first(ranking.excluded)),
        ],
        command=command,
        scripts=("table.js", "rank.js"),
        files={"plans.csv": "", "plans.json": ""},
        data={"plans": columns, "words": _words(first, command)},
    )
    offered = [("memory", "memory"), ("usd", "cost"), ("kwh", "energy")]
    options = "".join(
        f'<option value="{key}">{html(word)}</option>'
        for key, word in offered
        if columns["measures"].get(key)
    )
    page.sections = [
        Section("Plans", [Raw(_PLANS)], "plans"),
        Section("Trade-offs", [Raw(_TRADE.format(options=options))], "trade-offs"),
        Section("Two plans", [Raw(_DIFFERENCE)], "two"),
    ]
    return page


def plan_columns(plans: Sequence[Forecast]) -> dict[str, Any]:
    """What scripts read: plans by column; parts and measures that no plan has are left out."""
    pairs = [plan_keys(plan) for plan in plans]
    names = list(dict.fromkeys([*_FIRST, *(name for one in pairs for name in one)]))
    keys = {}
    for name in names:
        values = [
            _number(one.get(name) or plan.chosen.get(name, ""))
            for one, plan in zip(pairs, plans, strict=True)
        ]
        if name in _FIRST or len(set(values)) > 1:
            keys[name] = values
    breakdowns = [plan.breakdown() for plan in plans]
    parts = {
        part: [_short(one[part]) for one in breakdowns]
        for part in breakdowns[0]
        if any(one[part] > 0 for one in breakdowns)
    }
    totals = [plan.iteration_time or 1.0 for plan in plans]
    cores = [plan._core for plan in plans]
    measures: dict[str, Any] = {
        "time": [_short(plan.iteration_time) for plan in plans],
        "memory": [plan.peak_memory for plan in plans],
        "mfu": [_short(plan.mfu) for plan in plans],
        "bubble": [
            _short(one["bubble"] / total) for one, total in zip(breakdowns, totals, strict=True)
        ],
        "exposed": [
            _short(sum(v for part, v in one.items() if part.startswith("exposed_")) / total)
            for one, total in zip(breakdowns, totals, strict=True)
        ],
        "rate": [_short(plan.units_per_s_per_gpu) for plan in plans],
        "usd": [_short(usd_of(*both) or 0.0) or None for both in zip(plans, cores, strict=True)],
        "kwh": [_short(core.kwh_per_iteration) or None for core in cores],
    }
    for name in ("usd", "kwh"):
        if None in measures[name]:
            measures[name] = None
    return {
        "strategy": [plan.strategy for plan in plans],
        "keys": keys,
        "parts": parts,
        "measures": measures,
    }


def plan_keys(plan: Forecast) -> dict[str, str]:
    """The short form by key; a word without a value is `1`."""
    words = (word.partition("=") for word in plan.strategy.split(",") if word)
    return {key: value if sign else "1" for key, sign, value in words}


def compare_command(command: str, profile: str = "") -> str:
    """The command that compares plans of a ranking, less the plans.

    Args:
      command: of the ranking.
      profile: that of its plans, where a framework was named instead.

    >>> compare_command("plancast rank -m a --space 'tp=1|2' --json --top=5 --batch 8")
    'plancast compare -m a --batch 8'
    >>> compare_command("plancast rank -m a --for fsdp --pareto", "fsdp")
    'plancast compare -m a --profile fsdp'
    """
    words, kept = shlex.split(command), list[str]()
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word.partition("=")[0] in _OWN:
            skip = "=" not in word
        elif word not in _OWN_FLAGS:
            kept.append("compare" if word == "rank" and len(kept) == 1 else word)
    named = any(word.partition("=")[0] in ("--for", "--launch") for word in words)
    if profile and named and "--profile" not in kept:
        kept += ["--profile", profile]
    return shlex.join(kept)


def _words(first: Forecast, command: str) -> dict[str, Any]:
    return {
        "parts": LABELS,
        "rate": "samples/s/GPU" if first.unit == "samples" else "tok/s/GPU",
        "rateField": f"{first.unit}_per_s_per_gpu",
        "capacity": first.memory_capacity / GIB,
        "compare": compare_command(command, first.profile) if command else "plancast compare",
    }


def _cards(ranking: Ranking) -> list[Card]:
    plans = list(ranking)
    first = plans[0]
    leanest = min(plans, key=lambda plan: plan.peak_memory)
    low, high = first.interval
    found = [
        Card("best plan", duration(first.iteration_time), first.strategy),
        Card("90 % between", duration(low), f"and {duration(high)}"),
        Card("MFU", percent(first.mfu), mfu_beside(first)),
        Card(
            "memory",
            f"{gib(first.peak_memory)} GiB",
            f"of {gib(first.memory_capacity)}; least of all {gib(leanest.peak_memory)}",
        ),
        Card(
            "plans that fit",
            f"{ranking.evaluated + ranking.bounded:,}",
            f"slowest of the {len(plans):,} listed {duration(_slowest(plans))}",
        ),
    ]
    ties = ranking.ties
    if len(ties) > 1:
        about = f"of {len(ties)} plans that forecasts do not tell apart: {ties[0].strategy}"
        found.insert(1, Card("simplest of ties", f"#{ties[0].position + 1}", about))
    return found


def _slowest(plans: Sequence[Forecast]) -> float:
    return max(plan.iteration_time for plan in plans)


def _nothing(ranking: Ranking, command: str) -> Page:
    nearest = ranking.nearest
    parts: list[Any] = [Words("No plan of the space fits.")]
    if nearest is not None:
        parts.append(Words(f"Nearest: {nearest['strategy']}"))
        other = ranking.outside
        if other is None:
            parts.append(Words(nearest["advice"]))
        else:
            fact = f"{duration(other.iteration_time)}, {gib(other.peak_memory)} GiB"
            parts.append(Words(nearest["advice"].removesuffix(f" {NO_CHANGE}")))
            parts.append(Words(f"Outside of the space fits {other.strategy}: {fact}."))
    return Page(
        title="No plan of the space fits",
        subtitle=ranking.space,
        notes=[f"{n:,} plans left out: {why}." for why, n in _largest_first(ranking.excluded)],
        sections=[Section("What would fit", parts)],
        command=command,
    )


def _remarks(told: Sequence[Sequence[str]]) -> list[str]:
    said = []
    for text, positions in merged(told):
        all_say = len(positions) == len(told)
        said.append(text if all_say else f"#{ranges([at + 1 for at in positions])}: {text}")
    return said


def _largest_first(excluded: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(excluded.items(), key=lambda item: -item[1])


def _number(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdecimal() else text


def _short(value: float) -> float:
    return float(f"{value:.6g}")
