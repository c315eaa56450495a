"""A few hundred changed files of each reader in Python: read, or refused with an InputError."""

from __future__ import annotations

import pytest

from tests.fuzz.readers import NAMES, readers
from tests.fuzz.run import run

CASES = 200  # of each; `make fuzz` runs more


@pytest.mark.parametrize("target", NAMES)
def test_changed_files_are_read_or_refused(target, tmp_path, monkeypatch):
    monkeypatch.setenv("READER_SLACK", "8")  # a slow machine is no slow reader
    result = run(target, range(CASES), tmp_path)
    assert not result.findings, "\n".join(map(str, result.findings))
    assert sum(result.outcomes.values()) == CASES
    assert result.outcomes["refused"] > 0


@pytest.mark.parametrize("name", readers())
def test_seeds_are_read(name, tmp_path):
    reader = readers()[name]
    for path, data in reader.files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(data)
    reader.read(tmp_path if reader.whole else tmp_path / next(iter(reader.files)))
