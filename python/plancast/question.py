"""What a forecast answers: enough to make it again in another process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from plancast import _core, schedule_file
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.machine import Machine
    from plancast.model import Model
    from plancast.randomness import Drawn
    from plancast.session import Session
    from plancast.strategy import Strategy

# Methods of `_core.Forecast` without arguments whose answers are small.
_SMALL = ("breakdown_s", "critical_path_s", "memory")


class Question(Protocol):
    """How a forecast was asked for."""

    def answer(self) -> _core.Forecast:
        """The forecast, made anew."""
        ...

    def advise(self) -> str:
        """What would fit, if the plan does not."""
        ...


@dataclass(frozen=True)
class PlanQuestion:
    """The arguments of `plancast.predict`, checked."""

    model: Model
    machine: Machine
    strategy: Strategy | str  # a short form is read once it is needed: rankings have many
    session: Session
    batch: int | None
    dtype: str
    profile: str
    precision: dict[str, str]
    cuda_graphs: bool | str = False
    timeline: bool = False
    memory_first: bool = False
    shortcuts: bool = True
    what_if: str = ""
    randomness: Drawn | None = None
    datasheet: bool = False
    chunk_level: bool = False

    def answer(self) -> _core.Forecast:
        """The forecast, made anew."""
        return _core.predict(
            *self._nouns(),
            batch=self.batch,
            dtype=self.dtype,
            profile=self.profile,
            precision=self.precision,
            cuda_graphs=self.cuda_graphs,
            timeline=self.timeline,
            memory_only_if_unfit=self.memory_first,
            shortcuts=self.shortcuts,
            what_if=self.what_if,
            randomness=self.randomness,
            datasheet=self.datasheet,
            chunk_level=self.chunk_level,
        )

    def advise(self) -> str:
        """What would fit, if the plan does not."""
        return _core.fit_advice(
            *self._nouns(),
            batch=self.batch,
            dtype=self.dtype,
            profile=self.profile,
            precision=self.precision,
            datasheet=self.datasheet,
        )

    def _nouns(self) -> tuple[_core.Model, _core.Machine, _core.Strategy, _core.Session]:
        tree = core_of(self.strategy)
        return self.model._core, self.machine._core, tree, self.session._core


def core_of(strategy: Strategy | str) -> _core.Strategy:
    """The core of a strategy or of its short form."""
    if isinstance(strategy, str):
        return _core.Strategy.parse(schedule_file.with_tables(strategy))
    core = getattr(strategy, "_core", None)
    if isinstance(core, _core.Strategy):
        return core
    raise InputError(
        f'`strategy` is `{strategy!r}`; give a Strategy, such as `Strategy.parse("tp=8,mb=1")`.'
    )


class Facts:
    """Stands for a `_core.Forecast` that was made in another process.

    Knows its figures. Graphs and slices do not travel: the forecast is made again when one of
    them is asked for.
    """

    def __init__(self, figures: dict[str, Any], question: Question | None) -> None:
        self._figures = figures
        self._question = question
        self._made: _core.Forecast | None = None

    @classmethod
    def of(cls, core: _core.Forecast | Facts, question: Question | None) -> Facts:
        """What a forecast knows."""
        if isinstance(core, Facts):
            return core
        names = [name for name, value in vars(type(core)).items() if isinstance(value, property)]
        figures = {name: getattr(core, name) for name in names}
        return cls({**figures, **{name: getattr(core, name)() for name in _SMALL}}, question)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _SMALL:
            return lambda: self._figures[name]
        if name in self._figures:
            return self._figures[name]
        if self._made is None:
            if self._question is None:
                raise AttributeError(name)
            self._made = self._question.answer()
        return getattr(self._made, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Facts, (self._figures, self._question)
