"""The Python sessions in docs show what Plancast answers today."""

import doctest
from pathlib import Path

import plancast
import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(
    str(page.relative_to(DOCS))
    for page in [*DOCS.glob("*.md"), *DOCS.glob("questions/*.md")]
    if ">>> " in page.read_text()
)


def test_there_are_sessions() -> None:
    assert "worked_splits.md" in PAGES


@pytest.mark.parametrize("page", PAGES)
def test_sessions(page: str) -> None:
    # A fence ends a session as a blank line does.
    text = (DOCS / page).read_text().replace("\n```\n", "\n\n```\n")
    test = doctest.DocTestParser().get_doctest(text, {"plancast": plancast}, page, page, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test)
    assert runner.failures == 0
