"""What a step sends over which links, in closed form."""

from __future__ import annotations

import numpy as np
import plancast as pc
import pytest
from plancast.report.page.links import link_course, link_figures
from plancast.report.page.machine import machine_parts
from plancast.report.page.single_links import (
    INSIDE,
    NETWORK,
    PODS,
    classes_of,
    links_of,
    single_link_parts,
    used_over_time,
)
from plancast.report.page.slices import end_of, lanes, with_timeline
from plancast.report.page.traffic import rates, strides_of, traffic

SIZES = {"layers": 4, "hidden": 512, "heads": 8, "ffn": 2048, "vocab": 1024, "seq": 256}


def predict(machine, plan, batch):
    model = pc.Model.from_config(name="small", **SIZES)
    return pc.predict(model, pc.Machine.open(machine), plan, batch=batch)


def kinds(machine, plan, batch):
    return [
        {(kind.collective, kind.axes): kind for kind in one.kinds}
        for one in traffic(predict(machine, plan, batch))
    ]


def test_tensor_parallel_sums_stay_in_the_host():
    (found,) = kinds("dgx-a100-80g:1", "tp=8,mb=2", 4)
    sums = found["all_reduce", ("tp",)]
    # Of an activation in each direction: attention and MLP of every layer, and the embedding
    # forward; the loss adds three numbers a token.
    activation = 2 * 256 * 512 * 2
    at_least = 2 * (4 * 4 + 1) * activation * 2 * 7 / 8
    assert sums.network == 0
    assert at_least <= sums.inside <= 1.2 * at_least


def test_gradients_of_one_gpu_a_host_go_over_the_network():
    (found,) = kinds("dgx-a100-80g:4x1", "dp=4,mb=1,zero=0", 4)
    sums = found["all_reduce", ("dp",)]
    assert sums.inside == 0
    parameters = pc.Model.from_config(name="small", **SIZES).parameters
    assert sums.network == pytest.approx(parameters * 4 * 2 * 3 / 4, rel=0.05)


def test_a_ring_leaves_a_host_once():
    (found,) = kinds("dgx-a100-80g:2", "dp=16,mb=1,zero=0", 16)
    sums = found["all_reduce", ("dp",)]
    assert sums.inside == pytest.approx(7 * sums.network)


def test_messages_between_stages_are_counted_where_they_are_sent():
    found = kinds("dgx-a100-80g:2", "tp=8,pp=2,mb=1", 4)
    sent = [one["send_recv", ("pp",)] for one in found]
    assert [one.count for one in sent] == [4, 4]
    assert all(one.inside == 0 for one in sent)
    assert sent[0].network == sent[1].network


def test_strides_and_rates():
    assert strides_of({"pp": 2, "dp": 3, "tp": 4}) == {"pp": 12, "dp": 4, "tp": 1}
    found = rates(pc.Machine.preset("dgx-a100-80g", hosts=2).to_dict())
    assert (found.inside, found.network, found.domain) == (300e9, 25e9, 8)


def test_the_picture_has_every_host_and_its_classes():
    parts = machine_parts(predict("dgx-a100-80g:2", "tp=8,pp=2,mb=1", 4))
    markup = parts[0].markup
    assert markup.count("<svg") == 2
    assert "stage 0" in markup
    assert "stage 1" in markup


def test_machines_of_unlike_hosts_have_none():
    assert machine_parts(predict("dgx-a100-80g:1+dgx-h100:1", "tp=8,pp=2,mb=1", 4)) == []


@pytest.mark.parametrize(
    ("machine", "plan", "batch"),
    [
        ("dgx-a100-80g:2", "tp=4,sp,pp=2,zero=1,mb=1", 8),
        ("dgx-a100-80g:2", "zero=3,mb=1", 32),
        ("dgx-h100:4", "tp=2,pp=2,vpp=2,zero=1,mb=1", 32),
        ("dgx-h100:2", "cp=4,tp=2,zero=2,mb=1", 8),
        ("dgx-h100:1", "tp=8,sp,mb=1,overlap=tp", 4),
    ],
)
def test_every_byte_of_a_step_is_sent_at_some_time(machine, plan, batch):
    forecast = predict(machine, plan, batch)
    found, sent = lanes(with_timeline(forecast)), traffic(forecast)
    edges = np.linspace(0, end_of(found), 101)
    for lane, one in zip(found, sent, strict=True):
        assert lane.device_class == one.device_class
        course = link_course(lane, one, edges)
        assert (course >= -1e-6 * course.sum()).all()
        assert course.sum(axis=1) == pytest.approx([one.inside, one.network], rel=1e-9, abs=1)
    assert link_figures(found, sent, rates(forecast._question.machine.to_dict()), 12)


