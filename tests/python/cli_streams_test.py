"""Streams that end, fill up or cannot show a character; a user who presses Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import pytest

COMPILE = ("compile", "-c", "dgx-a100-80g:1", "-s", "tp=8,mb=1", "--dump-after", "all")
PREDICT = ("predict", "-c", "dgx-a100-80g:1", "-s", "tp=8,mb=1")


@pytest.fixture
def start(small_file):
    def run(arguments, **streams):
        command = [sys.executable, "-m", "plancast", *arguments, "-m", small_file]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        environment.update(streams.pop("environment", {}))
        return subprocess.Popen(
            command, **{"stderr": subprocess.PIPE, **streams}, env=environment, text=True
        )

    return run


def test_a_reader_that_goes_away_is_no_error(start):
    process = start(COMPILE, stdout=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 0


@pytest.mark.parametrize("arguments", [PREDICT, (*PREDICT, "--json")])
def test_a_full_disk_is_said_in_one_line(start, arguments):
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "w") as full:
        process = start(arguments, stdout=full)
        said = process.communicate()[1]
    assert process.returncode == 2
    assert said.count("\n") == 1
    assert "no space is left" in said


def test_a_terminal_without_unicode_still_gets_the_table(start):
    process = start(
        PREDICT, stdout=subprocess.PIPE, environment={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    )
    out, said = process.communicate()
    assert process.returncode == 0, said
    assert "iteration" in out


def test_ctrl_c_stops_in_one_line(cli, small_file, monkeypatch):
    @contextlib.contextmanager
    def pressed(what):
        yield lambda done, total: signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("plancast.cli.progress.progress_bar", pressed)
    arguments = ("rank", "-m", small_file, "-c", "dgx-a100-80g:1", "--batch", "8")
    assert cli(*arguments) == (130, "", "plancast: stopped\n")


def test_ctrl_c_stops_a_busy_core():
    # A long computation in C without the interpreter's lock stands for the core. Python's own
    # handler does nothing here, as if it waited for it.
    script = """
import hashlib, os, signal, threading
from plancast.cli.interrupt import stops_at_once
signal.signal(signal.SIGINT, lambda *_: None)
with stops_at_once(grace=0):
    threading.Timer(0, os.kill, (os.getpid(), signal.SIGINT)).start()
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", 2_000_000_000)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=60
    )
    assert (done.returncode, done.stderr) == (130, "plancast: stopped\n")
