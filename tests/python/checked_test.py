"""Arguments of wrong types are refused by name, whatever is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import plancast as pc
import pytest
from plancast.checked import checked, is_a
from plancast.communication.nccl import Topology

MACHINE = pc.Machine.preset("dgx-a100-80g", hosts=1)
# Made by plancast alone, without arguments, or of anything.
RESULTS = {
    "AlgorithmRun", "Buckets", "CollectiveRow", "CollectiveTable", "Distribution",
    "ExecutionGraph", "Fit",
    "Choice", "ClusterChange", "ClusterOutcome", "FoundSchedule", "InputError",
    "ExplainedDifference", "Explanation",
    "JobForecast", "LaunchConfig", "ParetoFront", "Plan", "Sensitivities", "SynthesizedAlgorithm",
    "WhatIf", "Comparison", "Sizing", "SpotRun", "TrainingRun", "Failures.names", "profiles",
    "profile_additions",
    "recompute_sets", "rules", "Machine.presets", "Model.presets", "Model.from_torch", "flows",
}  # fmt: skip


def refusal(call, *arguments, **named):
    with pytest.raises(pc.InputError) as error:
        call(*arguments, **named)
    return str(error.value)


def public():
    """Every public function, constructor and class method, by name."""
    for name in [*pc.__all__, "Topology"]:
        item = Topology if name == "Topology" else getattr(pc, name)
        if name in RESULTS:
            continue
        if not isinstance(item, type):
            yield name, item
            continue
        for member, value in vars(item).items():
            if f"{name}.{member}" in RESULTS:
                continue
            if not member.startswith("_") and isinstance(value, classmethod):
                yield f"{name}.{member}", getattr(item, member)
            if member == "__init__":
                yield name, item


@pytest.mark.parametrize("name", [name for name, _ in public()])
def test_what_is_public_names_the_argument_that_is_wrong(name):
    call = dict(public())[name]
    parameters = inspect.signature(call).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [p for p in parameters if p.kind in kinds and p.default is p.empty]
    named = {
        p.name: object()
        for p in parameters
        if p.kind is p.KEYWORD_ONLY and (p.default is p.empty or not positional)
    }
    wrong = [object() for _ in positional]
    if not wrong and not named:
        wrong = [object()]
    message = refusal(call, *wrong, **named)
    assert any(f"`{p.name}` is `<object object" in message for p in parameters), message
    assert "; give " in message


@pytest.mark.parametrize(
    ("option", "value", "wanted"),
    [
        ("batch", "8", "a whole number"),
        ("batch", 8.0, "a whole number"),
        ("dtype", 16, "text"),
        ("cuda_graphs", 1, "True or False or text"),
        ("timeline", 1, "True or False"),
        ("session", "s", "a Session, such as `Session()`"),
        ("records", "kernels.db", 'a Records, such as `Records("kernels.db")`'),
        ("what_if", ["nic=2x"], "text"),
        ("randomness", 0.1, "a Randomness, such as `Randomness(jitter=0.02)`"),
        ("fidelity", True, "text"),
    ],
)
def test_options_of_a_prediction(small, option, value, wanted):
    message = refusal(pc.predict, small, MACHINE, "tp=8,mb=1", **{option: value})
    assert message == f"`{option}` is `{value!r}`; give {wanted}."


@pytest.mark.parametrize(
    ("option", "value", "wanted"),
    [
        ("jitter", "0.1", "a number"),
        ("stragglers", 0.1, "text or a pair of a number"),
        ("samples", 1.5, "a whole number"),
        ("workers", None, "a whole number"),
    ],
)
def test_options_of_randomness(option, value, wanted):
    message = refusal(pc.Randomness, **{option: value})
    assert message.startswith(f"`{option}` is `{value!r}`; give {wanted}")


def test_nouns_say_how_they_are_made(small):
    assert refusal(pc.rank, "gpt2", MACHINE, batch=8) == (
        "`model` is `'gpt2'`; give a Model, such as `Model.preset(\"llama3-8b\")`."
    )
    assert "give a Strategy, such as" in refusal(pc.predict, small, MACHINE, 8)
    assert "give a Model, such as" in refusal(pc.Model, "gpt2")
    assert refusal(pc.flows, 8, bytes=1) == "`op` is `8`; give text."


def test_forecasts_and_rankings_name_wrong_arguments(small, tmp_path):
    forecast = pc.predict(small, MACHINE, "tp=8,mb=1")
    assert "`path` is `5`; give text or a path." in refusal(forecast.to_perfetto, 5)
    assert "`framework` is `5`; give text." in refusal(forecast.launch_config, 5)
    ranking = pc.rank(small, MACHINE, batch=8, space="tp=8,mb=1")
    assert "`path` is `5`; give text or a path." in refusal(ranking.write, 5)
    ranking.write(tmp_path / "plans.csv")


def test_a_long_value_is_cut(small):
    message = refusal(pc.predict, small, MACHINE, ["tp=8"] * 1000)
    assert len(message) < 200


def test_what_python_says_of_calls_stays():
    with pytest.raises(TypeError, match="missing 2 required positional arguments"):
        pc.predict(pc.Model.preset("gpt2"))
    with pytest.raises(TypeError, match="unexpected keyword argument 'bacth'"):
        pc.compare(bacth=1)


@pytest.mark.parametrize(
    ("value", "hint", "fits"),
    [
        (np.int64(8), int, True),
        (np.float32(8), float, True),
        (np.bool_(True), bool, True),
        (8, float, True),
        (True, float, False),
        (1, bool, False),
        (8.0, int, False),
        (None, int | None, True),
        ("a", str | Path, True),
        (Path("a"), str | Path, True),
        ("a", Path, False),
        (np.array([1.0]), Sequence[float], True),
        ([1, "a"], Sequence[float], False),
        ("ab", Sequence[str], False),
        ({"a": 1}, Sequence[str], False),
        ((0.1, 0.9), tuple[float, float], True),
        ((0.1,), tuple[float, float], False),
        (iter([1]), Iterable[int], True),
        (8, Iterable[int], False),
        ({"a": 1}, dict[str, Any], True),
        (print, Callable[[int], object], True),
        (8, Callable[[int], object], False),
        ("aware", Literal["aware", "unaware"], True),
        ("beware", Literal["aware", "unaware"], False),
    ],
)
def test_values_and_annotations(value, hint, fits):
    assert is_a(value, hint) is fits


def test_a_function_stays_what_it_is():
    @checked
    def double(count: int, *more: str, **rest: float) -> int:
        """Twice."""
        return 2 * count

    assert double.__doc__ == "Twice."
    assert double(2, "a", b=1.0) == 4
    assert refusal(double, 2, 3) == "`more` is `3`; give text."
    assert refusal(double, 2, b="1") == "`b` is `'1'`; give a number."