def single(machine, plan, batch):
    """Fields of the machine, classes of its GPUs, tasks and traffic of a plan."""
    forecast = predict(machine, plan, batch)
    fields = forecast._question.machine.to_dict()
    sent = traffic(forecast)
    sizes = {name: int(forecast.chosen[name]) for name in ("pp", "dp", "tp")}
    pod = fields["hosts_per_pod"] * fields["gpus_per_host"]
    beyond = traffic(forecast, pod) if pod else []
    classes = classes_of(forecast.devices, sizes, sent)
    return fields, classes, lanes(with_timeline(forecast)), sent, beyond


def changed(name, hosts, **fields):
    return pc.Machine.from_dict({**pc.Machine.preset(name, hosts=hosts).to_dict(), **fields})


@pytest.mark.parametrize(
    ("machine", "nics"), [("dgx-a100-80g", 8), ("dgx1-v100-32g", 4), ("dgx-a100-80g", 16)]
)
def test_single_links_carry_all_that_the_classes_send(monkeypatch, machine, nics):
    monkeypatch.setattr(pc.Machine, "open", lambda said: changed(said, 4, nics_per_host=nics))
    fields, classes, found, sent, beyond = single(machine, "tp=4,sp,pp=2,zero=1,mb=1", 32)
    links = links_of(fields, classes)
    courses = used_over_time(links, found, sent, beyond)
    for kind, share, count in ((INSIDE, "inside", 32), (NETWORK, "network", 4 * nics)):
        of_kind = [at for at, link in enumerate(links) if link.kind == kind]
        assert sum(links[at].like + 1 for at in of_kind) == count
        carried = sum(courses[at].sum() * (links[at].like + 1) for at in of_kind)
        expected = sum(getattr(sent[at], share) for at in classes.tolist())
        assert carried == pytest.approx(expected, rel=1e-9)


def test_two_stages_share_an_interface_of_a_host():
    fields, classes, *_ = single("dgx1-v100-32g:1", "tp=1,pp=4,mb=1", 8)
    links = [link for link in links_of({**fields, "nics_per_host": 2}, classes) if link.kind]
    assert classes.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [dict(link.senders) for link in links] == [{0: 2.0, 1: 2.0}, {2: 2.0, 3: 2.0}]


def test_uplinks_carry_what_leaves_a_pod(monkeypatch):
    monkeypatch.setattr(
        pc.Machine, "open", lambda said: changed(said, 4, hosts_per_pod=2, oversubscription=4)
    )
    fields, classes, found, sent, beyond = single("dgx-a100-80g", "tp=8,pp=2,mb=1", 16)
    links = links_of(fields, classes)
    courses = used_over_time(links, found, sent, beyond)
    (first, second) = (at for at, link in enumerate(links) if link.kind == PODS)
    assert links[first].rate == 2 * 8 * 25e9 / 4
    # Stages are two hosts each: what goes between them leaves a pod, gradients do not.
    messages = {one["send_recv", ("pp",)].network for one in map(by_kind, sent)}
    assert courses[first].sum() == pytest.approx(16 * max(messages))
    assert courses[second].sum() == pytest.approx(16 * min(messages))
    chart, table = single_link_parts(fields, classes, found, sent, beyond)
    assert "uplinks of pod 0" in chart.figures
    assert any("interface" in name for name in chart.figures)
    used = next(column for column in table.columns if column.label == "used")
    assert used.values == sorted(used.values, reverse=True)


def by_kind(one):
    return {(kind.collective, kind.axes): kind for kind in one.kinds}
