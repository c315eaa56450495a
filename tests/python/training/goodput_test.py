"""Failures and checkpoints: closed forms, laws, and the event simulation against them."""

from __future__ import annotations

import math

import plancast as pc
import pytest
from plancast.training.event_run import EventRun, simulate
from plancast.training.goodput import (
    Costs,
    best_interval,
    daly,
    goodput,
    waiting_share,
    young,
)

CASES = {
    "blocking": (Costs(mtbf=11_000.0, stall=40.0, lag=0.0, restart=900.0), 900.0),
    "often broken": (Costs(mtbf=2_000.0, stall=60.0, lag=0.0, restart=600.0), 400.0),
    "async": (Costs(mtbf=11_000.0, stall=3.0, lag=200.0, restart=900.0), 300.0),
    "never saved in time": (Costs(mtbf=3_000.0, stall=1.0, lag=500.0, restart=100.0), 800.0),
}


def test_nothing_fails_and_nothing_is_saved_in_no_time():
    shares = goodput(Costs(math.inf, 0.0, 0.0, 0.0), 100.0)
    assert shares.useful == 1.0


def test_first_order_form_holds_where_failures_are_rare():
    # Young: of the time, stall/interval is for saving, interval/2/mtbf is lost.
    costs = Costs(mtbf=1e6, stall=10.0, lag=0.0, restart=300.0)
    for interval in (2000.0, 4472.0, 9000.0):
        lost = 10.0 / interval + interval / 2 / 1e6 + 300.0 / 1e6
        assert goodput(costs, interval).useful == pytest.approx(1 - lost, abs=2e-4)


def test_dalys_formula():
    costs = Costs(mtbf=5_000.0, stall=30.0, lag=0.0, restart=200.0)
    wall = 5_000.0 * math.exp(200 / 5_000) * math.expm1((700 + 30) / 5_000)
    assert goodput(costs, 700.0).useful == pytest.approx(700 / wall, rel=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_shares_sum_to_one(name: str):
    costs, interval = CASES[name]
    for waiting in (0.0, 0.2):
        s = goodput(costs, interval, waiting=waiting)
        total = s.useful + s.saving + s.repeated + s.restarting + s.waiting
        assert total == pytest.approx(1.0, abs=1e-12)
        assert min(s.useful, s.saving, s.repeated, s.restarting) >= 0


@pytest.mark.parametrize("name", CASES)
def test_events_agree_with_the_closed_form(name: str):
    costs, interval = CASES[name]
    work = 2_000 * costs.mtbf  # thousands of failures
    simulated = simulate(EventRun(costs, interval), work, runs=2, seed=1)
    assert simulated.useful == pytest.approx(goodput(costs, interval).useful, rel=0.02)


def test_events_agree_where_hosts_are_waited_for():
    costs, interval = Costs(mtbf=20_000.0, stall=20.0, lag=0.0, restart=600.0), 900.0
    for spares in (0, 2):
        run = EventRun(costs, interval, spares=spares, repair=30_000.0, replaced=0.8)
        simulated = simulate(run, 4e7, runs=2, seed=3)
        waiting = waiting_share(spares, 0.8 * 30_000 / 20_000)
        closed = goodput(costs, interval, waiting=waiting)
        assert simulated.useful == pytest.approx(closed.useful, rel=0.02)


def test_equal_seeds_give_equal_runs():
    run = EventRun(*CASES["blocking"])
    assert run.run(1e6, 7) == run.run(1e6, 7)
    assert run.run(1e6, 7) != run.run(1e6, 8)


def test_without_failures_a_run_takes_its_work_and_its_checkpoints():
    outcome = EventRun(Costs(math.inf, 10.0, 0.0, 0.0), 100.0).run(1000.0, 0)
    # No checkpoint after the last stretch.
    assert (outcome.wall_s, outcome.checkpoints) == (1000.0 + 9 * 10.0, 9)


@pytest.mark.parametrize("mtbf", [500.0, 5_000.0, 500_000.0])
@pytest.mark.parametrize("stall", [0.5, 20.0, 200.0])
def test_no_interval_is_better_than_the_best(mtbf: float, stall: float):
    costs = Costs(mtbf, stall, 0.0, 100.0)
    best = best_interval(costs, 0.0)
    top = goodput(costs, best).useful
    for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0):
        assert goodput(costs, factor * best).useful <= top
    if stall / mtbf < 0.05:
        assert daly(costs) == pytest.approx(best, rel=0.01)
        assert young(costs) == pytest.approx(best, rel=0.25)


