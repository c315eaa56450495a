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


@pytest.mark.parametrize(
    "line",
    [
        "--help",
        "--version",
        "predict --help",
        "predict -m MODEL -c dgx-a100-80g:1 -s tp=8,mb=1",
        "predict -m MODEL -c dgx-a100-80g:1 -s tp=8,mb=1 --json",
        "predict -m MODEL -c dgx-a100-80g:1 -s tp=8,mb=1 --trace /dev/stdout",
        "rank -m MODEL -c dgx-a100-80g:1 --batch 8 --space tp=8,mb=1",
        "compare -m MODEL -c dgx-a100-80g:1 -s tp=8,mb=1 -s tp=4,mb=1 --batch 8",
        "compile -m MODEL -c dgx-a100-80g:1 -s tp=8,mb=1 --dump-after all",
        "collective -c dgx-a100-80g:1 --bytes 1M",
        "profile --dry-run",
        "import nccl dgx-h100:1",
        "import nccl dgx-h100:1 --json",
        "export msccl --op all_reduce --gpus 8",
        "export flows --op all_reduce --gpus 8 --bytes 4M",
        "export launch torchtitan -m MODEL -c dgx-a100-80g:1 -s dp=8,mb=1",
    ],
)
def test_every_command_outlives_its_reader(small_file, line):
    arguments = [small_file if word == "MODEL" else word for word in line.split()]
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "plancast", *arguments],
            stdout=write,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            text=True,
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_exit_code_is_the_same_without_a_reader(start):
    read, write = os.pipe()
    os.close(read)
    unfit = ("predict", "-c", "t4-pcie:1", "-s", "mb=4096", "--require-fit")
    assert start(unfit, stdout=write).wait() == 3
    assert start((*PREDICT[:-1], "tp=99"), stdout=write, stderr=write).wait() == 2
    os.close(write)


@pytest.mark.parametrize("arguments", [PREDICT, (*PREDICT, "--json")])
def test_a_full_disk_is_said_in_one_line(start, arguments):
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "w") as full:
        process = start(arguments, stdout=full)
        said = process.communicate()[1]
    assert process.returncode == 2
    assert said.count("\n") == 1
    assert said == "plancast: standard output cannot be written: No space left on device.\n"


@pytest.mark.parametrize("arguments", [PREDICT, (*PREDICT, "--json")])
def test_a_full_file_system_of_a_result_file_is_not_that_of_the_output(start, tmp_path, arguments):
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    process = start((*arguments, "--trace", "/dev/full"), stdout=subprocess.PIPE)
    out, said = process.communicate()
    assert (process.returncode, out) == (2, "")
    assert said == "plancast: `/dev/full` cannot be written: No space left on device.\n"


def test_a_terminal_without_unicode_still_gets_the_table(start):
    process = start(
        PREDICT, stdout=subprocess.PIPE, environment={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    )
    out, said = process.communicate()
    assert process.returncode == 0, said
    assert "iteration" in out


def test_ctrl_c_stops_in_one_line(cli, small_file, monkeypatch):
    @contextlib.contextmanager
    def pressed(progress, what):
        yield lambda done, total: signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("plancast.planning.following", pressed)
    arguments = ("rank", "-m", small_file, "-c", "dgx-a100-80g:1", "--batch", "8")
    assert cli(*arguments) == (130, "", "plancast: stopped\n")


def test_ctrl_c_prints_what_a_ranking_has_found(cli, small_file, monkeypatch):
    class Pressed:
        def __call__(self, done, total):
            pass

        def found(self, strategy, value, bound):
            signal.raise_signal(signal.SIGINT)

    @contextlib.contextmanager
    def pressed(progress, what):
        yield Pressed()

    monkeypatch.setattr("plancast.planning.following", pressed)
    arguments = ("rank", "-m", small_file, "-c", "dgx-a100-80g:1", "--batch", "8", "--top", "1")
    code, out, err = cli(*arguments)
    # All may be over when it is pressed.
    assert code in (130, 0)
    assert err == ""
    assert "MFU" in out
    assert code == 0 or "plans were not decided on and may be better" in " ".join(out.split())


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
