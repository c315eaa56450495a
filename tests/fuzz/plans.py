"""Random plans over all presets: every figure with shortcuts is that without, and makes sense.

    python -m tests.fuzz.plans --count 20000 --seed 1 --shard 0/2

A plan is a number: the same number makes the same plan. Plans run in a child process, so that
one that ends it is reported like any other fault.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import plancast as pc

from tests.fuzz import children

MOST_SLICES = 60_000  # of a timeline that is compared
# Tasks on one device of each class that are simulated one by one.
MOST_TASKS = 400_000
DTYPES = ("bf16", "bf16", "fp16", "fp32", "tf32", "fp8", "fp8-row", "fp8-block", "mxfp8", "nvfp4")
RECOMPUTE = ("none", "none", "selective", "full", "full:1", "every:2", "uniform:2")
ROUGHLY = 1e-9  # relative; sums of doubles


@dataclass(frozen=True)
class Plan:
    """What is asked of `plancast predict`."""

    model: str
    machine: str
    hosts: int
    keys: str
    options: dict[str, Any]

    def __str__(self) -> str:
        options = " ".join(
            f"--{key.replace('_', '-')} {value}" for key, value in self.options.items()
        )
        return f"-m {self.model} -c {self.machine}:{self.hosts} -s {self.keys} {options}"


@functools.cache
def _model(name: str) -> pc.Model:
    return pc.Model.preset(name)


@functools.cache
def _machine(name: str, hosts: int) -> pc.Machine:
    return pc.Machine.preset(name, hosts=hosts)


# Behind the name of a profile: kernels that run on every GPU.
_ADDED = (*[""] * 8, "+liger", "+launch-blocking", "+liger+launch-blocking")


@functools.cache
def _names() -> tuple[list[str], list[str], list[str]]:
    """All models, machines and profiles."""
    return pc.Model.presets(), pc.Machine.presets(), pc.profiles()


def draw(seed: int) -> Plan:
    """The plan of a number."""
    rng = random.Random(f"plan {seed}")
    models, machines, profiles = _names()
    machine = rng.choice(machines)
    hosts = rng.choice((1, 1, 1, 2, 4))
    devices = _machine(machine, hosts).devices

    def part(of: int, most: int) -> int:
        return rng.choice([n for n in range(1, min(of, most) + 1) if of % n == 0])

    tp = part(devices, 8) if rng.random() < 0.6 else 1
    pp = part(devices // tp, 16) if rng.random() < 0.7 else 1
    dp = devices // tp // pp
    micro_batch = rng.choice((1, 1, 1, 2, 4))
    micro_batches = round(math.exp(rng.uniform(0, math.log(1024))))
    keys = [f"dp={dp}", f"tp={tp}", f"pp={pp}", f"mb={micro_batch}"]
    if tp > 1 and rng.random() < 0.6:
        keys.append("sp")
    if pp > 1 and rng.random() < 0.5:
        keys.append(f"vpp={rng.choice((2, 3, 4, 6))}")
    if pp > 1 and rng.random() < 0.1:
        keys.append("schedule=gpipe")
    if dp > 1 and rng.random() < 0.6:
        zero = rng.choice((1, 1, 2, 3, 3))
        keys.append(f"zero={zero}")
        if rng.random() < 0.2:
            keys.append(f"hsdp={part(dp, dp)}")
        if zero == 3 and rng.random() < 0.3:
            keys.append(f"reshard={rng.choice(('on', 'off'))},prefetch={rng.choice((1, 2))}")
        if zero > 1 and rng.random() < 0.2:
            keys.append(f"unit={rng.choice((2, 3, 4))}")
        if rng.random() < 0.2:
            keys.append(f"sync={rng.choice(('each', 'last'))}")
    if rng.random() < 0.1:
        keys.append(f"optimizer={rng.choice(('post-validated', 'in-backward'))}")
    if rng.random() < 0.6:
        keys.append(f"recompute={rng.choice(RECOMPUTE)}")
    if rng.random() < 0.2:
        keys.append(f"attn={rng.choice(('flash', 'unfused'))}")
    if rng.random() < 0.3:
        keys.append(f"overlap={rng.choice(('none', 'grad', 'param', 'grad+param', 'tp'))}")
    if rng.random() < 0.1:
        keys.append(f"bucket={rng.choice(('1MB', '25MB', '400MB'))}")
    if rng.random() < 0.1:
        offload = rng.choice(("optimizer", "activations", "activations:1", "optimizer+activations"))
        keys.append(f"offload={offload}")
    model = rng.choice(models)
    if rng.random() < 0.2:
        keys.append(f"ep={rng.choice((2, 4, 8))}")
    options: dict[str, Any] = {
        "batch": dp * micro_batch * micro_batches,
        "profile": rng.choice(("megatron-core", *profiles)) + rng.choice(_ADDED),
        "dtype": rng.choice(DTYPES),
    }
    if rng.random() < 0.1:
        options["cuda_graphs"] = True
    return Plan(model, machine, hosts, ",".join(keys), options)


def _numbers(value: Any, at: str = "") -> Iterator[tuple[str, float]]:
    """All numbers of a document with their places."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, f"{at}.{key}")
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from _numbers(inner, f"{at}[{index}]")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield at, value


def figures_of(forecast: pc.Forecast) -> dict[str, Any]:
    """Every figure of a forecast but those that say how it was made."""
    figures = forecast.to_dict()
    figures.pop("simulate_s")
    figures["counters"].pop("materialised_tasks")
    figures["own_variance_s2"] = forecast.own_variance_s2
    return figures


