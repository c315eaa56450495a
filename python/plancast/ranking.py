"""Plans in the order of an objective."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload

from plancast import files
from plancast.checked import checked
from plancast.forecast import PARTS, Forecast

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType


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
class Ranking:
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

    @property
    def evaluated(self) -> int:
        """Number of plans whose time was simulated."""
        return self._evaluated

    @property
    def bounded(self) -> int:
        """Number of plans that fit and cannot be among the best, by bounds of their time."""
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
        }

    def records(self) -> list[dict[str, Any]]:
        """One flat record a plan, units in the names."""
        return [_record(position, plan) for position, plan in enumerate(self._plans, start=1)]

    def to_frame(self) -> pd.DataFrame:
        """A tidy table, one plan a row, units in the column names."""
        import pandas as pd

        return pd.DataFrame.from_records(self.records(), columns=_COLUMNS)

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

    def _repr_html_(self) -> str:
        from plancast.report.html import to_html

        return to_html(self.__rich__())

    def __repr__(self) -> str:
        best = f", best {self._plans[0].strategy}" if self._plans else ""
        return f"<Ranking of {self.evaluated} plans{best}>"


_COLUMNS = (
    "rank",
    "strategy",
    "iteration_time_s",
    "iteration_time_low_s",
    "iteration_time_high_s",
    "tokens_per_s_per_gpu",
    "model_tflops_per_gpu",
    "mfu",
    "peak_memory_bytes",
    "usd_per_iteration",
    "kwh_per_iteration",
    *(f"{part}_s" for part in PARTS),
)


def _record(position: int, plan: Forecast) -> dict[str, Any]:
    fields = plan.to_dict()
    record = {
        "rank": position,
        "strategy": plan.strategy,
        "iteration_time_s": fields["iteration_time_s"],
        "iteration_time_low_s": fields["iteration_time_interval_s"][0],
        "iteration_time_high_s": fields["iteration_time_interval_s"][1],
        "tokens_per_s_per_gpu": fields["tokens_per_s_per_gpu"],
        "model_tflops_per_gpu": fields["model_tflops_per_gpu"],
        "mfu": fields["mfu"],
        "peak_memory_bytes": fields["peak_memory_bytes"],
        "usd_per_iteration": fields["cost"]["usd_per_iteration"],
        "kwh_per_iteration": fields["cost"]["kwh_per_iteration"],
    }
    record.update({f"{part}_s": value for part, value in fields["breakdown_s"].items()})
    return record