def test_where_saving_takes_far_longer_than_nothing_fails():
    # The best interval tends to the mean time between failures; nothing is left of the time.
    for mtbf in (1e-6, 0.1, 2.0):
        costs = Costs(mtbf, stall=60.0, lag=0.0, restart=900.0)
        assert best_interval(costs, 0.0) == pytest.approx(mtbf)
        assert goodput(costs, best_interval(costs, 1.0)).useful == pytest.approx(0.0, abs=1e-9)


def test_waiting_share_is_erlangs():
    # B(2, 1) = 1/5: (1/2) / (1 + 1 + 1/2).
    assert waiting_share(1, 1.0) == pytest.approx(0.2)
    shares = [waiting_share(spares, 3.0) for spares in range(12)]
    assert shares == sorted(shares, reverse=True)


def test_llama3_keeps_its_published_effective_training_time():
    # Llama 3 405B: 419 unexpected interruptions in 54 days on 16,384 GPUs, more than 90 %
    # effective; its store takes 2 TB/s. Nothing here is fitted to that.
    machine = pc.Machine.preset("grandteton-h100-80g", hosts=2048)
    failures = pc.Failures.known("llama3")
    assert 54 * 86400 / failures.mtbf(machine) == pytest.approx(419, rel=0.001)
    run = pc.train(
        pc.Model.preset("llama3-405b"), machine, "tp=8,pp=16,vpp=8,sp,zero=1,mb=1,recompute=full",
        tokens="15.6T", batch=2048, failures=failures, checkpoints="store=2TB/s,host_write=5GB/s",
    )  # fmt: skip
    assert run.useful_share == pytest.approx(0.90, abs=0.03)


def test_rates_add_up_over_hosts_and_gpus():
    machine = pc.Machine.preset("dgx-h100", hosts=10)
    failures = pc.Failures(gpu_hours=800.0, host_hours=100.0)
    assert failures.mtbf(machine) == pytest.approx(3600 / (80 / 800 + 10 / 100))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lama3", "Did you mean `llama3`"),
        ("gpu=0h", "`gpu`"),
        ("spares=2", "says no rate"),
        ("llama3,spares=many", "whole number of hosts"),
        ("llama3,spare=2", "Did you mean `spares`"),
        ("llama3,repair=1h,repair=2h", "given twice"),
        ("llama3,replaced=1.5", "share from 0 to 1"),
    ],
)
def test_failures_nobody_can_mean(text: str, words: str):
    with pytest.raises(pc.InputError, match=words):
        pc.Failures.parse(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("asynch", "Did you mean `async`"),
        ("store=fast", "write a rate"),
        ("every=often", "write a time"),
        ("async,blocking", "given twice"),
        ("rate=2GB/s", "says nothing of checkpoints"),
    ],
)
def test_checkpoints_nobody_can_mean(text: str, words: str):
    with pytest.raises(pc.InputError, match=words):
        pc.Checkpoints.parse(text)


def test_words_of_failures_and_checkpoints():
    failures = pc.Failures.parse("llama3,spares=4,repair=12h,replaced=80%")
    assert failures is not None
    assert (failures.spares, failures.repair_s, failures.replaced) == (4, 43200.0, 0.8)
    assert pc.Failures.parse("none") is None
    checkpoints = pc.Checkpoints.parse("async,host,unsharded,every=30min")
    assert (checkpoints.mode, checkpoints.to, checkpoints.sharded) == ("async", "host", False)
    assert checkpoints.every == 1800.0
