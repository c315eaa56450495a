"""The harness itself: a case that ends its process is recorded, and the run goes on."""

from __future__ import annotations

import pytest

from tests.fuzz import run as harness

WORKER = """
import ctypes, os, signal, sys, time
from tests.fuzz import bounds, worker

def attempt(target, seed, folder):
    if seed == 3:
        raise KeyError("odd")
    if seed == 5:
        ctypes.string_at(0)
    if seed == 7:
        while True:
            pass
    if seed == 9:
        bytes(8 << 30)
    return seed % 2 == 0

bounds.CPU_SECONDS = bounds.READER_SECONDS = 0.2
worker.attempt = attempt
sys.exit(worker.main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), worker.Path(sys.argv[4])))
"""


@pytest.fixture
def faulty(monkeypatch, tmp_path):
    path = tmp_path / "faulty.py"
    path.write_text(WORKER)
    monkeypatch.setattr(harness, "WORKER", (str(path),))


def test_what_ends_the_process_is_recorded_and_the_run_goes_on(faulty, tmp_path):
    result = harness.run("yaml", range(12), tmp_path)
    assert result.outcomes == {"read": 6, "refused": 2}
    found = {finding.seed: finding.what for finding in result.findings}
    assert list(found) == [3, 5, 7, 9]
    assert "KeyError: 'odd'" in found[3]
    assert "a crash: SIGSEGV" in found[5]
    assert "a hang" in found[7]
    assert "MemoryError" in found[9]
    assert all(
        (finding.kept / "case").read_text() == str(finding.seed) for finding in result.findings
    )
