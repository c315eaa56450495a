"""The example in docs/architecture.md is what the compiler prints today."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = sorted((ROOT / "tests/compiler/golden").glob("mlp_2x2.*.txt"))


def test_there_is_a_dump_of_every_pass() -> None:
    assert len(GOLDEN) == 7


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.name.split(".")[1])
def test_architecture_shows_the_dump(golden: Path) -> None:
    shown = (ROOT / "docs/architecture.md").read_text()
    dump = "".join(f"    {line}\n" for line in golden.read_text().splitlines())
    assert dump in shown, f"docs/architecture.md differs from {golden.name}: paste the new dump"
