"""Result files are whole or as they were, whoever is killed, stopped or out of space."""

from __future__ import annotations

import errno
import os
import random
import resource
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from plancast import files, output
from plancast.errors import InputError

SEED = 20261122


def python(script: str, *arguments: str, **more) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **more,
    )


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_a_new_file_is_written_with_usual_permissions(tmp_path):
    files.write_text(tmp_path / "new.txt", "text")
    (tmp_path / "usual").touch()
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("new.txt", "usual")}
    assert len(modes) == 1
    assert contents(tmp_path) == {"new.txt": "text", "usual": ""}


def test_a_replaced_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "old.txt"
    path.write_text("old")
    path.chmod(0o640)
    files.write_text(path, "new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o640)


def test_a_link_stays_and_its_target_changes(tmp_path):
    (tmp_path / "there").mkdir()
    target, link, dangling = tmp_path / "there" / "t", tmp_path / "link", tmp_path / "dangling"
    target.write_text("old")
    link.symlink_to("there/t")
    dangling.symlink_to("there/new")
    files.write_text(link, "new")
    files.write_text(dangling, "made")
    assert link.is_symlink()
    assert dangling.is_symlink()
    assert contents(tmp_path / "there") == {"t": "new", "new": "made"}


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "old.txt"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"old.txt` cannot be written: No space left on device"):
        files.write_text(path, "new")
    assert contents(tmp_path) == {"old.txt": "old"}


def test_a_file_too_large_for_its_limit_leaves_the_old_one(tmp_path):
    path = tmp_path / "old.txt"
    path.write_text("old")
    script = """
import sys
from plancast import files
try:
    files.write_text(sys.argv[1], "x" * 1_000_000)
except files.InputError as error:
    print(error)
"""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    said, errors = python(script, str(path), preexec_fn=limit).communicate()
    assert "old.txt` cannot be written: File too large" in said, errors
    assert contents(tmp_path) == {"old.txt": "old"}


def test_a_full_disk_leaves_the_old_file(tmp_path):
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        path = tmp_path / "old.txt"
        path.write_text("old")
        with pytest.raises(InputError, match="No space left on device"):
            files.write_text(path, "x" * 1_000_000)
        many = {tmp_path / f"{n}.txt": "x" * 10_000 for n in range(10)}
        with pytest.raises(InputError, match=r"\d.txt` cannot be written: No space left"):
            files.write_set({path: "new", **many})
        assert contents(tmp_path) == {"old.txt": "old"}
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path):
    path = tmp_path / "old.txt"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(InputError, match="Permission denied"):
        files.write_text(path, "new")
    assert contents(tmp_path) == {"old.txt": "old"}


