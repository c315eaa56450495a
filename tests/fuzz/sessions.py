"""Random users: sessions over everything, each by Python and by the command line, under all laws.

    python -m tests.fuzz.sessions --count 20000 --seed 1 --shard 0/2

A session (tests.fuzz.random_session) asks for one plan in several ways, which must agree, for the
same on better machines, and for a ranking of a few. docs/reliability.md lists the laws.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import os
import random
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import plancast as pc
import yaml

from tests.fuzz import children, commands
from tests.fuzz.plans import apart, figures_of, senseless
from tests.fuzz.random_session import Document, Drawn, draw, model, simpler
from tests.fuzz.session_laws import laws_of_chance, laws_of_forms, laws_of_time
from tests.fuzz.trees import unclear

GIB = 1 << 30
MOST_TASKS = 100_000  # of one device of each class, that are simulated one by one
MOST_PARAMETERS = 100e9
# By so much a better link may make the best of a ranking slower, since other things then run
# side by side, or NCCL chooses otherwise (the named cases of docs/reliability.md). Memory and
# FLOPs never do.
REORDERED = {"network": 0.05, "links": 0.05}
# The same where links are slowed: NCCL, which does not know, may choose LL, which sends each
# byte twice.
TWICE = {"network": 1.0, "links": 1.0}
# What changes of one run to the next.
_MADE = ("simulate_s", "counters")
_GONE = object()


class Session:
    """The questions of one session, and how many plans it has forecast."""

    def __init__(self, drawn: Drawn) -> None:
        self.drawn = drawn
        self.model = model(drawn)
        self.machine = pc.Machine.from_dict(drawn.machine)
        self.session = pc.Session()
        self.plans = 0

    def strategy(self) -> pc.Strategy:
        said = self.drawn.strategy
        return pc.Strategy.parse(said) if isinstance(said, str) else pc.Strategy.from_dict(said)

    def ask(self, machine: pc.Machine | None = None, **more: Any) -> pc.Forecast:
        """The forecast of the plan."""
        self.plans += machine is not None or not more
        asked = {**self.drawn.options, "session": self.session, **more}
        return pc.predict(self.model, machine or self.machine, self.strategy(), **asked)

    def put(
        self, model: pc.Model, machine: pc.Machine, strategy: pc.Strategy, **more: Any
    ) -> pc.Forecast:
        """The forecast of any plan, with the session's options, in a new session."""
        self.plans += 1
        return pc.predict(
            model, machine, strategy, **{**self.drawn.options, "session": pc.Session(), **more}
        )

    def rank(self, machine: pc.Machine | None = None, **more: Any) -> pc.Ranking:
        """A ranking of a few plans."""
        options = dict(self.drawn.options)
        for name in ("what_if", "fidelity"):
            options.pop(name, None)
        ranking = pc.rank(
            self.model, machine or self.machine, space=self.drawn.space,
            **{**options, "session": self.session, "workers": 1, "exhaustive": True, **more},
        )  # fmt: skip
        self.plans += len(ranking) if set(more) <= {"exhaustive"} else 0
        return ranking


def laws_of_one(asked: Session, forecast: pc.Forecast) -> str:
    """Of a forecast by itself."""
    figures = figures_of(forecast)
    if word := senseless(forecast, figures):
        return word
    low, high = forecast.interval
    if not low <= forecast.iteration_time <= high:
        return f"the interval {forecast.interval} has no {forecast.iteration_time}"
    for entry in forecast.memory:
        held = entry.parameters + entry.optimizer
        if entry.allocated < held or not entry.device >= entry.reserved >= entry.allocated:
            return f"the peak of {entry} is below what is held"
    if forecast.fits != (forecast.peak_memory <= forecast.memory_capacity):
        needs_host = any(entry.host for entry in forecast.memory)
        if not needs_host and "sections" not in asked.drawn.machine:
            return f"fits is {forecast.fits} of {forecast.peak_memory} bytes"
    return ""


def laws_of_ways(asked: Session, forecast: pc.Forecast) -> str:
    """The same question in other ways gives the same answer."""
    figures = figures_of(forecast)
    tasks = figures["tasks"] / forecast.devices * figures["device_classes"]
    ways: list[tuple[str, Callable[[], pc.Forecast]]] = [
        ("a second time", asked.ask),
        ("in a new session", lambda: asked.ask(session=pc.Session())),
    ]
    if tasks <= MOST_TASKS:
        ways.append(("without shortcuts", lambda: asked.ask(shortcuts=False)))
    for what, way in ways:
        if word := apart(figures, figures_of(way())):
            return f"{what}: {word}"
    return ""


