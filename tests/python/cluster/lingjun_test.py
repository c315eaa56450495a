"""The Lingjun data set: three files as its README describes them."""

from __future__ import annotations

import shutil
from pathlib import Path

import plancast as pc
import pytest

SAMPLE = Path(__file__).with_name("data") / "lingjun"
MACHINE = pc.Machine.preset("dgx-a100-80g", hosts=4)


def test_the_sample():
    jobs, fabric = pc.read_lingjun(SAMPLE)
    assert (fabric.hosts, fabric.gpus_per_host) == (4, 8)
    assert [(job.name, job.arrival, job.placement) for job in jobs] == [
        ("j1", 0.0, "devices 0,1,2,3,16,17,18,19"),
        ("j2", 600.0, "devices 4,5,6,7,24,25,26,27,28,29,30,31"),
        ("j3", 3600.0, "devices 8"),
    ]
    # An iteration of 1 s of computation, 0.3 of it beside half a second of communication.
    assert jobs[0].iterations == int(3600 / (0.7 + 0.5))
    outcome = pc.cluster(jobs, MACHINE, fabric=fabric)
    assert [job.slowdown for job in outcome.jobs] == pytest.approx([1.0] * 3, abs=0.01)
    assert outcome.job("j2").start == 600.0


def test_the_command(cli):
    code, out, err = cli("cluster", str(SAMPLE))
    assert (code, err) == (0, "")
    assert "3 jobs on 32 GPUs" in out


@pytest.fixture
def copied(tmp_path):
    folder = tmp_path / "lingjun"
    shutil.copytree(SAMPLE, folder)
    return folder


@pytest.mark.parametrize("missing", ["topo.csv", "job.csv", "worker.csv"])
def test_a_missing_file_is_named(copied, cli, missing):
    (copied / missing).unlink()
    code, _, err = cli("cluster", str(copied))
    assert code == 2
    assert f"has no `{missing}`" in err


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("job.csv", "01:00:00\nfine", "00:00:00\nfine", "job.csv:2: job `j1` ends before"),
        ("job.csv", "j2", "j1", "job.csv:3: job `j1` is there already, line 2"),
        ("job.csv", "2023-08-01 00:10:00", "yesterday", "job.csv:3: `yesterday` is no time"),
        ("job.csv", "start_time", "begin", "says the start"),
        ("worker.csv", "host-d", "host-x", "worker.csv:5: there is no host `host-x`"),
        ("worker.csv", "j3,master", "j9,master", "worker.csv:6: there is no job `j9`"),
        ("worker.csv", "host-a,4,32\nj2", "host-a,5,32\nj2", None),
        ("worker.csv", "00:40:00,host-a,4", "00:40:00,host-a,5", "takes 5 GPUs of a host where 4"),
        ("topo.csv", "host-b", "host-a", "topo.csv:3: host `host-a` is there already, line 2"),
        ("topo.csv", "ASW", "switch", "the columns must be"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(copied, name, old, new, words):
    path = copied / name
    text = path.read_text()
    assert old in text or words is None
    path.write_text(text.replace(old, new, 1))
    if words is None:
        return
    with pytest.raises(pc.InputError) as error:
        pc.read_lingjun(copied)
    assert words in str(error.value)


def test_what_more_links_of_the_data_set_would_give():
    jobs, fabric = pc.read_lingjun(SAMPLE)
    from plancast.clusters import lingjun

    rows = pc.cluster_changes(jobs, MACHINE, fabric=fabric, wider=lingjun.wider(SAMPLE))
    names = {row.change for row in rows}
    assert "an uplink of every ASW more" in names
    assert "a rail (an interface of every host) more" in names
