"""A few hundred changed files of each kind: read, or refused with an InputError."""

from __future__ import annotations

import pytest

from tests.fuzz.run import run
from tests.fuzz.targets import WRITERS


@pytest.mark.parametrize("target", sorted(WRITERS))
def test_changed_files_are_read_or_refused(target, tmp_path):
    outcomes = run(target, range(200), tmp_path)
    assert sum(outcomes.values()) == 200
    assert outcomes["refused"] > 0
