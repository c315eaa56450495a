"""What a little more or less of a resource is worth, by predicting again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from plancast import _core
from plancast.errors import InputError
from plancast.explaining.work import Stage, question_of
from plancast.machine import Machine
from plancast.parts import WORDS
from plancast.question import PlanQuestion
from plancast.textual import duration

if TYPE_CHECKING:
    from plancast.forecast import Forecast

_COMPUTING = ("gemm", "attention", "convolution")
_MOVING = ("memory", "optimizer")


@dataclass(frozen=True)
class Marginal:
    """A resource with more or less of it, and what that does to the iteration, seconds.

    `change` is relative (0.1: 10 % more); `per_ten_percent` is `seconds` for a change of 10 % in
    the same direction, where `change` is another. `seconds` None: no answer, and `remark` says
    why. `anomaly` says why more of it takes longer, or less of it less.
    """

    resource: str
    change: float
    seconds: float | None
    per_ten_percent: float | None = None
    plan: str = ""  # that uses it, where it is another
    remark: str = ""
    anomaly: str = ""


def marginals(forecast: Forecast, stages: Sequence[Stage]) -> Iterator[Marginal]:
    """FLOP/s, memory bandwidth, links, host, memory and GPUs, each with more and with less."""
    items = [item for stage in stages for item in stage.items]
    families = {item.kind for item in items if item.is_kernel}
    changes = {
        "FLOP/s": [f"kernel:{family}" for family in _COMPUTING if family in families],
        "memory bandwidth": [f"kernel:{family}" for family in _MOVING if family in families],
    }
    for link in sorted({item.link for item in items if item.link}):
        changes[f"{link} bandwidth"] = [link]
    changes["host"] = ["launch"]
    for resource, targets in changes.items():
        for change in (0.1, -0.1):
            if targets:
                yield _rate(forecast, resource, targets, change)
    yield from _memory(forecast)
    yield from _gpus(forecast)


def _rate(forecast: Forecast, resource: str, targets: Sequence[str], change: float) -> Marginal:
    """By a what-if that makes kernels, links or launches faster or slower."""
    question = question_of(forecast)
    times = f"{1 + change:.12g}x"
    changes = ",".join(f"{target}={times}" for target in targets)
    what_if = ",".join(filter(None, (question.what_if, changes)))
    try:
        core = replace(question, what_if=what_if, timeline=False, randomness=None).answer()
    except InputError as error:
        return Marginal(resource, change, None, remark=str(error))
    seconds = core.iteration_time_s - forecast.iteration_time
    anomaly = _anomaly(core, forecast) if seconds * change > 0 else ""
    return Marginal(resource, change, seconds, seconds, anomaly=anomaly)


def _anomaly(core: _core.Forecast, forecast: Forecast) -> str:
    """What grows although something is faster, or shrinks although it is slower: what the
    simulation notes, else the parts of the time that do."""
    known = set(forecast.notes)
    own = [note for note in core.notes if note not in known]
    if own:
        return own[0]
    slower = core.iteration_time_s > forecast.iteration_time
    before = dict(zip(forecast.breakdown(), forecast._core.breakdown_s(), strict=True))
    moved = {
        part: after - before[part]
        for part, after in zip(before, core.breakdown_s(), strict=True)
        if (after > before[part]) == slower and after != before[part]
    }
    named = sorted(moved, key=lambda part: -abs(moved[part]))[:2]
    parts = " and ".join(f"{WORDS[part]} by {duration(abs(moved[part]))}" for part in named)
    return f"{parts} {'longer' if slower else 'shorter'}, since tasks meet at other times"


def _memory(forecast: Forecast) -> Iterator[Marginal]:
    """By the best plan of a small neighbourhood that each size of memory permits."""
    try:
        plans = _neighbours(forecast)
    except InputError as error:
        yield Marginal("memory", 0.1, None, remark=str(error))
        return
    own, capacity = forecast._core, forecast.memory_capacity
    now = _best([own, *plans], capacity) or own
    against = ""
    if now is not own:
        saved = forecast.iteration_time - now.iteration_time_s
        word = f"which is {duration(saved)} faster and fits" if saved > 0 else "which fits"
        against = f"against {now.strategy}, {word} as it is"
    for change in (0.1, -0.1):
        best = _best([own, *plans], (1 + change) * capacity)
        if best is None:
            yield Marginal("memory", change, None, remark="no plan near it fits")
            continue
        seconds = best.iteration_time_s - now.iteration_time_s
        plan = best.strategy if best is not now else ""
        same = "" if plan else "the best plan near it stays the same"
        yield Marginal("memory", change, seconds, seconds, plan, against or same)


def _best(plans: Sequence[_core.Forecast], capacity: float) -> _core.Forecast | None:
    """The fastest that fits into so much memory; None: none does."""
    fitting = [plan for plan in plans if plan.peak_memory_bytes <= capacity]
    return min(fitting, key=lambda plan: plan.iteration_time_s, default=None)


def neighbourhood(forecast: Forecast) -> list[str]:
    """Plans near it: the same but for recomputation, micro-batches and ZeRO."""
    question = question_of(forecast)
    if question.what_if or not _is_short(question):
        raise InputError("only plans in a short form have neighbours")
    own, chosen = _short_fields(forecast.strategy), forecast.chosen
    own.pop("accum", None)  # it follows from the batch
    size, stage = int(chosen.get("mb", "1")), int(chosen.get("zero", "0"))
    changes = product(
        sorted({max(1, size // 2), size, 2 * size}),
        dict.fromkeys(["none", "selective", "full", own.get("recompute", "none")]),
        [other for other in range(4) if abs(other - stage) < 2],
    )
    samples = forecast.global_batch // int(chosen.get("dp", "1"))  # of a rank
    plans = []
    for mb, recompute, zero in changes:
        plan = _short_form({**own, "mb": str(mb), "recompute": recompute, "zero": str(zero)})
        if not _core.why_framework_cannot_run(question.profile, plan, samples // mb):
            plans.append(plan)
    return plans


def _neighbours(forecast: Forecast) -> list[_core.Forecast]:
    """Those of the neighbourhood that fit into a tenth more memory."""
    question = question_of(forecast)
    larger = replace(
        question,
        machine=_with_memory(question.machine, 0.1),
        batch=forecast.global_batch,
        timeline=False,
        randomness=None,
        memory_first=True,
    )
    found = []
    for plan in neighbourhood(forecast):
        try:
            core = replace(larger, strategy=plan).answer()
        except InputError:
            continue  # nobody could run it
        if core.fits:
            found.append(core)
    return found


def _with_memory(machine: Machine, change: float) -> Machine:
    if len(machine.sections) > 1:
        raise InputError("the machine has GPUs of several kinds; change the memory of one of them")
    fields = machine.to_dict()
    gpu = dict(fields["gpu"])
    for name in ("memory_gb", "usable_gb"):
        if gpu.get(name):
            gpu[name] = gpu[name] * (1 + change)
    return Machine.from_dict({**fields, "gpu": gpu})


def _gpus(forecast: Forecast) -> Iterator[Marginal]:
    """By the same plan on the next numbers of hosts that it can run on at the same batch."""
    question = question_of(forecast)
    machine, hosts = question.machine, question.machine.hosts
    if len(machine.sections) > 1 or not _is_short(question):
        why = "on hosts of several kinds" if len(machine.sections) > 1 else "as a tree"
        yield Marginal("GPUs", 0.1, None, remark=f"a plan {why} is for its number of hosts")
        return
    fields = _short_fields(forecast.strategy)
    plan = _short_form({k: v for k, v in fields.items() if k not in ("dp", "accum", "layout")})
    more = range(hosts + 1, 2 * hosts + 1)
    fewer = range(hosts - 1, max(0, hosts // 2 - 1), -1)
    for direction, sizes in ((0.1, more), (-0.1, fewer)):
        found = _first(question, plan, [size for size in sizes if _divides(forecast, size)])
        if found is None:
            remark = f"{_hosts(sizes)} cannot run this plan at this batch"
            yield Marginal("GPUs", direction, None, remark=remark)
            continue
        size, core = found
        ratio, seconds = size / hosts, core.iteration_time_s - forecast.iteration_time
        speed = math.log(core.iteration_time_s / forecast.iteration_time) / math.log(ratio)
        tenth = forecast.iteration_time * ((1 + direction) ** speed - 1)
        unit = "host" if size == 1 else "hosts"
        unfit = "" if core.fits else ", where it does not fit"
        remark = f"{size} {unit} instead of {hosts}{unfit}"
        yield Marginal("GPUs", ratio - 1, seconds, tenth, remark=remark)


def _divides(forecast: Forecast, hosts: int) -> bool:
    """Whether so many hosts leave the plan a whole dp, and its ranks whole micro-batches."""
    chosen, gpus = forecast.chosen, hosts * question_of(forecast).machine.gpus_per_host
    replica = math.prod(int(chosen.get(key, "1")) for key in ("tp", "pp", "cp"))
    samples = gpus // replica * int(chosen.get("mb", "1"))
    return gpus % replica == 0 and samples > 0 and forecast.global_batch % samples == 0


def _hosts(sizes: Sequence[int]) -> str:
    if not sizes:
        return "fewer hosts"
    if len(sizes) == 1:
        return "1 host" if sizes[0] == 1 else f"{sizes[0]} hosts"
    return f"{sizes[0]} to {sizes[-1]} hosts"


def _first(
    question: PlanQuestion, plan: str, sizes: Sequence[int]
) -> tuple[int, _core.Forecast] | None:
    """The first number of hosts that the plan can run on, with its forecast."""
    fields = question.machine.to_dict()
    for hosts in sizes:
        try:
            machine = Machine.from_dict({**fields, "hosts": hosts})
            asked = replace(
                question, machine=machine, strategy=plan, timeline=False, randomness=None
            )
            return hosts, asked.answer()
        except InputError:
            continue
    return None


def _is_short(question: PlanQuestion) -> bool:
    strategy = question.strategy
    if isinstance(strategy, str):
        return True
    tree = strategy.to_dict()
    return not tree.get("nodes") and "stages" not in tree


def _short_fields(text: str) -> dict[str, str]:
    """The keys of a short form with their values; empty of a word alone (`sp`)."""
    return {
        key: value for key, _, value in (word.partition("=") for word in text.split(",")) if key
    }


def _short_form(fields: dict[str, str]) -> str:
    return ",".join(f"{key}={value}" if value else key for key, value in fields.items())