def laws_of_memory(asked: Session, forecast: pc.Forecast) -> str:
    """A plan that fits in N bytes fits in more; its time stays."""
    if "sections" in asked.drawn.machine:
        return ""
    rng = random.Random(asked.drawn.seed)
    need = forecast.peak_memory
    sizes = [int(need * rng.uniform(low, high)) for low, high in ((0.8, 1), (0.97, 1.03), (1, 1.3))]
    fitted = 0
    for size in sorted(size + more for size in (need, *sizes) for more in (0, 1)):
        machine = copy.deepcopy(asked.drawn.machine)
        machine["gpu"]["memory_gb"] = machine["gpu"]["usable_gb"] = size / GIB
        other = asked.ask(pc.Machine.from_dict(machine))
        if fitted and not other.fits:
            return f"fits in {fitted} bytes, not in {size}"
        fitted = size if other.fits else 0
        if other.iteration_time != forecast.iteration_time:
            return f"in {size} bytes takes {other.iteration_time}, not {forecast.iteration_time}"
    return ""


def _times(machine: Document, factor: float, *names: str) -> Document:
    better = copy.deepcopy(machine)
    for part in better.get("sections", [better]):
        for name in names:
            place = part["gpu"] if name in part["gpu"] else part
            if place.get(name):
                place[name] *= factor
    if "between_gbit_per_s" in better and "nic_gbit_per_s" in names:
        better["between_gbit_per_s"] *= factor
    return better


def better_machines(machine: Document) -> Iterator[tuple[str, Document, Document]]:
    """What there is more of, on the second machine than on the first.

    More FLOPs are devices at full speed that were slow. A GPU with other figures is another
    GPU, priced by others that are measured (docs/reliability.md).
    """
    slow = copy.deepcopy(machine)
    for part in slow.get("sections", [slow]):
        said = {one["device"]: one["compute_scale"] for one in part.get("device_overrides", ())}
        part["device_overrides"] = [
            {"device": device, "compute_scale": 0.5 * said.get(device, 1)}
            for device in range(part["hosts"] * part["gpus_per_host"])
        ]
    yield "FLOPs", slow, machine
    yield "memory", machine, _times(machine, 2, "memory_gb", "usable_gb")
    yield "network", machine, _times(machine, 2, "nic_gbit_per_s")
    links = ("intra_gb_per_s", "switch_gb_per_s", "host_bridge_gb_per_s")
    yield "links", machine, _times(machine, 2, *links)


