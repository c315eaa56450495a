"""Traces in the Chrome format, from files of any tool."""

from __future__ import annotations

import gzip
import json
import pickle

import plancast as pc
import pytest

EVENTS = [
    {"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "trainer"}},
    {"ph": "X", "name": "step", "cat": "user", "ts": 100, "dur": 50.5, "pid": 7, "tid": 1},
    {"ph": "X", "name": "gemm", "cat": "kernel", "ts": 110, "dur": 20, "pid": 7, "tid": 1,
     "args": {"grid": [4, 2]}},
    {"ph": "B", "name": "wait", "ts": 200, "pid": 7, "tid": 2},
    {"ph": "E", "ts": 230, "pid": 7, "tid": 2},
    {"ph": "C", "name": "memory", "ts": 120, "pid": 7, "args": {"bytes": 4096}},
    {"ph": "s", "id": 1, "name": "flow", "cat": "f", "ts": 115, "pid": 7, "tid": 1},
    {"ph": "f", "id": 1, "name": "flow", "cat": "f", "ts": 210, "pid": 7, "tid": 2, "bp": "e"},
    {"ph": "B", "name": "alone", "ts": 300, "pid": 7, "tid": 3},
]  # fmt: skip


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": EVENTS}))
    return path


def test_spans_flows_and_counters(file):
    trace = pc.ChromeTrace.open(file)
    named = {span.name: span for span in trace.spans}
    assert set(named) == {"step", "gemm", "wait", "alone"}
    assert named["step"].duration_s == pytest.approx(50.5e-6)
    assert named["gemm"].start_s - named["step"].start_s == pytest.approx(10e-6)
    assert trace.spans[named["gemm"].parent].name == "step"
    assert named["gemm"].args == {"grid.0": "4", "grid.1": "2"}
    assert named["gemm"].process == "trainer"
    assert named["wait"].duration_s == pytest.approx(30e-6)
    assert named["alone"].duration_s is None
    (flow,) = trace.flows
    assert (trace.spans[flow.source].name, trace.spans[flow.target].name) == ("gemm", "wait")
    (counter,) = trace.counters
    assert (counter.name, counter.values) == ("memory", {"bytes": 4096.0})
    assert trace.problem_count == 1
    assert len(trace) == 4


def test_totals_are_the_most_time_first(file):
    totals = pc.ChromeTrace.open(file).totals
    assert [(t.name, t.category, t.spans) for t in totals[:2]] == [
        ("step", "user", 1), ("wait", "", 1)
    ]  # fmt: skip
    assert sum(t.total_s for t in totals) == pytest.approx(100.5e-6)


def test_compressed_and_broken_files(file, tmp_path):
    packed = tmp_path / "packed.json.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert pc.ChromeTrace.open(packed).spans == pc.ChromeTrace.open(file).spans
    cut = tmp_path / "cut.json"
    cut.write_text(file.read_text()[:-2])
    assert len(pc.ChromeTrace.open(cut)) == 4
    empty = tmp_path / "empty.json"
    empty.write_text("no trace")
    with pytest.raises(pc.InputError, match=r"empty.json`"):
        pc.ChromeTrace.open(empty)
    with pytest.raises(pc.InputError, match="there is no file"):
        pc.ChromeTrace.open(tmp_path / "none.json")


def test_what_is_written_reads_the_same(file, tmp_path):
    trace = pc.ChromeTrace.open(file)
    trace.to_perfetto(tmp_path / "again.json")
    again = pc.ChromeTrace.open(tmp_path / "again.json")
    assert [(s.name, s.start_s, s.duration_s) for s in again.spans if s.name != "alone"] == [
        (s.name, s.start_s, s.duration_s) for s in trace.spans if s.name != "alone"
    ]
    assert pickle.loads(pickle.dumps(trace)).spans == trace.spans


def test_a_forecast_is_read_back(small, tmp_path):
    forecast = pc.predict(
        small, pc.Machine.preset("dgx-a100-80g"), "tp=2,pp=2,mb=1", batch=8, timeline=True
    )
    forecast.to_perfetto(tmp_path / "forecast.json")
    trace = pc.ChromeTrace.open(tmp_path / "forecast.json")
    assert trace.problem_count == 0
    assert trace.duration_s <= forecast.iteration_time + 1e-9
    kernels = [s for s in forecast.timeline() if s.end_s > s.start_s]
    assert len(trace) >= len(kernels) > 0


def test_the_command(cli, file, tmp_path):
    fields = cli.json("import", "chrome", str(file))
    assert (fields["spans"], fields["flows"], fields["problem_count"]) == (4, 1, 1)
    assert fields["totals"][0]["name"] == "step"
    out = tmp_path / "out.json.gz"
    code, text, _ = cli("import", "chrome", str(file), "-o", str(out))
    assert code == 0
    assert "4 spans on 3 tracks" in text
    assert "gemm" in text
    assert "warning: line" in text
    assert json.loads(gzip.decompress(out.read_bytes()))["traceEvents"]
    assert "its name must end in" in cli.error("import", "chrome", str(file), "-o", "x.txt")
