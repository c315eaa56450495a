"""Traces of real predictions are what ui.perfetto.dev expects."""

from __future__ import annotations

import gzip
import itertools
import json
from collections import defaultdict

import plancast as pc
import pytest


@pytest.fixture(
    params=[
        "tp=2,pp=2,mb=1",
        "pp=4,mb=1,recompute=full",
        "tp=2,pp=2,vpp=2,mb=1,sp,zero=1",
        "dp=8,mb=1",
    ]
)
def forecast(request, small):
    machine = pc.Machine.preset("dgx-a100-80g:1")
    return pc.predict(small, machine, request.param, batch=16, timeline=True)


def events(forecast, tmp_path):
    path = tmp_path / "trace.json"
    forecast.to_perfetto(path)
    return json.loads(path.read_text())["traceEvents"]


def test_slices_of_a_track_never_overlap(forecast, tmp_path):
    tracks = defaultdict(list)
    for event in events(forecast, tmp_path):
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert tracks
    for spans in tracks.values():
        spans.sort()
        for (_, end), (begin, _) in itertools.pairwise(spans):
            assert begin >= end - 1e-6


def test_slices_stay_within_the_iteration(forecast, tmp_path):
    for event in events(forecast, tmp_path):
        if event["ph"] == "X":
            assert event["ts"] >= 0
            assert event["ts"] + event["dur"] <= forecast.iteration_time * 1e6 + 1e-3


def test_flows_join_stages(forecast, tmp_path):
    ends = defaultdict(dict)
    slices = defaultdict(list)
    for event in events(forecast, tmp_path):
        if event["ph"] in "sf":
            ends[event["id"]][event["ph"]] = event
        if event["ph"] == "X":
            slices[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert bool(ends) == ("pp=" in forecast.strategy)
    for flow in ends.values():
        assert set(flow) == {"s", "f"}
        assert flow["s"]["pid"] != flow["f"]["pid"]
        assert flow["s"]["ts"] <= flow["f"]["ts"]
        for end in flow.values():
            assert any(a <= end["ts"] <= b for a, b in slices[end["pid"], end["tid"]])


def test_memory_is_a_counter_that_returns_to_its_start(forecast, tmp_path):
    counters = defaultdict(list)
    for event in events(forecast, tmp_path):
        if event["ph"] == "C":
            counters[event["pid"]].append(event["args"]["allocated"])
    assert counters
    for values in counters.values():
        assert min(values) >= 0
        assert values[-1] == pytest.approx(values[0], abs=1e-3)


def test_the_timeline_is_ordered_and_named(forecast):
    slices = forecast.timeline()
    assert [s.start_s for s in slices] == sorted(s.start_s for s in slices)
    assert all(s.name and s.end_s >= s.start_s for s in slices)


def test_compressed(forecast, tmp_path):
    path = tmp_path / "trace.json.gz"
    forecast.to_perfetto(path)
    with gzip.open(path, "rt") as file:
        assert json.load(file)["traceEvents"]