def test_a_folder_that_takes_no_file_still_lets_its_files_change(tmp_path, monkeypatch):
    def refuse(**_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    path = tmp_path / "old.txt"
    path.write_text("old")
    monkeypatch.setattr(output.tempfile, "mkdtemp", refuse)
    files.write_text(path, "new")
    assert path.read_text() == "new"
    with pytest.raises(InputError, match=r"other.txt` cannot be written: Permission denied"):
        files.write_text(tmp_path / "other.txt", "new")


def test_a_mounted_file_that_cannot_be_replaced_is_written(tmp_path, monkeypatch):
    def busy(*_):
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    path = tmp_path / "old.txt"
    path.write_text("old")
    monkeypatch.setattr(os, "replace", busy)
    files.write_text(path, "new")
    assert contents(tmp_path) == {"old.txt": "new"}


def test_a_pipe_is_written_straight(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    files.write_text(pipe, "text")
    reader.join()
    assert read == ["text"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "link"])
def test_standard_output_is_written_straight(tmp_path, name):
    link = tmp_path / "link"
    link.symlink_to("/dev/stdout")
    script = "import sys; from plancast import files; files.write_text(sys.argv[1], 'text')"
    path = str(link) if name == "link" else name
    assert python(script, path).communicate() == ("text", "")
    # And a file that it goes to stays that file.
    with open(tmp_path / "out", "w+") as out:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-c", script + "; print(' and more')", path]
        subprocess.run(command, stdout=out, env=environment, check=True)
        assert os.path.samestat(os.fstat(out.fileno()), os.stat(tmp_path / "out"))
    assert "more" in (tmp_path / "out").read_text()


def test_a_device_is_written_straight():
    files.write_text("/dev/null", "text")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    if os.path.exists("/dev/full"):
        with pytest.raises(InputError, match=r"`/dev/full` cannot be written: No space left"):
            files.write_text("/dev/full", "text")


def test_a_set_is_all_or_none(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(f"old {name}")
    with pytest.raises(LookupError), output.Outputs() as outputs:
        outputs.write(tmp_path / "a", b"new a")
        outputs.remove(tmp_path / "c")
        raise LookupError
    assert contents(tmp_path) == {name: f"old {name}" for name in "abc"}
    with output.Outputs() as outputs:
        outputs.write(tmp_path / "a", b"new a")
        outputs.write(tmp_path / "b", b"new b")
        outputs.remove(tmp_path / "c")
        outputs.remove(tmp_path / "d")
    assert contents(tmp_path) == {"a": "new a", "b": "new b"}


@pytest.mark.parametrize("failing", range(1, 8))
def test_a_set_goes_back_where_a_file_cannot_be_put(tmp_path, monkeypatch, failing):
    calls = 0
    rename = os.rename

    def some(source, target):
        nonlocal calls
        calls += 1
        if calls == failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rename(source, target)

    for name in "abc":
        (tmp_path / name).write_text(f"old {name}")
    monkeypatch.setattr(os, "rename", some)
    new = {tmp_path / name: f"new {name}" for name in "abd"}

    def write():
        with output.Outputs() as outputs:
            for path, text in new.items():
                outputs.write(path, text.encode())
            outputs.remove(tmp_path / "c")

    if failing > 6:
        write()
        assert contents(tmp_path) == {name: f"new {name}" for name in "abd"}
        return
    with pytest.raises(OSError, match="Input/output error"):
        write()
    assert contents(tmp_path) == {name: f"old {name}" for name in "abc"}


# Writes sets of three files again and again: each whole, and the third only of every second.
WRITER = """
import sys
from pathlib import Path
from plancast.output import Outputs
folder = Path(sys.argv[1])
for turn in range(10**9):
    with Outputs() as outputs:
        for name in "abc"[: 3 - turn % 2]:
            outputs.write(folder / name, (f"{turn} " * 5000).encode())
        if turn % 2:
            outputs.remove(folder / "c")
    if turn == 3:
        print("ready", flush=True)
"""


def test_whoever_is_killed_leaves_whole_files_of_one_turn(tmp_path):
    random.seed(SEED)
    print(f"seed {SEED}")
    seen = set()
    for kill in range(12):
        folder = tmp_path / str(kill)
        folder.mkdir()
        writer = python(WRITER, str(folder))
        assert writer.stdout.readline() == "ready\n", writer.stderr.read()
        try:
            writer.wait(random.random() * 0.05)
        except subprocess.TimeoutExpired:
            writer.kill()
        writer.communicate()
        turns = {}
        for path in folder.iterdir():
            if path.is_file():
                words = path.read_text().split()
                assert len(words) == 5000
                assert len(set(words)) == 1
                turns[path.name] = int(words[0])
        # The first file is of the set that is there, or away.
        if "a" in turns:
            assert len(set(turns.values())) == 1
            assert ("c" in turns) == (turns["a"] % 2 == 0)
        seen.add(turns.get("a"))
    assert len(seen) > 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whoever_is_stopped_cleans_up(tmp_path, number):
    script = (
        "import signal; from plancast.cli.interrupt import stops_at_once, status_of\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def main():\n"
        "    with stops_at_once():\n"
        + "".join(f"        {line}\n" for line in WRITER.strip().splitlines())
        + "try:\n    main()\nexcept KeyboardInterrupt as error:\n"
        "    raise SystemExit(status_of(error))\n"
    )
    writer = python(script, str(tmp_path))
    assert writer.stdout.readline() == "ready\n", writer.stderr.read()
    writer.send_signal(number)
    _, errors = writer.communicate()
    assert (writer.returncode, errors) == (128 + number, "")
    assert set(contents(tmp_path)) in ({"a", "b"}, {"a", "b", "c"})


def test_a_busy_process_that_is_ended_at_once_cleans_up(tmp_path):
    # As a core that computes: the main thread does not come back to Python.
    script = """
import hashlib, os, signal, sys, threading
from pathlib import Path
from plancast.cli.interrupt import stops_at_once
from plancast.output import Outputs
with stops_at_once(grace=0), Outputs() as outputs:
    outputs.write(Path(sys.argv[1]) / "a", b"text")
    signal.signal(signal.SIGTERM, lambda *_: None)
    threading.Timer(0, os.kill, (os.getpid(), signal.SIGTERM)).start()
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", 2_000_000_000)
"""
    busy = python(script, str(tmp_path))
    assert busy.communicate()[1] == "plancast: stopped\n"
    assert busy.returncode == 128 + signal.SIGTERM
    assert contents(tmp_path) == {}


def test_compressed_files_are_the_same_every_time(tmp_path):
    import gzip

    path = tmp_path / "x.json.gz"
    files.write_text(path, "text")
    first = path.read_bytes()
    files.write_text(path, "text")
    assert path.read_bytes() == first
    assert gzip.decompress(first) == b"text"


def test_what_another_thread_writes_meanwhile_is_removed_too(tmp_path):
    outputs = output.Outputs()
    outputs.write(tmp_path / "a.txt", b"1")
    (stage,) = outputs._stages.values()
    begun, failed = threading.Event(), threading.Event()

    def write() -> None:
        number = 0
        while not failed.is_set():
            number += 1
            try:
                Path(stage, str(number)).write_bytes(b"1")
            except OSError:  # the folder is gone
                failed.set()
            begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    begun.wait()
    output.clean()
    writer.join(timeout=60)
    assert failed.is_set()
    assert list(tmp_path.iterdir()) == []


def test_none_is_begun_while_a_process_ends(tmp_path):
    done = threading.Event()

    def write() -> None:
        output.write_bytes(tmp_path / "a.txt", b"1")
        done.set()

    writer = threading.Thread(target=write)
    with output.ending():
        writer.start()
        assert not done.wait(0.05)
        assert list(tmp_path.iterdir()) == []
    writer.join(timeout=60)
    assert (tmp_path / "a.txt").read_bytes() == b"1"
