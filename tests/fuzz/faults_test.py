"""Some faults of the world on every command that writes; `make soak` runs 200 of each."""

from __future__ import annotations

import ast
import os
import re
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import plancast as pc
import pytest

from tests.fuzz.fault_commands import COMMANDS, PAGES
from tests.fuzz.faults import FAULTS, campaign, can_mount

MOUNTS = ("full", "read-only")
SOURCES = Path(pc.__file__).parent
# What writes a file otherwise than by plancast.output, and why it may.
STRAIGHT = {
    "output.py": "the one place",
    "cli/streams.py": "standard output, where the caller has closed it",
}
# Of wall-clock time only the date, as a label of what was measured, is asked for.
DATES = {"cli/calibrate.py", "cli/validate.py", "profiling/torch_backend.py"}


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in PAGES])
def test_whoever_is_killed_or_stopped_leaves_whole_files(command):
    words: list[str] = []
    faults = [fault for fault in FAULTS if fault not in MOUNTS]
    campaign([command], faults, range(1), words.append)
    assert not words, "\n".join(words)


@pytest.mark.parametrize("command", ["ingest", "rank", "trace", "export"])
def test_a_full_or_closed_disk_is_told(command):
    if not can_mount():
        pytest.skip("a small disk cannot be mounted here")
    words: list[str] = []
    campaign([command], list(MOUNTS), range(2), words.append)
    assert not words, "\n".join(words)


def test_forks_and_threads_answer_as_one_does():
    model, machine = pc.Model.preset("gpt2", seq=64), pc.Machine.preset("dgx-h100", hosts=1)
    session = pc.Session()

    def times(session: pc.Session, workers: int = 2) -> list[float]:
        space = "tp=1|2,pp=1|2,vpp=1,mb=1,recompute=none,zero=0|1,sp=0,ep=1,cp=1"
        ranking = pc.rank(model, machine, batch=8, space=space, session=session, workers=workers)
        return [plan.iteration_time for plan in ranking]

    expected = times(pc.Session(), 1)
    with ThreadPoolExecutor(4) as pool:
        busy = [pool.submit(times, session) for _ in range(8)]
        child = os.fork()
        if child == 0:  # while threads compute
            os._exit(0 if times(pc.Session()) == expected else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert [one.result() for one in busy] == [expected] * 8
    child = os.fork()
    if child == 0:
        os._exit(0 if times(session) == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_child_may_use_the_session_and_the_records_that_threads_compute_with(tmp_path):
    model, machine = pc.Model.preset("gpt2", seq=64), pc.Machine.preset("dgx-h100", hosts=1)
    records = pc.Records(tmp_path / "kernels.db")
    records.add(pc.Kernel.gemm(64, 768, 768), gpu="H100-SXM-80GB", seconds=1e-5)
    session = pc.Session(records=records)
    kernel = pc.Kernel.gemm(64, 768, 704)

    def answers(session: pc.Session) -> list[float]:
        plans = ("tp=2", "tp=2,sp", "mb=1", "pp=2,mb=1", "zero=1")
        times = [pc.predict(model, machine, plan, session=session) for plan in plans]
        return [records.estimate(kernel, machine).seconds, *(one.iteration_time for one in times)]

    expected, stop = answers(pc.Session(records=records)), threading.Event()

    def compute() -> bool:
        same = True
        while not stop.is_set():
            same &= answers(session) == expected
        return same

    with ThreadPoolExecutor(3) as pool:
        busy = [pool.submit(compute) for _ in range(3)]
        try:
            for _ in range(40):
                child = os.fork()
                if child == 0:
                    signal.alarm(120)  # it would wait for ever
                    os._exit(0 if answers(session) == expected else 1)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        finally:
            stop.set()
        assert [one.result() for one in busy] == [True] * 3


def _calls(path: Path) -> list[str]:
    """What a module calls, as `open(.., 'w')`, `os.replace`, `path.write_text`."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            mode = [a.value for a in node.args[1:2] if isinstance(a, ast.Constant)]
            found.append(f"{name}({mode[0] if mode else ''})")
    return found


def _modules() -> list[tuple[str, Path]]:
    return [(str(path.relative_to(SOURCES)), path) for path in sorted(SOURCES.rglob("*.py"))]


def test_every_file_is_written_in_one_place():
    writes = re.compile(
        r"^(open|io\.open|os\.fdopen|gzip\.open|.*\.open)\([rb+]*[wax]|"
        r"^(?!files\.|output\.).*\.write_(text|bytes)\(|^(os\.(rename|replace)|shutil\.(copy|move))"
    )
    found = {name for name, path in _modules() for call in _calls(path) if writes.search(call)}
    assert found - set(STRAIGHT) == set()


def test_no_wait_and_no_duration_goes_by_a_clock_that_can_go_back():
    wall = re.compile(r"^(time\.time|datetime\.datetime\.(now|utcnow)|datetime\.date\.today)\(")
    found = {name for name, path in _modules() for call in _calls(path) if wall.search(call)}
    assert found <= DATES
