"""`plancast --help` stays fast: it imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("rich", "yaml", "numpy", "pandas", "plancast._core", "plancast.forecast")


def test_help_imports_nothing_heavy():
    script = (
        "import sys\n"
        "from plancast.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        f"sys.stderr.write(' '.join(m for m in {HEAVY!r} if m in sys.modules))\n"
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True
    )
    assert "COMMAND" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    "command",
    [
        "predict",
        "rank",
        "plan",
        "compare",
        "train",
        "learn",
        "validate",
        "compile",
        "calibrate",
        "list",
        "show",
        "doctor",
        "cluster",
    ],
)
def test_every_command_has_help(cli, capsys, command):
    with pytest.raises(SystemExit) as stop:
        cli(command, "--help")
    assert stop.value.code == 0
    assert "--json" in capsys.readouterr().out


def test_version(cli):
    code, out, _ = cli("--version")
    assert code == 0
    assert out.startswith("plancast ")


def test_no_command_shows_the_help(cli):
    code, out, _ = cli()
    assert code == 0
    assert "COMMAND" in out
