"""Some cases of threads that share one session; `make soak` runs more."""

from __future__ import annotations

from tests.fuzz import children
from tests.fuzz.threads import fault_of

CASES = 24


def test_each_answer_of_threads_is_that_of_one_alone():
    faults: list[str] = []
    outcomes = children.run(list(range(CASES)), fault_of, str, faults.append)
    assert not faults, "\n".join(faults)
    assert outcomes["good"] > CASES / 2
    assert outcomes["plans"] > 10 * CASES
