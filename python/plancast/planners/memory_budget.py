"""Which layers keep what, run what again and move what to the host, within a bound on memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plancast import _core
from plancast.checked import checked
from plancast.errors import InputError
from plancast.planners.layer_options import Option, cheapest
from plancast.planners.plan import Plan
from plancast.planning import DEFAULT_PROFILE, predict, rank
from plancast.search.job import SearchJob
from plancast.session import Session
from plancast.strategy import Strategy

if TYPE_CHECKING:
    from plancast.forecast import Forecast
    from plancast.machine import Machine
    from plancast.model import Model

_HOST = "host"  # the option that moves what a layer keeps to the host
_GRID = 8  # plans of the grid that are refined
_FORECASTS = 80  # in which single layers are changed
_TIGHTER = 12  # times that the bound is taken tighter for what the sums left out
_CHOSEN = ("recompute", "offload")  # what is found here

Counts = tuple[tuple[int, ...], ...]  # of each stage, layers by option


@checked
def plan_memory(
    model: Model,
    machine: Machine,
    *,
    batch: int,
    start: str | None = None,
    memory: float | None = None,
    dtype: str = "bf16",
    profile: str = DEFAULT_PROFILE,
    session: Session | None = None,
) -> Plan:
    """The least time of a plan within a bound on memory, by what its layers keep.

    Each layer of each stage keeps what its backward pass reads, runs a set of ops or all of it
    again, or moves what it keeps to the host. What each way costs and keeps is asked of the
    executor with all layers treated so; of a stage the counts with the least sum are found exactly.
    What is not a sum (peaks, what hides copies) is seen by the forecast: the bound is taken tighter
    until the plan keeps to it, and single layers are changed while that is faster.

    Args:
      model: what is trained; its layers are one list.
      machine: where.
      batch: global batch, samples per step.
      start: the plan without `recompute` and `offload`; by default the best few of the grid, each.
      memory: GiB of a device that may be used; by default all.
      dtype: matmul precision.
      profile: how the framework runs.
      session: shared memo of the forecasts.

    Raises:
      InputError: no such plan keeps to the bound, or the start is refused.

    >>> from plancast import Machine, Model
    >>> plan = plan_memory(Model.preset("llama3-8b"), Machine.preset("dgx-h100:1"), batch=64,
    ...                    start="dp=2,tp=2,sp,pp=2,zero=1,mb=2", memory=48)
    >>> plan.forecast.peak_memory <= 48 * 2**30
    True
    """
    if memory is not None and memory <= 0:
        raise InputError(f"a bound of {memory} GiB; give how much of a device may be used.")
    asked = {"batch": batch, "dtype": dtype, "profile": profile, "session": session or Session()}
    starts = [_without_choice(start)] if start is not None else _of_grid(model, machine, asked)
    found: Plan | None = None
    for text in starts:
        layers = _Layers(model, machine, text, asked, memory)
        plan = layers.best()
        if plan is not None and (found is None or plan.iteration_time < found.iteration_time):
            found = plan
    if found is None:
        bound = "the GPU's memory" if memory is None else f"{memory:g} GiB"
        raise InputError(
            f"no way to treat the layers of {', '.join(f'`{text}`' for text in starts)} keeps to "
            f"{bound}; give more memory, or a start with more of tp, pp or zero."
        )
    return found


def _without_choice(start: str) -> str:
    for item in start.split(","):
        name = item.partition("=")[0].strip()
        if name in _CHOSEN:
            raise InputError(f"`{name}` is what method memory chooses; leave it out of the start.")
    return start


def _of_grid(model: Model, machine: Machine, asked: Mapping[str, Any]) -> list[str]:
    """The best plans of the grid, less what is chosen here."""
    ranking = rank(model, machine, top=_GRID, progress=False, **asked)
    if not len(ranking):
        raise InputError(f"no plan of the grid fits on {machine}; name a plan to start from.")
    texts = []
    for plan in ranking:
        items = [i for i in plan.strategy.split(",") if i.partition("=")[0] not in _CHOSEN]
        texts.append(",".join(items))
    return list(dict.fromkeys(texts))


@dataclass
class _Layers:
    """One plan, its stages, and what treating their layers in some way takes."""

    model: Model
    machine: Machine
    start: str
    asked: Mapping[str, Any]
    memory: float | None
    forecasts: int = 0
    refused: list[str] = field(default_factory=list)

    def best(self) -> Plan | None:
        """The fastest that keeps to the bound; None if none does."""
        self._list = _list_of(self.model)
        self._none = self._uniform("recompute=none")
        self._bound = self._none.memory_capacity
        if self.memory is not None:
            self._bound = min(self._bound, int(self.memory * 2**30))
        self._stages = _layers_of_stages(self._none)
        self._price()
        tried: dict[Counts, Forecast] = {}
        for number in range(len(self._names)):
            self._look(tuple(self._all(s, number) for s in range(len(self._stages))), tried)
        for step in range(_TIGHTER):
            counts = self._solve(self._bound * (1 - 0.005 * step))
            if counts is None:
                break
            if self._fits(self._look(counts, tried)):
                break
        fitting = {counts: made for counts, made in tried.items() if self._fits(made)}
        if not fitting:
            return None
        counts = min(fitting, key=lambda one: fitting[one].iteration_time)
        counts = self._changed_one_by_one(counts, tried)
        forecast = tried[counts]
        details = {
            "start": self.start,
            "bound_gib": self._bound / 2**30,
            "stages": [
                {n: count for n, count in zip(self._names, stage, strict=True) if count}
                for stage in counts
            ],
            "forecasts": self.forecasts,
        }
        return Plan("memory", self._tree(counts), forecast.iteration_time, "s", forecast, details)

    def _uniform(self, words: str) -> Forecast:
        self.forecasts += 1
        return predict(self.model, self.machine, f"{self.start},{words}", **self.asked)

    def _price(self) -> None:
        """What every way takes: seconds of an iteration and bytes of each stage, for a layer."""
        none, most = self._none, max(map(len, self._stages))
        self._names, self._seconds = ["none"], [0.0]
        bytes_of = [_bytes(none)]
        for name in [*self._sets(), "full"]:
            made = self._uniform(f"recompute={name}")
            self._names.append(name)
            self._seconds.append((made.iteration_time - none.iteration_time) / most)
            bytes_of.append(_bytes(made))
        # Copies hide behind passes until there are too many of them.
        self._host = [0.0] * (most + 1)
        try:
            bytes_of.append(_bytes(self._uniform("offload=activations")))
            known = {0: 0.0}
            count = 1
            while count < most:
                made = self._uniform(f"offload=activations:{count}")
                known[count] = max(0.0, made.iteration_time - none.iteration_time)
                count *= 2
            self._host = _between(known, most)
            self._names.append(_HOST)
            self._seconds.append(0.0)
        except InputError as error:
            self.refused.append(str(error))
        least = [min(sizes) for sizes in zip(*bytes_of, strict=True)]
        self._beside = least
        # `offload=activations` leaves out the last layer of a stage.
        self._each = [
            [
                (sizes[s] - least[s]) / max(1, len(stage) - (self._names[n] == _HOST))
                for s, stage in enumerate(self._stages)
            ]
            for n, sizes in enumerate(bytes_of)
        ]

    def _sets(self) -> list[str]:
        """Sets of ops that may run again in this model."""
        job = SearchJob(
            self.model,
            self.machine,
            self.asked["session"],
            self.asked["batch"],
            "time",
            self.asked["dtype"],
            self.asked["profile"],
            {},
        )
        plans = job.core().enumerate("tp=1,pp=1,mb=1,zero=3,cp=1,recompute=selective:*", "")[0]
        named = [plan.partition("recompute=")[2].partition(",")[0] for plan in plans]
        return list(dict.fromkeys(name for name in named if name.startswith("selective:")))

    def _all(self, stage: int, number: int) -> tuple[int, ...]:
        return tuple(
            len(self._stages[stage]) if n == number else 0 for n in range(len(self._names))
        )

    def _solve(self, bound: float) -> Counts | None:
        """The least sums of seconds within a bound, stage by stage."""
        counts = []
        for s, stage in enumerate(self._stages):
            room = bound - self._beside[s]
            host = self._names.index(_HOST) if _HOST in self._names else None
            ways = [
                Option(name, self._seconds[n], self._each[n][s])
                for n, name in enumerate(self._names)
                if n != host
            ]
            best: tuple[float, list[int]] | None = None
            for moved in range(len(stage) + 1 if host is not None else 1):
                if best is not None and self._host[moved] >= best[0]:
                    continue
                taken = 0.0 if host is None else moved * self._each[host][s]
                rest = cheapest(len(stage) - moved, ways, room - taken)
                if rest is None:
                    continue
                seconds = rest[0] + self._host[moved]
                if best is None or seconds < best[0]:
                    best = seconds, [*rest[1], *([] if host is None else [moved])]
            if best is None:
                return None
            counts.append(tuple(best[1]))
        return tuple(counts)

    def _look(self, counts: Counts, tried: dict[Counts, Forecast]) -> Forecast | None:
        if counts not in tried:
            self.forecasts += 1
            try:
                tried[counts] = predict(
                    self.model, self.machine, self._tree(counts), memory_first=True, **self.asked
                )
            except InputError as error:
                self.refused.append(str(error))
        return tried.get(counts)

    def _fits(self, forecast: Forecast | None) -> bool:
        return forecast is not None and forecast.fits and forecast.peak_memory <= self._bound

    def _changed_one_by_one(self, counts: Counts, tried: dict[Counts, Forecast]) -> Counts:
        """A layer of a stage is treated otherwise while that is faster and keeps to the bound."""
        left, again = _FORECASTS, True
        while again and left > 0:
            again = False
            for other in _neighbours(counts):
                if other in tried:
                    continue
                left -= 1
                made = self._look(other, tried)
                fastest = tried[counts].iteration_time
                if made is not None and self._fits(made) and made.iteration_time < fastest:
                    counts, again = other, True
                    break
                if left <= 0:
                    break
        return counts

    def _tree(self, counts: Counts) -> Strategy:
        """Layers of a stage in their order: those on the host, then those that run most again."""
        layers: dict[str, list[int]] = {}
        for stage, of_stage in zip(self._stages, counts, strict=True):
            order = sorted(
                range(len(self._names)), key=lambda n: (self._names[n] != _HOST, -self._seconds[n])
            )
            at = 0
            for n in order:
                layers.setdefault(self._names[n], []).extend(stage[at : at + of_stage[n]])
                at += of_stage[n]
        nodes = {
            f"{self._list}[{_slices(sorted(which))}]": (
                {"home": {"activations": "host"}} if name == _HOST else {"recompute": name}
            )
            for name, which in layers.items()
            if which and name != "none"
        }
        every = [name for name, which in layers.items() if which]
        if len(every) == 1 and every[0] != _HOST:  # all alike: no tree is needed
            return Strategy.parse(f"{self.start},recompute={every[0]}")
        return Strategy.from_dict({"plan": f"{self.start},recompute=none", "nodes": nodes})


def _list_of(model: Model) -> str:
    """The path of the one list of layers."""
    modules = _core.model_graph(model._core)["modules"]
    lists = [module["path"] for module in modules if module["list"] or module["repeat"] > 1]
    if len(set(lists)) != 1:
        raise InputError(
            f"{model.name} has {len(lists)} lists of layers; method memory treats those of one."
        )
    path: str = lists[0]
    return path.removesuffix(".*")


def _layers_of_stages(forecast: Forecast) -> list[list[int]]:
    """The numbers of the layers that each stage holds, over all its chunks."""
    pp = int(forecast.chosen["pp"])
    stages: list[list[int]] = [[] for _ in range(pp)]
    first = number = 0
    for run in forecast.chosen["layout"].split("+"):
        layers, _, times = run.partition("x")
        for _ in range(int(times or 1)):
            stages[number % pp].extend(range(first, first + int(layers)))
            first, number = first + int(layers), number + 1
    return stages


def _bytes(forecast: Forecast) -> list[int]:
    """Of the fullest device of each stage."""
    found: dict[str, int] = {}
    for entry in forecast.memory:
        stage = entry.device_class.partition(",")[0]
        found[stage] = max(found.get(stage, 0), entry.device)
    return list(found.values())


def _between(known: Mapping[int, float], most: int) -> list[float]:
    """Values at 0 to `most`, on lines between those that are known and on beyond them."""
    at = sorted(known)
    values = []
    for n in range(most + 1):
        right = next((i for i, x in enumerate(at) if x >= n), len(at) - 1)
        left = max(0, right - 1)
        if at[right] == at[left]:
            values.append(known[at[right]])
            continue
        slope = (known[at[right]] - known[at[left]]) / (at[right] - at[left])
        values.append(known[at[left]] + slope * (n - at[left]))
    return values


def _neighbours(counts: Counts) -> list[Counts]:
    """One layer of one stage, or of all, treated otherwise."""
    found = []
    options = range(len(counts[0]))
    for source in options:
        for target in options:
            if source == target:
                continue
            moved = [_moved(stage, source, target) for stage in counts]
            found.append(tuple(moved))
            found += [
                (*counts[:s], moved[s], *counts[s + 1 :])
                for s in range(len(counts))
                if len(counts) > 1
            ]
    return [other for other in dict.fromkeys(found) if other != counts]


def _moved(stage: tuple[int, ...], source: int, target: int) -> tuple[int, ...]:
    if stage[source] == 0:
        return stage
    return tuple(n - (i == source) + (i == target) for i, n in enumerate(stage))


def _slices(numbers: Sequence[int]) -> str:
    """`0:3,7,9:12` of sorted numbers."""
    parts: list[str] = []
    first = 0
    for at in range(1, len(numbers) + 1):
        if at < len(numbers) and numbers[at] == numbers[at - 1] + 1:
            continue
        begin, last = numbers[first], numbers[at - 1]
        parts.append(f"{begin}" if begin == last else f"{begin}:{last + 1}")
        first = at
    return ",".join(parts)