def apart(a: Any, b: Any, at: str = "") -> str:
    """The first place where two documents differ, or nothing."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return next((word for key in a if (word := apart(a[key], b[key], f"{at}.{key}"))), "")
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and len(a) == len(b):
        pairs = enumerate(zip(a, b, strict=True))
        return next((word for i, (x, y) in pairs if (word := apart(x, y, f"{at}[{i}]"))), "")
    if isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=ROUGHLY):
        return ""
    return "" if a == b else f"{at} is {a!r}, and {b!r} otherwise"


def senseless(forecast: pc.Forecast, figures: dict[str, Any]) -> str:
    """A figure that cannot be, or nothing."""
    for at, value in _numbers(figures):
        if not math.isfinite(value) or value < 0:
            return f"{at} is {value}"
    time_s = forecast.iteration_time
    for parts in ("breakdown_s", "critical_path_s"):
        total = sum(figures[parts].values())
        if not math.isclose(total, time_s, rel_tol=1e-6, abs_tol=1e-12):
            return f"{parts} sums to {total}, not {time_s}"
    # By its formula, MFU counts twice of causal attention what runs. What-ifs may make kernels
    # faster than the device is at its peak.
    if not forecast.what_if and (forecast.mfu > 2 or forecast.hfu > 1):
        return f"mfu is {forecast.mfu}, hfu {forecast.hfu}"
    kinds = ("parameters", "gradients", "optimizer", "activations", "workspace")
    for entry in figures["memory"]:
        if sum(entry[kind] for kind in kinds) != entry["allocated"]:
            return f"memory of {entry['device_class']} does not sum to what is allocated"
    return ""


def senseless_timeline(forecast: pc.Forecast) -> str:
    """Tasks of a stream that overlap or lie outside, or memory that cannot be; or nothing."""
    ends: dict[tuple[str, str], float] = {}
    # Where iterations overlap, a stage's own may begin late and end late.
    overlaps = forecast.chosen.get("optimizer") == "post-validated"
    for task in forecast.timeline():
        stream = (task.device_class, task.stream)
        # Seconds are rounded from picoseconds.
        if task.end_s < task.start_s or task.start_s < ends.get(stream, 0) - 1e-11:
            return f"{task} overlaps what is before it"
        if not overlaps and task.end_s > forecast.iteration_time + 1e-11:
            return f"{task} ends after the iteration"
        ends[stream] = task.end_s
    for entry in forecast.memory:
        course = forecast.memory.timeline(entry.device_class)
        if any(value < 0 for values in course.kinds.values() for value in values):
            return f"memory of {entry.device_class} is negative at times"
        if any(b < a for a, b in itertools.pairwise(course.time_s)):
            return f"memory of {entry.device_class} goes back in time"
        if max(course.allocated, default=0) != entry.allocated:
            return f"memory over time of {entry.device_class} has another peak"
    return ""


def fault_of(plan: Plan, slices: int = MOST_SLICES) -> str | None:
    """What is wrong with the forecast of a plan, nothing, or None if it is refused."""
    model, machine = _model(plan.model), _machine(plan.machine, plan.hosts)

    def ask(**more: Any) -> pc.Forecast:
        return pc.predict(model, machine, plan.keys, **plan.options, **more)

    try:
        forecast = ask()
    except pc.InputError as error:
        return None if str(error).strip() else "a refusal without words"
    figures = figures_of(forecast)
    if word := senseless(forecast, figures):
        return word
    tasks = figures["tasks"] / forecast.devices * figures["device_classes"]
    if tasks > MOST_TASKS:
        return ""
    timeline = tasks <= slices
    without = ask(shortcuts=False, timeline=timeline)
    if word := apart(figures, figures_of(without)):
        return f"with shortcuts {word}"
    if not timeline:
        return ""
    with_timeline = ask(timeline=True)
    for a, b in zip(with_timeline.timeline(), without.timeline(), strict=True):
        if a != b:
            return f"{a} with shortcuts, {b} without"
    if with_timeline._core.chrome_trace() != without._core.chrome_trace():
        return "another trace without shortcuts"
    word = senseless_timeline(with_timeline)
    if word:
        return word
    for entry in forecast.memory:
        course = with_timeline.memory.timeline(entry.device_class)
        if course.time_s != without.memory.timeline(entry.device_class).time_s:
            return f"another course of the memory of {entry.device_class} without shortcuts"
    return ""


def run(seeds: list[int], report: Callable[[str], None], slices: int = MOST_SLICES) -> Counter[str]:
    """Tries the plans of numbers and reports faults; counts `good`, `refused` and `bad` ones."""
    return children.run(seeds, lambda seed: fault_of(draw(seed), slices), draw, report)


def main() -> int:
    """Runs a shard of so many plans."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="plans of all shards")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first")
    parser.add_argument("--shard", default="0/1", help="I/N: every Nth plan from the Ith on")
    parser.add_argument(
        "--slices",
        type=int,
        default=MOST_SLICES,
        help="tasks at most of a timeline that is compared",
    )
    parser.add_argument("--show", action="store_true", help="only print the plans")
    options = parser.parse_args()
    first, _, step = options.shard.partition("/")
    seeds = list(range(options.seed + int(first), options.seed + options.count, int(step)))
    if options.show:
        for seed in seeds:
            print(f"{seed}: {draw(seed)}")
        return 0
    return children.run_all(seeds, lambda seed: fault_of(draw(seed), options.slices), draw)


if __name__ == "__main__":
    sys.exit(main())
