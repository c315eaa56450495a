"""Laws of sessions about what else a question gives: other forms, threads, tasks over time."""

from __future__ import annotations

import itertools
import json
import pickle
import random
from collections.abc import Callable
from typing import Protocol

import plancast as pc

from tests.fuzz.plans import apart, figures_of, senseless_timeline

MOST_TASKS = 3_000  # of one device of each class, that are told or drawn one by one
SAMPLES = 3
PICOSECOND = 1e-12  # what samples are rounded to


class Asks(Protocol):
    """What asks for the forecast of a session."""

    model: pc.Model
    machine: pc.Machine

    def strategy(self) -> pc.Strategy:
        """The plan."""

    def put(
        self, model: pc.Model, machine: pc.Machine, strategy: pc.Strategy, **more: object
    ) -> pc.Forecast:
        """The forecast of any plan, with the session's options, in a new session."""


def tasks_of(forecast: pc.Forecast) -> float:
    """Tasks of one device of each class."""
    figures = forecast.to_dict()
    return figures["tasks"] / forecast.devices * figures["device_classes"]


def laws_of_forms(asked: Asks, forecast: pc.Forecast) -> str:
    """Model, machine and plan as JSON, YAML or pickled say the same."""
    strategy = asked.strategy()
    forms: list[tuple[str, Callable[[], tuple[pc.Model, pc.Machine, pc.Strategy]]]] = [
        (
            "YAML",
            lambda: (
                asked.model,
                pc.Machine.from_yaml(asked.machine.to_yaml()),
                pc.Strategy.from_yaml(strategy.to_yaml()),
            ),
        ),
        (
            "JSON",
            lambda: (
                asked.model,
                pc.Machine.from_dict(json.loads(json.dumps(asked.machine.to_dict()))),
                pc.Strategy.from_dict(json.loads(json.dumps(strategy.to_dict()))),
            ),
        ),
        ("pickles", lambda: pickle.loads(pickle.dumps((asked.model, asked.machine, strategy)))),
    ]
    for what, form in forms:
        model, machine, plan = form()
        if machine != asked.machine or plan != strategy or model != asked.model:
            return f"another model, machine or plan from {what}"
        if word := apart(figures_of(forecast), figures_of(asked.put(model, machine, plan))):
            return f"from {what}: {word}"
    return ""


def laws_of_time(asked: Asks, forecast: pc.Forecast) -> str:
    """Tasks of a stream follow one another within the iteration; memory over time has its peak."""
    if tasks_of(forecast) > MOST_TASKS:
        return ""
    told = asked.put(asked.model, asked.machine, asked.strategy(), timeline=True)
    return apart(figures_of(forecast), figures_of(told)) or senseless_timeline(told)


def laws_of_chance(asked: Asks, forecast: pc.Forecast, seed: int) -> str:
    """Random iterations are the same with any threads, and in order."""
    rng = random.Random(f"chance {seed}")
    if tasks_of(forecast) * forecast.devices > MOST_TASKS or rng.random() < 0.7:
        return ""
    given = {"jitter": rng.choice((0.0, 0.02, 0.3)), "seed": rng.randrange(1 << 64)}
    given["stragglers"] = rng.choice(("1%:0.9", "30%:0.5")) if not given["jitter"] else None
    drawn = []
    for workers in (1, 3):
        randomness = pc.Randomness(samples=SAMPLES, workers=workers, **given)
        try:
            told = asked.put(
                asked.model, asked.machine, asked.strategy(), randomness=randomness
            ).distribution
        except pc.InputError:
            return ""  # some plans cannot be drawn from; words are checked where nothing is random
        assert told is not None
        drawn.append(told.to_dict())
    if word := apart(drawn[0], drawn[1]):
        return f"random iterations with 3 threads: {word}"
    samples = drawn[0]["samples_s"]
    order = [
        0,
        min(samples),
        *(drawn[0][name] for name in ("p5_s", "p50_s", "p95_s")),
        max(samples),
    ]
    if any(b < a - PICOSECOND for a, b in itertools.pairwise(order)):
        return f"random iterations are not in order: {drawn[0]}"
    return ""
