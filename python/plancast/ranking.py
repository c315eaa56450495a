"""Plans in the order of an objective."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload

from plancast import files
from plancast.cached import cached_property
from plancast.checked import checked
from plancast.errors import InputError
from plancast.forecast import Forecast
from plancast.parts import PARTS
from plancast.plan_record import columns, plan_record
from plancast.shown import Shown

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

    from plancast.ties import Tie


class Figures(Protocol):
    """What a ranking says beside its plans, as `_core.RankResult` has it."""

    @property
    def evaluated(self) -> int: ...
    @property
    def bounded(self) -> int: ...
    @property
    def stopped(self) -> bool: ...
    @property
    def open(self) -> int: ...
    @property
    def bound(self) -> float: ...
    @property
    def excluded(self) -> dict[str, int]: ...
    @property
    def space(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def nearest(self) -> tuple[str, int, int, str] | None: ...


@checked
class Ranking(Shown):
    """The result of `plancast.rank`: forecasts of the plans that fit, best first."""

    def __init__(self, core: Figures, plans: Sequence[Forecast], *, objective: str) -> None:
        self.objective = objective
        self._plans = list(plans)
        self._evaluated = core.evaluated
        self._bounded = core.bounded
        self._stopped = core.stopped
        self._open = core.open
        self._bound = core.bound
        self._excluded = dict(core.excluded)
        self._space = core.space
        self._seconds = core.seconds
        self._nearest = core.nearest
        self._outside: Forecast | None = None

    @property
    def evaluated(self) -> int:
        """Number of plans whose time was simulated."""
        return self._evaluated

    @property
    def bounded(self) -> int:
        """Number of plans that cannot be among the best, by bounds of their time."""
        return self._bounded

    @property
    def stopped(self) -> bool:
        """Whether Ctrl-C ended it, so that plans that were not looked at may be better."""
        return self._stopped

    @property
    def open(self) -> int:
        """Of a ranking that was stopped: number of plans that were not decided on."""
        return self._open

    @property
    def bound(self) -> float:
        """Of a ranking that was stopped: what the objective of those is at least; 0: not known."""
        return self._bound

    @property
    def excluded(self) -> dict[str, int]:
        """Why plans of the space are not listed, and how many."""
        return dict(self._excluded)

    @property
    def nearest(self) -> dict[str, Any] | None:
        """Where no plan fits the one that needs least, with what it needs, bytes, and advice."""
        if self._nearest is None:
            return None
        names = ("strategy", "peak_memory_bytes", "memory_capacity_bytes", "advice")
        return dict(zip(names, self._nearest, strict=True))

    @property
    def outside(self) -> Forecast | None:
        """Where no plan of the space fits: one that does, if that was looked for."""
        return self._outside

    def with_outside(self, plan: Forecast) -> Ranking:
        """The ranking that knows of a plan outside of its space."""
        other = copy.copy(self)
        other._outside = plan
        return other

    def pareto(self, top: int | None = None) -> Ranking:
        """The plans that none is both faster than and smaller than in memory, the best `top`.

        >>> from plancast import Machine, Model, rank
        >>> plans = rank(Model.preset("gpt2"), Machine.preset("dgx-a100-80g:1"), batch=64,
        ...     space="tp=1,pp=1,mb=1|8,recompute=none|full").pareto()
        >>> memory = [plan.peak_memory for plan in plans]
        >>> memory == sorted(memory, reverse=True) and len(set(memory)) == len(memory)
        True
        """
        other = copy.copy(self)
        other._plans, least = [], float("inf")
        for plan in sorted(self._plans, key=lambda plan: plan.iteration_time):
            if len(other._plans) == top:
                break
            if plan.peak_memory < least:
                other._plans.append(plan)
                least = plan.peak_memory
        return other

    def for_framework(self, framework: str, top: int | None = None) -> Ranking:
        """The plans of which the framework's argument file can be written, the best `top`.

        What is trained stands in the training script, not in that file.

        The others are counted in `excluded`, with the framework's reason.
        """
        from plancast.frameworks.formats import framework_name

        name = framework_name(framework)
        other = copy.copy(self)
        other._plans, other._excluded = [], dict(self._excluded)
        for plan in self._plans:
            if len(other._plans) == top:
                break
            try:
                plan.without_nodes().launch_config(name)
            except InputError as error:
                reason = str(error).partition(". ")[0].removesuffix(".")
                other._excluded[reason] = other._excluded.get(reason, 0) + 1
                continue
            other._plans.append(plan)
        return other

    @property
    def space(self) -> str:
        """The space, with its defaults written out."""
        return self._space

    @property
    def seconds(self) -> float:
        """Wall time of the ranking, seconds."""
        return self._seconds

    def __len__(self) -> int:
        return len(self._plans)

    def __iter__(self) -> Iterator[Forecast]:
        return iter(self._plans)

    @overload
    def __getitem__(self, index: int) -> Forecast: ...
    @overload
    def __getitem__(self, index: slice) -> list[Forecast]: ...
    def __getitem__(self, index: int | slice) -> Forecast | list[Forecast]:
        return self._plans[index]

    @cached_property
    def ties(self) -> list[Tie]:
        """Plans that the errors of forecasts do not tell from the fastest, the simplest first.

        With the probability that each is the best (`plancast.ties`).
        """
        from plancast.ties import ties

        return ties(sorted(self._plans, key=lambda plan: plan.iteration_time))

    def to_dict(self) -> dict[str, Any]:
        """The fields of `plancast rank --json`."""
        return {
            "plans": [{"strategy": plan.strategy, **plan.to_dict()} for plan in self._plans],
            "evaluated": self.evaluated,
            "bounded": self.bounded,
            "stopped": self.stopped,
            "open": self.open,
            "space": self.space,
            "excluded": self.excluded,
            "seconds": self.seconds,
            "nearest": self.nearest,
            "ties": [asdict(tie) for tie in self.ties],
            "outside": None if self._outside is None else self._outside.strategy,
        }

    def records(self) -> list[dict[str, Any]]:
        """One flat record a plan, units in the names."""
        return [{"rank": place, **plan_record(plan)} for place, plan in enumerate(self._plans, 1)]

    def to_frame(self) -> pd.DataFrame:
        """A tidy table, one plan a row: its knobs (`dp`, `tp`, ...) and figures, units in names."""
        import pandas as pd

        return pd.DataFrame.from_records(self.records(), columns=_COLUMNS)

    def plot_plans(self, by: str = "tp") -> Any:
        """Time against memory, a point for each plan, as a plotly figure.

        Args:
          by: which column of `to_frame` colours them, such as `tp`, `pp` or `recompute`.
        """
        from plancast.charts.plans import scatter

        return scatter(self._plans, by)

    def plot_breakdown(self, top: int = 10) -> Any:
        """Where the time of the best plans goes, as a plotly figure."""
        from plancast.charts.breakdown import breakdown

        best = self._plans[: max(top, 0)]
        names = [f"{place}. {plan.strategy}" for place, plan in enumerate(best, start=1)]
        return breakdown(best, names, f"The best {len(best)} of {self.evaluated:,} plans")

    def write(self, path: str | Path) -> None:
        """Writes all plans as `.csv`, `.csv.gz` or `.parquet`."""
        files.write_table(path, _COLUMNS, self.records())

    @staticmethod
    def check_path(path: str | Path | None) -> None:
        """Raises InputError where `write` could not write, before there is anything to lose."""
        files.check_table(path)

    def __rich__(self) -> RenderableType:
        from plancast.report.ranking import ranking_tables

        return ranking_tables(self, top=10)

    def __repr__(self) -> str:
        best = f", best {self._plans[0].strategy}" if self._plans else ""
        return f"<Ranking of {self.evaluated} plans{best}>"


_COLUMNS = ("rank", *columns(PARTS))
