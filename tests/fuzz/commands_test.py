"""Odd command lines with changed files: answered, or refused with an InputError."""

from __future__ import annotations

import pytest

from tests.fuzz.commands import COMMANDS, check
from tests.fuzz.run import run

CASES = 25  # of each; `make fuzz` runs more


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_odd_command_lines_are_answered_or_refused(command, tmp_path):
    result = run(command, range(CASES), tmp_path)
    assert not result.findings, "\n".join(map(str, result.findings))
    assert sum(result.outcomes.values()) == CASES


@pytest.mark.parametrize(
    ("code", "out", "err"),
    [
        (1, "", "plancast: a defect of plancast: KeyError"),
        (2, "", ""),
        (2, "", "Traceback"),
        (0, '{"time_s": -1}', ""),
        (0, '{"memory": [{"activations_bytes": -5}]}', ""),
        (0, '{"share": NaN}', ""),
    ],
)
def test_answers_that_no_command_may_give_are_found(code, out, err):
    with pytest.raises(AssertionError):
        check(code, out, err, json_asked=True)


def test_figures_with_a_sign_may_have_it():
    check(0, '{"change_s": -1, "root": -1, "error": {"time_s": -0.5}}', "", json_asked=True)
