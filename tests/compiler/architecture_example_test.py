"""The examples in docs/architecture.md and docs/moe.md are what the compiler prints today."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/compiler/golden"
EXAMPLES = [(dump, "architecture.md") for dump in sorted(GOLDEN.glob("mlp_2x2.*.txt"))] + [
    (dump, "moe.md") for dump in sorted(GOLDEN.glob("moe_2x2.*.txt"))
]


def test_there_is_a_dump_of_every_pass() -> None:
    assert len(EXAMPLES) == 7 + 4


@pytest.mark.parametrize(("golden", "page"), EXAMPLES, ids=lambda value: getattr(value, "name", ""))
def test_the_page_shows_the_dump(golden: Path, page: str) -> None:
    shown = (ROOT / "docs" / page).read_text()
    dump = "".join(f"    {line}\n" for line in golden.read_text().splitlines())
    assert dump in shown, f"docs/{page} differs from {golden.name}: paste the new dump"
