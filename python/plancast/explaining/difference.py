"""Why one plan takes longer than another: signed picoseconds by cause, which sum exactly."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from plancast.cached import cached_property
from plancast.explaining import words
from plancast.explaining.account import Account, Entry, mean
from plancast.explaining.causes import Cause
from plancast.explaining.split import shares, whole
from plancast.shown import Shown, Tabular
from plancast.textual import change, duration

if TYPE_CHECKING:
    from rich.console import RenderableType

    from plancast.explaining.work import Stage
    from plancast.forecast import Forecast

# (part, kind, why)
Key = tuple[str, str, str]
_SOFTWARE: Key = ("software", "", "level")


class ExplainedDifference(Shown, Tabular):
    """The result of `Forecast.explain(versus=other)`: why the forecast is not the other.

    Seconds are what the forecast takes more than the other; negative: less.
    """

    def __init__(self, forecast: Forecast, versus: Forecast) -> None:
        self.forecast, self.versus = forecast, versus
        self._mine, self._theirs = Account.of(forecast), Account.of(versus)

    @property
    def picoseconds(self) -> int:
        """The whole difference, which the causes sum to."""
        return self._mine.iteration - self._theirs.iteration

    @property
    def seconds(self) -> float:
        """The same in seconds."""
        return self.picoseconds / 1e12

    @cached_property
    def causes(self) -> tuple[Cause, ...]:
        """Every cause, the largest first; they sum to the difference exactly."""
        split = whole(_causes(self._mine, self._theirs), self.picoseconds)
        found = [
            Cause(*key, value, words.sentence(key, self._mine, self._theirs))
            for key, value in split.items()
            if value != 0
        ]
        return tuple(sorted(found, key=lambda c: (-abs(c.picoseconds), c.part, c.kind, c.why)))

    @cached_property
    def modules(self) -> dict[str, float]:
        """Of the kernels alone, seconds by module of the model, the largest first."""
        mine, theirs = _by_module(self._mine), _by_module(self._theirs)
        names = sorted({*mine, *theirs})
        moved = {n: float(mine.get(n, 0) - theirs.get(n, 0)) / 1e12 for n in names}
        return {
            n: s for n, s in sorted(moved.items(), key=lambda item: -abs(item[1])) if abs(s) >= 1e-9
        }

    @cached_property
    def stages(self) -> dict[str, dict[str, int]]:
        """Of each stage that both have, picoseconds by part, which sum to the difference.

        Empty where the pipelines are not equally deep.
        """
        mine, theirs = self._mine, self._theirs
        if [s.name for s in mine.stages] != [s.name for s in theirs.stages]:
            return {}
        out = {}
        for a, b in zip(mine.stages, theirs.stages, strict=True):
            moved = {p: a.parts[p] * mine.level - b.parts[p] * theirs.level for p in a.parts}
            out[a.name] = whole(moved, self.picoseconds)
        return out

    def to_dict(self) -> dict[str, Any]:
        """The fields of `plancast explain --versus ... --json`."""
        return {
            "strategy": self.forecast.strategy,
            "versus": self.versus.strategy,
            "machine": self.forecast.machine,
            "versus_machine": self.versus.machine,
            "iteration_time_s": self.forecast.iteration_time,
            "versus_iteration_time_s": self.versus.iteration_time,
            "picoseconds": self.picoseconds,
            "seconds": self.seconds,
            "causes": [cause.to_dict() for cause in self.causes],
            "modules": self.modules,
            "stages": self.stages,
            "verdict": self.verdict,
        }

    def records(self) -> list[dict[str, Any]]:
        """A row for each cause."""
        return [cause.to_dict() for cause in self.causes]

    @property
    def verdict(self) -> str:
        """The whole in a few words."""
        if self.picoseconds == 0:
            return "as fast"
        base = self.versus.iteration_time
        word = "slower" if self.picoseconds > 0 else "faster"
        share = f" ({change(self.seconds / base)})" if base > 0 else ""
        return f"{duration(abs(self.seconds))} {word}{share}"

    def to_svg(self, *, standalone: bool = True) -> str:
        """A waterfall from the other's time to the forecast's."""
        from plancast.report.waterfall_svg import waterfall_svg

        return waterfall_svg(self, standalone=standalone)

    def __rich__(self) -> RenderableType:
        from plancast.report.explanation import difference_tables

        return difference_tables(self)

    def __repr__(self) -> str:
        return f"<ExplainedDifference {self.verdict}, {len(self.causes)} causes>"


def _causes(mine: Account, theirs: Account) -> dict[Key, Fraction]:
    """Picoseconds by cause, in an order that does not depend on whose side is which."""
    level = (mine.level + theirs.level) / 2
    out: dict[Key, Fraction] = {}
    for part, kind in sorted({*mine.entries, *theirs.entries}):
        split = _of_entry(mine.entries.get((part, kind)), theirs.entries.get((part, kind)))
        out |= {(part, kind, why): value * level for why, value in split.items()}
    out[_SOFTWARE] = (mine.level - theirs.level) * Fraction(mine.simulated + theirs.simulated, 2)
    return out


def _of_entry(a: Entry | None, b: Entry | None) -> dict[str, Fraction]:
    if a is None or b is None:
        value = (a.value if a else Fraction(0)) - (b.value if b else Fraction(0))
        return {"presence": value}
    if not a.factors or a.factors.keys() != b.factors.keys():
        return {"size": a.value - b.value}
    split = shares(a.factors, b.factors)
    # More than there is of it in either plan did not move: factors that cancel are told as one.
    if max(map(abs, split.values())) > max(abs(a.value), abs(b.value)):
        return {"size": a.value - b.value}
    return split


def _by_module(account: Account) -> dict[str, Fraction]:
    modules = sorted({i.module for s in account.stages for i in s.items if i.is_kernel})
    return {name: account.level * mean(account.stages, _of_module(name)) for name in modules}


def _of_module(name: str) -> Callable[[Stage], int]:
    return lambda stage: sum(i.ps for i in stage.items if i.is_kernel and i.module == name)
