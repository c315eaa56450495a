"""NCCL's own traces, through Python and the command line."""

from __future__ import annotations

import gzip
import itertools
import json
from collections import defaultdict
from pathlib import Path

import plancast as pc
import pytest

PLUGIN = """[
{"name": "AllReduce", "cat": "COLL", "ph": "b", "id": 0, "pid": 9, "tid": 1, "ts": 10.0, \
"args": {"CommHash": 5, "Rank": 1, "Count": 1024, "Datatype": ncclFloat16, \
"Algorithm": "RING", "Protocol": "LL", "nChannels": 2}},
{"name": "Send", "cat": "PROXY", "ph": "b", "id": 0, "pid": 9, "tid": 1, "ts": 11.0, \
"args": {"Channel": 1, "Peer": 0, "Steps": 2, "ChunkSize": 512, "transSize": 1024}},
{"name": "SendGPUWait", "cat": "NET", "ph": "b", "id": 0, "pid": 9, "tid": 1, "ts": 11.0, \
"args": {"Step": 0}},
{"name": "SendGPUWait", "cat": "NET", "ph": "e", "id": 0, "pid": 9, "tid": 1, "ts": 14.0},
{"name": "SendWait", "cat": "NET", "ph": "b", "id": 0, "pid": 9, "tid": 1, "ts": 14.0, \
"args": {"Step": 0}},
{"name": "SendWait", "cat": "NET", "ph": "e", "id": 0, "pid": 9, "tid": 1, "ts": 15.0},
{"name": "SendGPUWait", "cat": "NET", "ph": "b", "id": 1, "pid": 9, "tid": 1, "ts": 12.0, \
"args": {"Step": 1}},
{"name": "SendGPUWait", "cat": "NET", "ph": "e", "id": 1, "pid": 9, "tid": 1, "ts": 16.0},
{"name": "Send", "cat": "PROXY", "ph": "e", "id": 0, "pid": 9, "tid": 1, "ts": 17.0},
 ... [ trace truncated for brevity ]
{"name": "AllReduce", "cat": "COLL", "ph": "e", "id": 0, "pid": 9, "tid": 1, "ts": 20.0},
{}]
"""


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump-host-1.txt"
    path.write_text(PLUGIN)
    return path


def test_a_dump_says_what_ran(dump):
    trace = pc.NcclTrace.open(dump)
    (operation,) = trace.operations
    assert (operation.name, operation.algorithm, operation.protocol) == ("AllReduce", "RING", "LL")
    assert (operation.size_bytes, operation.channels, operation.calls) == (2048, 2, 1)
    assert operation.median_s == pytest.approx(10e-6)
    (channel,) = trace.channels
    assert (channel.channel, channel.direction, channel.peer) == (1, "send", 0)
    assert (channel.operations, channel.steps, channel.size_bytes) == (1, 2, 1024)
    assert channel.step_s == pytest.approx(8e-6)
    assert channel.busy_s == pytest.approx(5e-6)
    assert [(wait.wait, wait.times) for wait in trace.waits] == [("gpu", 2), ("send", 1)]
    assert trace.waits[0].share == pytest.approx(7 / 8)
    assert trace.problems == [(11, "no event: `... [ trace truncated for brevity ]`")]
    assert trace.mended == {"an unquoted value": (1, 2)}


def test_events_make_a_table(dump):
    events = pc.NcclTrace.open(dump).events
    assert [event.kind for event in events[:4]] == ["collective", "proxy op", "step", "wait"]
    assert {len(event._asdict()) for event in events} == {19}
    for event in events:
        assert event.parent is None or event.parent < len(events)
        assert event.rank == 1


def test_perfetto_files_are_sound(dump, tmp_path):
    pc.NcclTrace.open(dump).to_perfetto(tmp_path / "out.json.gz")
    with gzip.open(tmp_path / "out.json.gz", "rt") as file:
        events = json.load(file)["traceEvents"]
    tracks = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append((event["ts"], -event["dur"]))
    assert sum(len(slices) for slices in tracks.values()) == 7
    for slices in tracks.values():
        open_until: list[float] = []
        for start, duration in sorted(slices):
            while open_until and open_until[-1] <= start:
                open_until.pop()
            assert not open_until or start - duration <= open_until[-1]
            open_until.append(start - duration)


def test_forecasts_and_traces_are_written_alike(small, tmp_path):
    """A forecast's trace keeps the rule of tracks, too, and names flows and counters."""
    machine = pc.Machine.preset("dgx-a100-80g:1")
    forecast = pc.predict(small, machine, "tp=2,pp=2,mb=1", batch=16, timeline=True)
    forecast.to_perfetto(tmp_path / "forecast.json")
    events = json.loads((tmp_path / "forecast.json").read_text())["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "s", "f", "C"}
    tracks = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for slices in tracks.values():
        for (_, end), (begin, _) in itertools.pairwise(sorted(slices)):
            assert begin >= end - 1e-6


def test_compressed_files_are_read(dump, tmp_path):
    packed = tmp_path / "dump.json.gz"
    packed.write_bytes(gzip.compress(dump.read_bytes()))
    assert pc.NcclTrace.open(packed).events == pc.NcclTrace.open(dump).events
    packed.write_bytes(gzip.compress(dump.read_bytes())[:-20])
    with pytest.raises(pc.InputError, match="cannot be read"):
        pc.NcclTrace.open(packed)


def test_the_command(cli, dump, tmp_path):
    out = tmp_path / "perfetto.json"
    code, text, _ = cli("import", "trace", str(dump), "-o", str(out))
    assert code == 0
    assert "AllReduce" in text and "RING" in text and "87.5 %" in text
    assert "line 11" in text
    assert json.loads(out.read_text())["traceEvents"]
    fields = cli.json("import", "trace", str(dump))
    assert fields["dialect"] == "profiler plugin"
    assert fields["operations"][0]["median_s"] == pytest.approx(1e-5)
    assert fields["problem_count"] == 1


def test_other_files_are_refused(cli, tmp_path):
    other = tmp_path / "other.json"
    other.write_text('[{"name": "f", "ph": "X", "ts": 1, "dur": 2}]')
    code, _, err = cli("import", "trace", str(other))
    assert code != 0
    assert "none of NCCL's" in err and "Traceback" not in err
    code, _, err = cli("import", "trace", str(tmp_path / "absent.json"))
    assert code != 0 and "there is no file" in err
    other.write_bytes(b"\xff\xfe\x00{")
    code, _, err = cli("import", "trace", str(other))
    assert code != 0 and "has no trace event" in err
