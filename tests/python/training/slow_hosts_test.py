"""Hosts that turn slow: closed forms against simulation, and the run that they hold up."""

from __future__ import annotations

import plancast as pc
import pytest
from plancast.training.slow_hosts import Slowed

EVICTED = pc.SlowHosts(host_hours=1.0, speed=0.8, detect=1800.0)
KEPT = pc.SlowHosts(host_hours=1.0, speed=0.8, evict=False, lasts=20_000.0)


@pytest.mark.parametrize("hosts", [EVICTED, KEPT])
@pytest.mark.parametrize("between", [5_000.0, 50_000.0])
def test_the_closed_form_is_that_of_the_simulation(hosts: pc.SlowHosts, between: float):
    slowed = Slowed(hosts, factor=1.25, rate=1 / between, outage_s=400.0)
    assert slowed.simulated(5_000 * between, 1) == pytest.approx(slowed.useful, rel=0.01)
    assert slowed.simulated(1e6, 3) == slowed.simulated(1e6, 3)


def test_none_is_slow_and_all_are():
    assert Slowed(KEPT, 1.25, 1e-12, 0.0).useful == pytest.approx(1.0)
    assert Slowed(KEPT, 1.25, 1.0, 0.0).useful == pytest.approx(1 / 1.25)


def test_eviction_pays_where_hosts_stay_slow_for_long():
    evicted = Slowed(EVICTED, 1.25, 1e-5, 400.0).useful
    assert evicted > Slowed(KEPT, 1.25, 1e-5, 400.0).useful
    short = pc.SlowHosts(host_hours=1.0, speed=0.8, evict=False, lasts=600.0)
    assert evicted < Slowed(short, 1.25, 1e-5, 400.0).useful


def test_a_run_is_held_up_by_the_slow_iteration():
    model, machine = pc.Model.preset("llama3-8b"), pc.Machine.preset("dgx-h100", hosts=2)
    asked = {"tokens": "100B", "batch": 64, "failures": None}
    plan = "tp=2,zero=1,mb=1,recompute=selective"
    usual = pc.train(model, machine, plan, **asked)
    held = pc.train(
        model, machine, plan, slow_hosts="host=100h,speed=0.8,keep,lasts=2days", **asked
    )
    slow = pc.predict(
        model, machine, plan, batch=64, what_if=",".join(f"device:{d}=80%" for d in range(8))
    )
    assert held.slowed is not None
    factor = slow.iteration_time / usual.phases[0].forecast.iteration_time
    assert held.slowed.factor == pytest.approx(factor)
    assert 1.0 < factor <= 1.25
    assert held.seconds == pytest.approx(usual.seconds / held.slowed.useful)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("speed=0.8", "does not say how often"),
        ("host=0h", "`host`"),
        ("host=100h,speed=1.5", "at most 1"),
        ("host=100h,sped=1", "Did you mean `speed`"),
        ("host=100h,keep,keep", "said twice"),
    ],
)
def test_slow_hosts_nobody_can_mean(text: str, words: str):
    with pytest.raises(pc.InputError, match=words):
        pc.SlowHosts.parse(text)


def test_shares_of_the_table_sum_to_one():
    from plancast.report.training import shares as shares_of

    run = pc.train(
        pc.Model.preset("llama3-8b"), pc.Machine.preset("dgx-h100", hosts=2), "tp=2,zero=1,mb=1",
        tokens="100B", batch=64, evaluate="100:1min", failures="llama3,spares=0",
        slow_hosts="host=100h,detect=2h",
    )  # fmt: skip
    shares = shares_of(run)
    assert sum(share for _, share in shares) == pytest.approx(1.0, abs=1e-9)
    assert all(share > 0 for _, share in shares)
