"""PROTEUS-1: what Proteus's compiler makes of its own examples, and what ours makes of them.

The strategies are in cases.py, what differs and why in differences.py; docs/proteus.md
shows both.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from buckets import in_buckets
from cases import CASES, WITHOUT, graph
from differences import DIFFERENCES, of
from ours import Ours
from theirs import Theirs

SHARED = os.environ.get("PLANCAST_SHARED_DATA", "")
ORACLES = Path(SHARED) / "oracles" / "proteus"
pytestmark = pytest.mark.skipif(
    not SHARED or not ORACLES.is_dir(),
    reason="needs Proteus's compiled examples: PLANCAST_SHARED_DATA",
)

CHECKS = (
    "forward",
    "backward",
    "recompute",
    "collectives",
    "messages",
    "buckets",
    "state",
    "layouts",
    "order",
)


@cache
def theirs(name: str) -> Theirs:
    return Theirs(ORACLES / f"{name}.json")


@cache
def ours(name: str) -> Ours:
    case = CASES[name]
    without = WITHOUT.get(case.model, ())
    return Ours(
        graph(case.model),
        case.strategy,
        theirs(name),
        without=without,
        batch=case.batch,
        devices=case.devices,
    )


def facts_of(side: Theirs | Ours, check: str) -> Counter[Any]:
    if check in ("forward", "backward", "recompute"):
        return side.compute(check)
    if check == "buckets" and isinstance(side, Ours):
        return side.gradients()  # the rule comes behind what differs
    found: Counter[Any] = getattr(side, check)()
    return found


def taken_over(name: str, check: str, without: str = "") -> Counter[Any]:
    """Our facts with the differences of the case, but for those whose reason is `without`."""
    facts = facts_of(ours(name), check)
    for difference in of(name, check):
        if difference.reason != without:
            facts = difference.change(facts, ours(name))
    if check == "buckets":
        return Counter(in_buckets(facts, theirs(name).created, theirs(name).limits))
    return facts


def test_every_file_is_a_case():
    assert {path.stem for path in ORACLES.glob("*.json")} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_the_model_is_the_same(name):
    """Ops in the same order, which pairing them checks, and the same parameters."""
    plan, counts = ours(name), theirs(name).counts
    paired = [op for copy in plan.pairing.copies for op in copy.ops.values()]
    without = WITHOUT.get(CASES[name].model, ())
    assert sorted([*paired, *without]) == sorted(op for op, _ in theirs(name).ops)
    assert plan.parameters == counts["parameter_elements"]
    assert len({parameter for parameter, *_ in plan.layouts()}) == counts["parameters"]
    assert plan.micro_batches == theirs(name).file["schedule"]["micro_batches"]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", CASES)
def test_the_graph_is_the_same(name, check):
    """Multisets of facts; `buckets` are those that Proteus's rule makes of our gradients."""
    made, wanted = taken_over(name, check), facts_of(theirs(name), check)
    if check == "order" and not wanted:
        return  # its simulation did not end
    assert not made - wanted, "ours alone"
    assert not wanted - made, "theirs alone"


@pytest.mark.parametrize("name", CASES)
def test_every_difference_is_needed(name):
    """Without any that is named for the case, the two sides differ."""
    for check in CHECKS:
        wanted = facts_of(theirs(name), check)
        for one in of(name, check):
            assert taken_over(name, check, without=one.reason) != wanted, f"no longer: {one.reason}"


def test_every_difference_is_of_a_case():
    for one in DIFFERENCES:
        for check in one.checks:
            assert any(one.applies(name, check) for name in CASES), one.reason


@pytest.mark.parametrize("name", CASES)
def test_reductions_are_as_compiled(name):
    """The gradients above are what the compiled collectives of each stage carry, byte for byte."""
    plan = ours(name)
    for stage, wanted in enumerate(plan.reduced_bytes()):
        owed: Counter[frozenset[int]] = Counter()
        for one in plan.gradients():
            if one.stage == stage and len(one.group) > 1:
                owed[one.group] += one.bytes
        assert set(owed.values()) == ({wanted} if wanted else set())
