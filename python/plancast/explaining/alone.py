"""What a plan's time is bound by, stage by stage, and what would bind it next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from plancast import _core
from plancast.cached import cached_property
from plancast.explaining.account import Account
from plancast.explaining.marginal import Marginal, marginals
from plancast.explaining.words import COLLECTIVES, FAMILIES
from plancast.explaining.work import Item, Stage, question_of
from plancast.parts import PARTS
from plancast.shown import Shown, Tabular
from plancast.textual import percent

if TYPE_CHECKING:
    from rich.console import RenderableType

    from plancast.forecast import Forecast

# No what-if takes these away; they are taken from the breakdown: what even the busiest stage
# waits, and what it has to do beyond the mean.
BUBBLE = "bubble"
UNLIKE = "unlike"
_RATES = {
    "gemm": "GEMM rate",
    "attention": "attention rate",
    "convolution": "convolution rate",
    "memory": "memory bandwidth",
    "optimizer": "memory bandwidth",
}


@dataclass(frozen=True)
class StageBinding:
    """Where the time of a stage goes, and what most of it hangs on.

    `seconds` sums to the iteration: families of kernels (recomputation included), `slowed`
    beside communication, the exposed communication of each purpose, `bubble`, `host`, `other`.
    `binding` is the resource with most of it, and `words` say at which rate it runs.
    """

    stage: str
    devices: int
    seconds: dict[str, float]
    by_resource: dict[str, float]
    words: str

    @property
    def binding(self) -> str:
        """The resource that most of the time hangs on."""
        return max(self.by_resource, key=lambda name: self.by_resource[name], default="")


@dataclass(frozen=True)
class Bottleneck:
    """Something that takes time, and the iteration without it.

    `simulated`: by simulating again with `change`; else from the breakdown: without the bubble
    the busiest stage never waits for others, without unlike stages it has as much to do as the
    mean. `next` is what then helps most when it is taken away as well, with the
    iteration without both.
    """

    name: str
    change: str
    iteration_time: float
    saves: float
    simulated: bool
    next: str = ""
    next_iteration_time: float = 0.0
    next_saves: float = 0.0


@dataclass
class Explanation(Shown, Tabular):
    """The result of `Forecast.explain()`."""

    forecast: Forecast
    _account: Account = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._account = Account.of(self.forecast)

    @cached_property
    def stages(self) -> tuple[StageBinding, ...]:
        """What binds each stage, in their order."""
        level, peak = float(self._account.level), self.forecast._core.peak_flops_per_gpu
        return tuple(_binding(stage, level, peak) for stage in self._account.stages)

    @cached_property
    def bottlenecks(self) -> tuple[Bottleneck, ...]:
        """What takes time, by what taking it away wholly would save, the largest first."""
        return tuple(_bottlenecks(self.forecast, self._account))

    @cached_property
    def marginals(self) -> tuple[Marginal, ...]:
        """What a little more or less of each resource is worth."""
        return tuple(marginals(self.forecast, self._account.stages))

    @property
    def advice(self) -> str:
        """Of a plan that does not fit, the smallest changes with which it would; else empty."""
        return self.forecast.fit_advice or ""

    def records(self) -> list[dict[str, Any]]:
        """A row for each bottleneck."""
        return [asdict(bottleneck) for bottleneck in self.bottlenecks]

    def to_dict(self) -> dict[str, Any]:
        """The fields of `plancast explain --json`."""
        return {
            "strategy": self.forecast.strategy,
            "machine": self.forecast.machine,
            "iteration_time_s": self.forecast.iteration_time,
            "fits": self.forecast.fits,
            "advice": self.advice,
            "stages": [{**asdict(stage), "binding": stage.binding} for stage in self.stages],
            "bottlenecks": self.records(),
            "marginals": [asdict(marginal) for marginal in self.marginals],
        }

    def __rich__(self) -> RenderableType:
        from plancast.report.explanation import explanation_tables

        return explanation_tables(self)

    def __repr__(self) -> str:
        bound = ", ".join(sorted({stage.binding for stage in self.stages}))
        return f"<Explanation of {self.forecast.strategy or 'defaults'}: bound by {bound}>"


def _binding(stage: Stage, level: float, peak: float) -> StageBinding:
    second = level / 1e12
    seconds: dict[str, float] = {}
    resources: dict[str, float] = {}

    def add(name: str, resource: str, ps: int) -> None:
        if ps:
            seconds[name] = seconds.get(name, 0.0) + ps * second
            resources[resource] = resources.get(resource, 0.0) + ps * second

    computing = ("compute", "recompute", "optimizer")
    kernels = [i for i in stage.items if i.is_kernel and i.part in computing]
    for item in kernels:
        add(item.kind, _RATES[item.kind], item.ps)
    slowed = sum(stage.parts[part] for part in computing) - sum(item.ps for item in kernels)
    add("slowed", "communication beside kernels", slowed)
    for part, ps in stage.parts.items():
        if part.startswith("exposed_"):
            add(part, _link(stage.items, part), ps)
    add("bubble", "bubble", stage.parts["bubble"] + stage.parts["straggler"])
    add("host", "host", stage.parts["launch"])
    add("other", "fixed work", stage.parts["other"])
    words = _rate_words(kernels, peak) if resources else ""
    return StageBinding(stage.name, stage.devices, seconds, resources, words)


def _link(items: Iterable[Item], part: str) -> str:
    """The link that most of a part's communication fills."""
    times: dict[str, int] = {}
    for item in items:
        if item.part == part and not item.is_kernel:
            times[item.link] = times.get(item.link, 0) + item.ps
    name = max(times, key=lambda link: times[link], default="")
    return name or COLLECTIVES.get(part, part)


