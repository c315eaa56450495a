"""Files that somebody names are read whole and in bounds, or refused with the reason."""

from __future__ import annotations

import gzip
import os
import socket

import plancast as pc
import pytest
from plancast import files
from plancast.communication.nccl import Topology


def refusal(call, *arguments, **named):
    with pytest.raises(pc.InputError) as error:
        call(*arguments, **named)
    return str(error.value)


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe.yaml"
    os.mkfifo(path)
    return path


@pytest.fixture
def endless(tmp_path):
    path = tmp_path / "endless.yaml"
    path.symlink_to("/dev/zero")
    return path


READERS = [
    files.read_text,
    files.read_bytes,
    files.read_mapping,
    pc.Machine.from_file,
    pc.Machine.from_nccl,
    pc.Model.from_file,
    pc.Model.from_hf,
    pc.Strategy.from_file,
    pc.launchers.read,
    pc.NcclTrace.open,
    pc.Algorithm.open,
    Topology.from_file,
]


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__qualname__)
def test_a_pipe_that_nobody_writes_to_is_refused(read, pipe):
    said = refusal(read, pipe)
    assert said.startswith(f"`{pipe}` is a pipe; only regular files are read.")


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__qualname__)
def test_a_device_behind_a_link_is_refused(read, endless):
    assert refusal(read, endless).startswith(f"`{endless}` is a device; only regular files")


def test_a_socket_is_refused(tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        assert "cannot be read: No such device or address" in refusal(
            files.read_text, tmp_path / "s"
        )


def test_a_folder_is_refused(tmp_path):
    assert "is a folder; give a file in it" in refusal(files.read_bytes, tmp_path)


def test_what_is_larger_than_its_bound_is_refused_and_the_bound_said(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # of which the disk has nothing
    assert "holds more than 64 MiB, the most that is read" in refusal(files.read_text, path)
    assert "holds more than 8 MiB" in refusal(files.read_mapping, path)
    path.write_bytes(gzip.compress(b"0" * 5000))
    assert "holds more than 4 KiB" in refusal(files.read_bytes, path, most=4096)


def test_text_is_read_as_text(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("\ufeffa\r\nb\rc\n".encode())
    assert files.read_text(path) == "a\nb\nc\n"
    path.write_bytes(b"\xff")
    assert "byte 0 is not UTF-8" in refusal(files.read_text, path)


def test_refusals_leave_no_file_open(pipe, endless, tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    for path in (pipe, endless, tmp_path, tmp_path / "none"):
        refusal(files.read_text, path)
    assert len(os.listdir("/proc/self/fd")) == before
