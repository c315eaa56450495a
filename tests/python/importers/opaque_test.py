"""Ops that no rule is known for: cut over the batch, priced by bytes, reported."""

from __future__ import annotations

import plancast as pc
from graphs import Sketch, ops


def with_unknown():
    s = Sketch()
    x = s.linear(s.x, "fc", 64)
    weight = s.parameter("kernel", 7, 5)
    y = s.op("opaque", x, weight, shape=(3, 9, 64), source="fancy", path="block")
    return s.model(y)


def test_unknown_ops_are_reported():
    report = with_unknown().import_report
    (entry,) = report.unknown
    assert (entry.name, entry.path, entry.count) == ("fancy", "block", 1)
    assert 0 < entry.bytes_share < 1
    assert "`fancy` (x 1, first in `block`) is not known" in report.warnings()[0]


def test_their_parameters_are_trained():
    model = with_unknown()
    assert ops(model)[2] == "opaque"
    assert model.parameters == 64000 + 64 * 64 + 35


def test_they_are_cut_over_the_batch():
    model = with_unknown()
    machine = pc.Machine.preset("dgx-h100:1")
    times = [
        pc.predict(model, machine, pc.Strategy.parse(plan), batch=64).iteration_time
        for plan in ("dp=8,mb=8", "dp=1,tp=8,mb=64")
    ]
    assert times[0] < times[1]


def test_a_reshape_that_is_no_view():
    s = Sketch(hidden=12)
    cut = s.op("opaque", s.x, shape=(3, 16, 10), source="odd")
    y = s.graph.reshape(cut, 3, 32, 5)
    y = s.graph.reshape(y, 3, 20, 8)
    model = s.model(s.op("relu_nd", y))
    assert model.import_report.unknown
    forecast = pc.predict(model, pc.Machine.preset("dgx-h100:1"), pc.Strategy.parse("dp=8,mb=1"))
    assert 0 < forecast.iteration_time < 1
