"""Some random strategy trees: `make fuzz FUZZ=trees` runs more."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.fuzz.outline import Outline
from tests.fuzz.random_tree import NODE, PLAN, draw
from tests.fuzz.run import run
from tests.fuzz.small_models import build
from tests.fuzz.trees import unclear

CASES = 1200


def test_random_trees_forecast_or_are_refused_in_words(tmp_path: Path) -> None:
    result = run("trees", range(CASES), tmp_path)
    assert not result.findings, "\n".join(map(str, result.findings))
    assert sum(result.outcomes.values()) == CASES
    assert result.outcomes["read"] > CASES / 4


def test_every_directive_is_drawn() -> None:
    trees = [draw(seed).document for seed in range(400)]
    nodes = Counter(
        key for tree in trees for said in tree.get("nodes", {}).values() for key in said
    )
    assert set(nodes) == set(NODE)
    keys = {item.partition("=")[0] for tree in trees for item in tree["plan"].split(",")}
    assert keys == set(PLAN)
    assert all(any(key in tree for tree in trees) for key in ("stages", "load"))
    places = [stage for tree in trees for stage in tree.get("stages", ())]
    assert all(any(key in stage for stage in places) for key in ("mesh", "devices", "mb"))


def test_a_number_always_draws_the_same_tree() -> None:
    assert draw(7).text() == draw(7).text()
    assert len({draw(seed).text() for seed in range(50)}) == 50


def test_stages_are_said_by_their_nodes() -> None:
    outline = Outline.of(build("tiny-gpt"))
    assert outline.nodes((0, 0, 0), (1, 2, 0)) == ["embedding", "layers[0:2]"]
    assert outline.nodes((1, 3, 0), (3, 0, 0)) == ["layers.3", "head"]
    ops = outline.modules[1].ops
    inside = outline.nodes((1, 0, 0), (1, 1, 2))
    assert inside == ["layers.0", f"layers.1.{ops[0]}", f"layers.1.{ops[1]}"]
    rest = outline.nodes((1, 1, 2), (1, 2, 0))
    assert rest == [f"layers.1.{op}" for op in ops[2:]]


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        ("", "without words"),
        ("block `x`: an out-port names task 0 of 0", "does not end"),
        ("INTERNAL: out of range.", "`INTERNAL`"),
        ("it cannot be done.", "names nothing"),
        ("`tp=3` does not divide 8 heads.", ""),
    ],
)
def test_refusals_say_what_and_where(refusal: str, said: str) -> None:
    assert said in unclear(refusal) if said else unclear(refusal) == ""
