"""What pages read off a forecast's tasks."""

from __future__ import annotations

import numpy as np
import plancast as pc
import pytest
from plancast.report.page import slices
from plancast.report.page.modules import icicle, mean_seconds, module_seconds
from plancast.report.page.roofline import kernel_points, peaks, work
from plancast.report.page.slices import Lane, communications, end_of, passes, stage_parts
from plancast.report.page.timeline import phases


def lane(*tasks):
    """Tasks as (stream, purpose, name, micro-batch, start, end)."""
    kinds = list(dict.fromkeys(task[:3] for task in tasks))
    zeros = np.zeros(len(tasks), dtype=np.int64)
    return Lane(
        "stage 0",
        1,
        kinds,
        np.array([kinds.index(task[:3]) for task in tasks]),
        zeros,
        np.array([task[3] for task in tasks]),
        zeros,
        np.array([float(task[4]) for task in tasks]),
        np.array([float(task[5]) for task in tasks]),
    )


F = ("compute", "forward", "mlp.fc1")
B = ("compute", "backward", "mlp.fc1.bwd")
W = ("compute", "backward", "mlp.fc1.wgrad")


def test_kernels_cover_communication_and_the_rest_waits():
    found = lane((*F, 0, 1, 3), ("c", "tp", "r", 0, 2, 5), ("d", "dp", "g", 0, 4, 7))
    assert stage_parts(found, 10.0) == {
        "compute": 2.0, "exposed_tp": 2.0, "exposed_dp": 2.0, "waiting": 4.0,
    }  # fmt: skip


def test_passes_are_runs_of_one_micro_batch():
    found = lane((*F, 0, 0, 1), (*F, 0, 1, 2), (*F, 1, 2, 3), (*B, 0, 3, 4), (*W, 0, 4, 5))
    assert [(run.kind, run.micro_batch, run.start, run.end) for run in passes([found])] == [
        ("F", 0, 0, 2), ("F", 1, 2, 3), ("B", 0, 3, 4), ("W", 0, 4, 5),
    ]  # fmt: skip
    assert phases(passes([found])) == (3, 3)


def test_gradients_of_weights_between_others_are_of_the_backward_pass():
    found = lane((*B, 0, 0, 1), (*W, 0, 1, 2), (*B, 0, 2, 3), (*W, 0, 3, 4))
    assert [run.kind for run in passes([found])] == ["B"]


def test_messages_are_joined_until_they_are_few():
    many = lane(*[("c", "tp", "r", 0, 2 * at, 2 * at + 1) for at in range(100)])
    assert len(communications([many])) == 100
    few = communications([many], most=10)
    assert len(few) == 1
    assert (few[0].start, few[0].end) == (0, 199)


@pytest.fixture(scope="module")
def forecast():
    model = pc.Model.preset("llama3-8b", seq=4096)
    return pc.predict(model, pc.Machine.preset("dgx-h100"), "tp=2,pp=4,mb=1", batch=8)


@pytest.fixture(scope="module")
def found(forecast):
    return slices.lanes(slices.with_timeline(forecast))


def test_parts_and_modules_of_a_stage_sum_to_the_iteration(forecast, found):
    end = end_of(found)
    assert end == pytest.approx(forecast.simulated_time)
    for one in found:
        parts = stage_parts(one, end)
        assert sum(parts.values()) == pytest.approx(end)
        assert sum(module_seconds(one, parts).values()) == pytest.approx(end)


def test_stages_agree_with_the_breakdown(forecast, found):
    end = end_of(found)
    each = [stage_parts(one, end) for one in found]
    scale = 1 + forecast.beyond_simulated
    for part in ("compute", "exposed_tp"):
        mean = sum(parts[part] for parts in each) / len(each)
        assert mean * scale == pytest.approx(forecast.breakdown()[part], rel=0.02)


def test_an_icicle_nests(found):
    end = end_of(found)
    seconds = mean_seconds(found, [module_seconds(one, stage_parts(one, end)) for one in found])
    trace = icicle(seconds, "all")["data"][0]
    values = dict(zip(trace["ids"], trace["values"], strict=True))
    inside = dict.fromkeys(values, 0.0)
    for one, parent in zip(trace["ids"], trace["parents"], strict=True):
        if parent:
            inside[parent] += values[one]
    assert values["0"] == pytest.approx(end)
    assert all(inside[one] <= values[one] * (1 + 1e-6) for one in values)


def test_work_of_kernels_in_closed_form():
    flops, moved = work(
        ("attention", "batch=1 heads=2 kv_heads=1 q=8 kv=8 dim=4 dim_v=4", "bf16", "causal")
    )
    assert flops == 2 * 2 * (2 * 8 * 8 * 4) / 2
    assert moved == 2 * (2 * 8 * 8 + 8 * 8)
    assert work(("memory/x", "read=3 write=4 launches=1", "bf16", "")) == (0.0, 7.0)


def test_no_kernel_is_above_its_roof(forecast):
    points = kernel_points(forecast)
    found, memory = peaks(forecast)
    products = [point for point in points if point.flops]
    assert products
    for point in products:
        assert point.flops / point.seconds < min(found["bf16"], memory * point.flops / point.bytes)
