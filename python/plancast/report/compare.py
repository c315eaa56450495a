"""Rich table of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from plancast.accuracy.report.fitted_table import FittedTable, WrappedText
from plancast.causal import causal_mfu
from plancast.report.explanation import cause_lines
from plancast.report.remarks import place, remarks, said, setting
from plancast.report.tables import PART_LABELS
from plancast.textual import count, duration, gib, percent

if TYPE_CHECKING:
    from plancast.comparison import Comparison, Difference
    from plancast.forecast import Forecast

# Less of a path that is extrapolated goes without a word here.
_LEAST_EXTRAPOLATED = 0.02
_ROWS: tuple[tuple[str, Callable[[Forecast], str]], ...] = (
    ("iteration", lambda f: duration(f.iteration_time)),
    ("90 % from", lambda f: duration(f.interval[0])),
    ("90 % to", lambda f: duration(f.interval[1])),
    ("TFLOP/s/GPU", lambda f: f"{f.model_flops_per_s_per_gpu / 1e12:.0f}"),
    ("MFU", lambda f: percent(f.mfu)),
    ("peak memory, GiB", lambda f: gib(f.peak_memory)),
    ("of", lambda f: gib(f.memory_capacity)),
    ("fits", lambda f: "yes" if f.fits else "no"),
)


def comparison_tables(comparison: Comparison) -> RenderableType:
    """What is the same, one column a forecast, then a sentence on each difference."""
    forecasts = list(comparison)
    settings = [setting(f) for f in forecasts]
    parts: list[RenderableType] = _heads(forecasts, settings)
    table = FittedTable(stacked=True)
    table.words("")
    table.numbers(*map(letter, range(len(forecasts))))
    for fact in [fact for s in settings[:1] for fact in s if not _shared(fact, settings)]:
        table.row(fact, *(s.get(fact, "") for s in settings))
    table.row(
        " or ".join(sorted({f"{f.unit}/s/GPU" for f in forecasts})),
        *(count(f.units_per_s_per_gpu) for f in forecasts),
    )
    causal = [causal_mfu(f) for f in forecasts]
    for label, cell in _ROWS:
        table.row(label, *(cell(f) for f in forecasts))
        if label == "MFU" and any(share is not None for share in causal):
            table.row("MFU, causal", *("" if one is None else percent(one) for one in causal))
    table.section()
    breakdowns = [f.breakdown() for f in forecasts]
    for part, (label, colour) in PART_LABELS.items():
        values = [b[part] for b in breakdowns]
        if max(values) <= 1e-5 * max(f.iteration_time for f in forecasts):
            continue
        table.row(Text(label, style=colour), *(duration(v) if v > 0 else "" for v in values))
    parts.append(table)
    for i, d in enumerate(comparison.differences, start=1):
        parts.append(Text.assemble((f"{letter(i)} against A: ", "bold"), d.reason))
        parts.append(WrappedText(sureness(d, letter(i)), indent=3, style="dim"))
        if d.causes:
            total = sum(cause.picoseconds for cause in d.causes)
            parts.append(cause_lines(d.causes, total, most=5, names=(letter(i), "A")))
    if not _shared("batch", settings):
        parts.append(
            Text("note: the global batches differ, so the steps are not of equal work", style="dim")
        )
    return Group(*parts, *remarks(forecasts, _letters))


def _heads(
    forecasts: Sequence[Forecast], settings: Sequence[Mapping[str, str]]
) -> list[RenderableType]:
    models = {f.model for f in forecasts}
    facts = {fact: v for fact, v in settings[0].items() if _shared(fact, settings)}
    same = Text(forecasts[0].model if len(models) == 1 else "", style="bold")
    same.append(f"{', ' if same and facts else ''}{said(facts)}", style="not bold dim")
    heads: list[RenderableType] = [same] if same else []
    for i, f in enumerate(forecasts):
        head = Text.assemble((f"{letter(i)}  ", "bold"), place(f))
        if len(models) > 1:
            head.append(f", {f.model}")
        if f.what_if:
            head.append(f", what if {f.what_if}", style="red")
        heads += [head, WrappedText(f.strategy or "defaults", indent=3, style="cyan")]
    return heads


def _shared(fact: str, settings: Sequence[Mapping[str, str]]) -> bool:
    return len({s.get(fact) for s in settings}) == 1


def sureness(difference: Difference, whose: str) -> str:
    """How sure a difference of the plan of a letter from the first is."""
    low, high = difference.interval
    text = f"90 % between {_signed(low)} and {_signed(high)}; "
    guesses = [
        f"{percent(share, 0)} of {name}'s path"
        for name, share in zip(("A", whose), difference.extrapolated, strict=True)
        if share >= _LEAST_EXTRAPOLATED
    ]
    verb = "is" if len(guesses) == 1 else "are"
    guessed = f"{' and '.join(guesses)} {verb} extrapolated from other GPUs or links"
    if difference.faster_probability is None:
        return f"{text}how probable that is nobody can say: {guessed}"
    text += f"faster with probability {percent(difference.faster_probability, 0)}"
    return f"{text}, but {guessed}" if guesses else text


def _signed(seconds: float) -> str:
    return f"{'+' if seconds > 0 else '−'}{duration(abs(seconds))}"


def _letters(positions: Sequence[int]) -> str:
    return ", ".join(map(letter, positions))


def letter(index: int) -> str:
    """The name of a plan in a comparison."""
    return chr(ord("A") + index) if index < 26 else f"#{index + 1}"