def _rate_words(kernels: Sequence[Item], peak: float) -> str:
    products = [item for item in kernels if item.kind == "gemm"]
    ps, flops = sum(i.ps for i in products), sum(i.flops for i in products)
    if not ps:
        return ""
    rate = flops / ps * 1e12
    share = f", {percent(rate / peak, 0)} of peak" if peak else ""
    return f"products at {rate / 1e12:.0f} TFLOP/s{share}"


@dataclass(frozen=True)
class _State:
    """What-ifs that are made, and which of `BUBBLE` and `UNLIKE` are away."""

    changes: tuple[str, ...] = ()
    away: frozenset[str] = frozenset()

    def and_(self, change: str) -> _State:
        if change in (BUBBLE, UNLIKE):
            return replace(self, away=self.away | {change})
        return replace(self, changes=(*self.changes, change))


def _bottlenecks(forecast: Forecast, account: Account) -> list[Bottleneck]:
    candidates = _candidates(account.stages)
    times: dict[_State, float] = {}

    def time(state: _State) -> float:
        if state not in times:
            times[state] = _time(forecast, account, state)
        return times[state]

    now, found = time(_State()), []
    for change, name in candidates.items():
        without = _State().and_(change)
        found.append(
            Bottleneck(name, change, time(without), now - time(without), bool(without.changes))
        )
    found.sort(key=lambda b: (-b.saves, b.name))
    first = found[:1]
    if not first or len(candidates) < 2:
        return found
    state = _State().and_(first[0].change)
    rest = {c: time(state.and_(c)) for c in candidates if c != first[0].change}
    best = min(rest, key=lambda change: rest[change])
    found[0] = replace(
        first[0],
        next=candidates[best],
        next_iteration_time=rest[best],
        next_saves=first[0].iteration_time - rest[best],
    )
    return found


def _candidates(stages: Sequence[Stage]) -> dict[str, str]:
    """What can be taken away from the plan, by the what-if that does it."""
    items = [item for stage in stages for item in stage.items]
    out = {}
    for family, name in FAMILIES.items():
        if any(i.is_kernel and i.kind == family for i in items):
            out[f"kernel:{family}=free"] = name
    for part, name in COLLECTIVES.items():
        if any(not i.is_kernel and i.part == part for i in items):
            out[f"purpose:{part.removeprefix('exposed_')}=free"] = name
    if any(i.purpose == "recompute" for i in items):
        out["purpose:recompute=free"] = "recomputation"
    if any(stage.parts["launch"] for stage in stages):
        out["launch=free"] = "the host's launches"
    out["interference=free"] = "slowing beside communication"
    if len(stages) > 1 and any(stage.parts["bubble"] for stage in stages):
        out |= {BUBBLE: "pipeline bubble", UNLIKE: "unlike stages"}
    return out


def _time(forecast: Forecast, account: Account, state: _State) -> float:
    """Seconds of an iteration in a state."""
    core: Any = forecast._core
    if state.changes:
        core = _changed(forecast, ",".join(state.changes))
    level = core.iteration_time_s / (core.simulated_ps / 1e12) if core.simulated_ps else 1.0
    return max(0.0, float(core.simulated_ps - _saved(core, state))) * level / 1e12


def _saved(core: Any, state: _State) -> Fraction:
    """What is away without simulating, picoseconds."""
    devices = sum(number for _, _, _, number, _ in core.stages_ps)
    if not state.away or not devices:
        return Fraction(0)
    busy = [(number, _busy(parts)) for _, _, _, number, parts in core.stages_ps]
    busiest = max(ps for _, ps in busy)
    saved = Fraction(core.simulated_ps - busiest) if BUBBLE in state.away else Fraction(0)
    if UNLIKE in state.away:
        saved += busiest - Fraction(sum(number * ps for number, ps in busy), devices)
    return saved


def _busy(parts: Sequence[int]) -> int:
    return sum(parts) - parts[PARTS.index("bubble")] - parts[PARTS.index("straggler")]


def _changed(forecast: Forecast, changes: str) -> _core.Forecast:
    question = question_of(forecast)
    all_changes = ",".join(filter(None, (question.what_if, changes)))
    return replace(question, what_if=all_changes, timeline=False, randomness=None).answer()
