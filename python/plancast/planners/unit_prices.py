"""What a unit of a model takes on a submesh, asked of the executor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from plancast import _core
from plancast.builder import data_module
from plancast.errors import InputError
from plancast.forecast import Forecast
from plancast.machine import Machine
from plancast.model import Model
from plancast.planning import predict
from plancast.session import Session

# Of the breakdown of an iteration: once in it, not for each micro-batch. Bubbles and the fixed
# time of an iteration are no unit's.
_ONCE = ("exposed_dp", "optimizer")
_NOBODYS = ("bubble", "straggler", "other")


@dataclass(frozen=True)
class Price:
    """Of some units on one submesh: seconds of a micro-batch, forward and back, and once an
    iteration; bytes of a device that are held, are kept by each micro-batch in flight, and come
    and go; bytes beside those of any unit.
    """

    each: float = 0.0
    once: float = 0.0
    held: float = 0.0
    kept: float = 0.0
    passing: float = 0.0
    beside: float = 0.0

    def plus(self, other: Price) -> Price:
        """Both one after the other."""
        return Price(
            self.each + other.each,
            self.once + other.once,
            self.held + other.held,
            self.kept + other.kept,
            max(self.passing, other.passing),
            max(self.beside, other.beside),
        )


@dataclass(frozen=True)
class Question:
    """Where and how a unit runs: `mesh` is (dp, tp), `samples` are a micro-batch of all of dp."""

    section: int
    mesh: tuple[int, int]
    samples: int
    plan: str

    @property
    def devices(self) -> int:
        """Of the submesh."""
        return self.mesh[0] * self.mesh[1]


@dataclass
class UnitPrices:
    """Prices of a model's units, each asked once.

    A layer of a list is what two of them take beyond one; what stands before or behind it is what
    it takes beyond the layer alone. Units of models without lists are asked by themselves.
    """

    model: Model
    machine: Machine
    dtype: str
    profile: str
    session: Session = field(default_factory=Session)

    def __post_init__(self) -> None:
        self._spec: dict[str, Any] = _core.model_graph(self.model._core)
        self._numbers = {m["path"]: i for i, m in enumerate(self._spec["modules"])}
        self._known: dict[tuple[tuple[tuple[int, int], ...], Question], Price | None] = {}
        self._machines: dict[tuple[int, int], Machine] = {}
        self._models: dict[tuple[tuple[int, int], ...], Model] = {}

    def of(self, unit: Sequence[str], question: Question) -> Price | None:
        """The price of one unit as `cut_points` names it; None where it cannot run so."""
        numbers = [self._numbers[_module(path, self._numbers)] for path in unit]
        lists = [n for n in numbers if self._in_list(n)]
        if not lists:
            return self._asked(tuple((n, 1) for n in numbers), question)
        layer = lists[0]
        one = self._asked(((layer, 1),), question)
        two = self._asked(((layer, 2),), question)
        if one is None or two is None:
            return None
        more = Price(
            max(two.each - one.each, 0.0),
            max(two.once - one.once, 0.0),
            two.held - one.held,
            max(two.kept - one.kept, 0.0),
            max(2 * one.kept - two.kept, 0.0),
            one.beside,
        )
        if len(numbers) == 1:
            return more
        whole = self._asked(tuple((n, 1) for n in numbers), question)
        if whole is None:
            return None
        return Price(
            more.each + max(whole.each - one.each, 0.0),
            more.once + max(whole.once - one.once, 0.0),
            more.held + whole.held - one.held,
            more.kept,
            max(whole.kept - more.kept, more.passing),
            more.beside,
        )

    def _in_list(self, number: int) -> bool:
        module = self._spec["modules"][number]
        return bool(module["list"] or module["repeat"] > 1)

    def _asked(self, modules: tuple[tuple[int, int], ...], question: Question) -> Price | None:
        key = (modules, question)
        if key not in self._known:
            self._known[key] = self._ask(modules, question)
        return self._known[key]

    def _ask(self, modules: tuple[tuple[int, int], ...], question: Question) -> Price | None:
        dp, tp = question.mesh
        if question.samples % dp:
            return None
        plan = f"dp={dp},tp={tp},mb={question.samples // dp}"
        try:
            forecast = predict(
                self._piece(modules),
                self._submesh(question),
                f"{plan},{question.plan}" if question.plan else plan,
                batch=question.samples,
                dtype=self.dtype,
                profile=self.profile,
                session=self.session,
            )
        except InputError:
            return None
        return _price(forecast, gathers="zero=3" in question.plan.split(","))

    def _piece(self, modules: tuple[tuple[int, int], ...]) -> Model:
        if modules not in self._models:
            chosen = [{**self._spec["modules"][n], "repeat": count} for n, count in modules]
            if chosen[0]["in_ports"]:
                chosen.insert(0, data_module(chosen[0]))
            spec = {**self._spec, "modules": chosen, "ties": []}
            self._models[modules] = Model.from_graph(spec)
        return self._models[modules]

    def _submesh(self, question: Question) -> Machine:
        key = (question.section, question.devices)
        if key not in self._machines:
            section = self.machine.sections[question.section]
            fields = section.to_dict()
            each = section.gpus_per_host
            hosts = max(1, question.devices // each)
            fields |= {"hosts": hosts, "gpus_per_host": min(each, question.devices)}
            self._machines[key] = Machine.from_dict(fields)
        return self._machines[key]


def _module(path: str, known: dict[str, int]) -> str:
    return path if path in known else path.rpartition(".")[0]


def _price(forecast: Forecast, *, gathers: bool) -> Price:
    parts = forecast.breakdown()
    # Shards that are gathered for each pass are waited for in each.
    once = sum(parts[name] for name in _ONCE if not (gathers and name == "exposed_dp"))
    rest = sum(seconds for name, seconds in parts.items() if name not in _NOBODYS)
    memory = max(forecast.memory, key=lambda entry: entry.device)
    held = memory.parameters + memory.gradients + memory.optimizer
    return Price(
        rest - once,
        once,
        held,
        memory.activations,
        0.0,
        memory.device - held - memory.activations,
    )
