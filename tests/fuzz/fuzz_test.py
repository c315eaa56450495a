"""A few hundred changed files of each kind: read, or refused with an InputError."""

from __future__ import annotations

import pytest

from tests.fuzz.run import run
from tests.fuzz.targets import WRITERS

CASES = 200


@pytest.mark.parametrize("target", sorted(WRITERS))
def test_changed_files_are_read_or_refused(target, tmp_path, monkeypatch):
    monkeypatch.setenv("READER_SLACK", "8")  # a slow machine is no slow reader
    result = run(target, range(CASES), tmp_path)
    assert not result.findings, "\n".join(map(str, result.findings))
    assert sum(result.outcomes.values()) == CASES
    assert result.outcomes["refused"] > 0