def laws_of_rankings(asked: Session) -> str:
    """A ranking is the order of its forecasts, by any threads, and gains by any machine that is
    better."""
    try:
        ranking = asked.rank()
    except pc.InputError as error:
        return unclear(str(error))
    times = [plan.iteration_time for plan in ranking]
    if times != sorted(times):
        return f"the order of a ranking is {times}"
    for threads in (2, 3):
        if [p.to_dict() | {"simulate_s": 0} for p in asked.rank(workers=threads)] != [
            p.to_dict() | {"simulate_s": 0} for p in ranking
        ]:
            return f"another ranking with {threads} threads"
    options = {k: v for k, v in asked.drawn.options.items() if k not in ("what_if", "fidelity")}
    for plan in list(ranking)[:: max(1, len(ranking) // 3)]:
        alone = pc.predict(
            asked.model, asked.machine, plan.strategy, session=pc.Session(), **options
        )
        if word := apart(figures_of(plan), figures_of(alone)):
            return f"plan {plan.strategy} of a ranking, alone: {word}"
    few = asked.rank(exhaustive=False, top=3)
    if [p.iteration_time for p in few] != times[:3]:
        return f"the best three are {[p.iteration_time for p in few]}, of all {times[:3]}"
    return _ranked_by_line(asked, ranking) or _gains(asked, ranking)


def _ranked_by_line(asked: Session, ranking: pc.Ranking) -> str:
    """The command line ranks as Python does; one of three sessions asks."""
    if asked.drawn.seed % 3 or not len(ranking):
        return ""  # where nothing fits, the command line goes on with offloading
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        line = _said(folder, asked.drawn)
        if line is None:
            return ""
        words = _without(line, "-s", "--what-if", "--fidelity")
        words += ["--space", asked.drawn.space, "--all", "--workers", "2", "--json"]
        code, out, err = _command(["rank", *words], folder)
        if code:
            return f"a ranking by the command line ends with {code}: {err[-300:]}"
        said = [plan["iteration_time_s"] for plan in json.loads(out)["plans"]]
        word = apart([plan.iteration_time for plan in ranking], said, ".plans")
        return f"by the command line {word}" if word else ""


def _without(line: list[str], *options: str) -> list[str]:
    """A command line without these options, which have values."""
    words = list(line)
    for option in options:
        if option in words:
            at = words.index(option)
            del words[at : at + 2]
    return words


def _gains(asked: Session, ranking: pc.Ranking) -> str:
    if not len(ranking):
        return ""
    parts = asked.drawn.machine.get("sections", [asked.drawn.machine])
    slower = TWICE if any(part.get("link_overrides") for part in parts) else REORDERED
    for what, worse, better in better_machines(asked.drawn.machine):
        try:
            before, after = (
                ranking if document is asked.drawn.machine else asked.rank(machine)
                for document, machine in ((d, pc.Machine.from_dict(d)) for d in (worse, better))
            )
        except pc.InputError:
            continue  # no such machine can be
        if len(after) < len(before):
            return f"with more {what} {len(after)} plans fit, and {len(before)} before"
        best, other = before[0], after[0]
        if other.iteration_time > best.iteration_time * (1 + slower.get(what, 1e-12)):
            return (
                f"with more {what} the best of a ranking takes {other.iteration_time} "
                f"({other.strategy}), not {best.iteration_time} ({best.strategy})"
            )
    return ""


def _said(folder: Path, drawn: Drawn) -> list[str] | None:
    """The command line of the question; None where a model has no name."""
    name, _, seq = drawn.model.partition("@")
    if drawn.kind not in ("zoo", "import", "catalogue", "layers"):
        return None
    line = ["-m", name, "-c", str(folder / "machine.yaml"), "-s", str(folder / "plan.yaml")]
    (folder / "machine.yaml").write_text(yaml.safe_dump(drawn.machine, sort_keys=False))
    strategy = drawn.strategy
    if isinstance(strategy, str):
        line[-1] = strategy
    else:
        (folder / "plan.yaml").write_text(yaml.safe_dump(strategy, sort_keys=False))
    seq = seq or ("256" if drawn.kind == "layers" else "")
    if seq:
        line += ["--seq", seq]
    for option, value in drawn.options.items():
        flag = f"--{option.replace('_', '-')}"
        line += [flag] if value is True else [flag, str(value)]
    return line


def _command(line: list[str], folder: Path) -> tuple[int, str, str]:
    out, err, before = io.StringIO(), io.StringIO(), Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = commands.main(line)
    finally:
        os.chdir(before)
    commands.check(code, out.getvalue(), err.getvalue(), json_asked="--json" in line)
    return code, out.getvalue(), err.getvalue()


def laws_of_lines(asked: Session, forecast: pc.Forecast | None) -> str:
    """The command line says what Python says, or refuses what Python refuses."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        line = _said(folder, asked.drawn)
        if line is None:
            return ""
        code, out, err = _command(["predict", *line, "--json", *asked.drawn.told], folder)
        if forecast is None:
            return "" if code == 2 else f"refused by Python, and by the command line {code}"
        if code:
            return f"the command line ends with {code}: {err[-300:]}"
        said, figures = json.loads(out), forecast.to_dict()
        for key, value in figures.items():
            # A model of a file is called after it.
            if key in (*_MADE, "provenance") or "--jitter" in asked.drawn.told:
                continue
            if word := apart(value, said.get(key, _GONE), f".{key}"):
                return f"by the command line {word}"
        return _other_command(asked, line, folder)


def _other_command(asked: Session, line: list[str], folder: Path) -> str:
    """One of the other commands about a plan answers or refuses in words."""
    types = (f"--{name}-dtype" for name in ("grad", "param", "state", "reduce"))
    plain = _without(line, "--what-if", "--fidelity", *types)
    plain = [word for word in plain if word != "--cuda-graphs"]
    others = (
        ("predict", "--datasheet"), ("compare", "-s", "mb=1"), ("compile", "--json"), ("explain",),
        ("gradients", "--json"), ("train", "--tokens", "1M", "--failures", "none", "--json"),
        ("export", "chakra", "-o", "out"), ("export", "launch", "megatron-core"),
    )  # fmt: skip
    first, *more = others[asked.drawn.seed % len(others)]
    words = [first, *more[:1], *plain, *more[1:]] if first == "export" else [first, *plain, *more]
    _command(words, folder)
    return ""


def fault_of(drawn: Drawn) -> str | None:
    """What is wrong with a session, nothing, or None where all of its plans are refused.

    Who is refused asks for something simpler.
    """
    plans = [drawn.strategy, *simpler(drawn)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asked = Session(drawn)
        for number, strategy in enumerate(plans):
            drawn.strategy = strategy
            try:
                forecast = asked.ask()
            except pc.InputError as error:
                word = unclear(str(error)) or (laws_of_lines(asked, None) if number == 0 else "")
                if word:
                    return word
                continue
            word = laws_of_one(asked, forecast) or laws_of_ways(asked, forecast)
            word = word or laws_of_forms(asked, forecast) or laws_of_time(asked, forecast)
            word = word or laws_of_chance(asked, forecast, drawn.seed)
            word = word or laws_of_memory(asked, forecast) or laws_of_lines(asked, forecast)
            if not word and asked.model.parameters < MOST_PARAMETERS:
                word = laws_of_rankings(asked)
            return f"+{asked.plans} {word}"
    return None


def main() -> int:
    """Runs a shard of so many sessions."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="sessions of all shards")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first")
    parser.add_argument("--shard", default="0/1", help="I/N: every Nth session from the Ith on")
    parser.add_argument("--show", action="store_true", help="only print the sessions")
    options = parser.parse_args()
    first, _, step = options.shard.partition("/")
    seeds = list(range(options.seed + int(first), options.seed + options.count, int(step)))
    if options.show:
        for seed in seeds:
            print(f"{seed}: {draw(seed)}")
        return 0
    return children.run_all(seeds, lambda seed: fault_of(draw(seed)), draw)


if __name__ == "__main__":
    sys.exit(main())
