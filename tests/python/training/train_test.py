"""Whole runs: steps times iterations, and intervals that follow from the forecasts'."""

from __future__ import annotations

import math
import pickle

import plancast as pc
import pytest
from plancast.training.spread import Spread, spread_of

MODEL = pc.Model.preset("llama3-8b")
MACHINE = pc.Machine.preset("dgx-h100", hosts=2)
PLAN = "tp=2,zero=1,mb=1,recompute=selective"


def train(**how):
    asked = {"tokens": "100B", "batch": 512, "failures": None, **how}
    return pc.train(MODEL, MACHINE, asked.pop("strategy", PLAN), **asked)


@pytest.fixture(scope="module")
def run() -> pc.TrainingRun:
    return train()


def test_time_is_steps_times_the_forecast(run):
    forecast = pc.predict(MODEL, MACHINE, PLAN, batch=512)
    steps = math.ceil(100e9 / (512 * MODEL.seq))
    assert run.steps == steps
    assert run.seconds == pytest.approx(steps * forecast.iteration_time, rel=1e-12)
    assert run.gpu_hours == pytest.approx(run.seconds / 3600 * 16)
    assert run.usd == pytest.approx(run.gpu_hours * 3.5)


def test_the_interval_of_one_phase_is_that_of_its_forecast(run):
    forecast = run.phases[0].forecast
    for bound, own in zip(run.interval, forecast.interval, strict=True):
        assert bound / run.seconds == pytest.approx(own / forecast.iteration_time, rel=1e-6)


def test_bounds_of_money_and_energy_follow_the_time(run):
    for bounds, median in ((run.usd_interval, run.usd), (run.kwh_interval, run.kwh)):
        assert bounds is not None
        assert [bound / median for bound in bounds] == pytest.approx(
            [bound / run.seconds for bound in run.interval]
        )


def test_probabilities_are_those_of_the_interval(run):
    low, high = run.interval
    assert run.probability_by(low) == pytest.approx(0.05, abs=1e-4)
    assert run.probability_by(run.seconds) == pytest.approx(0.5)
    assert run.probability_by(high) == pytest.approx(0.95, abs=1e-4)


def test_a_date_has_a_probability(run):
    asked = train(days=run.days)
    assert asked.to_dict()["probability_of_date"] == pytest.approx(0.5)


def test_a_run_travels(run):
    copy = pickle.loads(pickle.dumps(run))
    assert (copy.seconds, copy.interval, copy.usd) == (run.seconds, run.interval, run.usd)
    assert repr(copy) == repr(run)


def test_phases_of_one_plan_share_their_errors(run):
    halves = train(phases=[pc.Phase(tokens="40B"), pc.Phase()])
    assert halves.steps in (run.steps, run.steps + 1)
    assert halves.spread.core == pytest.approx(run.spread.core, rel=1e-6)


def test_errors_of_different_plans_cancel_in_part():
    one = pc.predict(MODEL, MACHINE, PLAN, batch=512)
    other = pc.predict(MODEL, MACHINE, "tp=8,zero=1,mb=1", batch=512)
    both = spread_of([(1, one), (1, other)])
    apart = [spread_of([(1, one)]).core, spread_of([(1, other)]).core]
    assert both.core < max(apart)
    assert both.core > min(apart) / math.sqrt(2)


def test_a_ramp_grows_in_equal_parts(run):
    ramped = train(ramp="128:128:12B")
    assert [phase.forecast.global_batch for phase in ramped.phases] == [128, 256, 384, 512]
    first = ramped.phases[0]
    assert first.steps == math.ceil(4e9 / (128 * MODEL.seq))
    assert ramped.seconds > run.seconds  # smaller batches are less efficient
    assert ramped.units == pytest.approx(100e9, rel=0.001)


def test_phases_have_plans_of_their_own():
    phases = [pc.Phase(), pc.Phase.parse("tokens=10B seq=32768 batch=128 strategy=tp=8,cp=2,mb=1")]
    long = train(phases=phases)
    assert [phase.forecast.seq for phase in long.phases] == [MODEL.seq, 32768]
    assert long.phases[1].forecast.strategy.startswith("tp=8")
    assert long.phases[0].steps * 512 * MODEL.seq == pytest.approx(90e9, rel=0.001)


def test_pauses_to_evaluate_add_up(run):
    paused = train(evaluate="1000:2min")
    assert paused.seconds - run.seconds == pytest.approx(run.steps // 1000 * 120)
    assert paused.interval[1] - run.interval[1] == pytest.approx(run.steps // 1000 * 120)


def test_failures_stretch_the_run(run):
    failing = train(failures=pc.Failures(host_hours=200.0), checkpoints="every=20min")
    assert failing.reliability is not None
    assert failing.seconds == pytest.approx(run.seconds / failing.useful_share)
    assert failing.useful_share < 1
    simulated = train(
        failures=pc.Failures(host_hours=20.0), checkpoints="every=20min", simulate_runs=20
    )
    assert simulated.simulated is not None
    assert simulated.simulated.useful == pytest.approx(simulated.useful_share, rel=0.02)


def test_that_nothing_fails_is_said(run):
    assert "nothing fails, and nothing is saved" in run.assumed
    assert not any("nothing fails" in text for text in train(failures="llama3").assumed)


def test_spare_hosts_are_paid_for(run):
    spare = train(failures="llama3,spares=1")
    assert spare.gpus_paid == 24
    assert spare.gpu_hours / spare.seconds == pytest.approx(run.gpu_hours / run.seconds * 1.5)


def test_the_best_plan_is_as_good_as_the_first_of_a_ranking():
    best = train(strategy="best", batch=64)
    ranking = pc.rank(MODEL, MACHINE, batch=64, top=1)
    plan = best.phases[0].forecast
    assert plan.fits
    assert plan.iteration_time <= 1.02 * ranking[0].iteration_time


def test_a_net_without_sequences_counts_samples():
    net, box = pc.Model.preset("resnet50"), pc.Machine.preset("dgx-a100-80g")
    run = pc.train(net, box, "mb=64", samples="1.28M", batch=512, failures=None)
    assert run.steps == 2500
    with pytest.raises(pc.InputError, match="give `samples`"):
        pc.train(net, box, "mb=64", tokens="1M")


def test_energy_is_rated_power_times_pue(run):
    own = train(watts=1000.0, pue=1.5)
    assert own.kwh == pytest.approx(own.seconds / 3600 * 16 * 1.0 * 1.5)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"tokens": None}, "how long the run is"),
        ({"tokens": "plenty"}, "write a number such as"),
        ({"tokens": -5}, "above 0"),
        ({"samples": 5}, "not in both"),
        ({"phases": [pc.Phase(), pc.Phase()]}, "2 phases do not say"),
        ({"phases": [pc.Phase(tokens="200B")]}, "the phases train on"),
        ({"phases": [pc.Phase(tokens="20B")]}, "take the rest"),
        ({"phases": [pc.Phase(samples=5)]}, "give `tokens`"),
        ({"ramp": "64"}, "no ramp"),
        ({"ramp": "100:64:1B"}, "does not reach"),
        ({"ramp": "64:64:200B"}, "longer than its phase"),
        ({"ramp": "4:4:1B"}, "phase `ramp 4`"),
        ({"evaluate": "often"}, "no pause"),
        ({"price": "cheap"}, "no price"),
        ({"price": -1.0}, "above 0"),
        ({"pue": 0.5}, "`pue`"),
        ({"checkpoints": "blocking"}, "give `every`"),
        ({"simulate_runs": 3}, "nothing to simulate"),
        ({"failures": "gpu=1s"}, "does not get anywhere"),
    ],
)
def test_runs_nobody_can_mean(how: dict, words: str):
    with pytest.raises(pc.InputError, match=words):
        train(**how)


def test_a_spread_without_error_is_certain():
    sure = Spread(0.0, 0.0)
    assert sure.interval(5.0) == (5.0, 5.0)
    assert [sure.probability_below(ratio) for ratio in (0.9, 1.0, 1.1)] == [0.0, 0.5, 1.0]


def test_a_ramp_of_the_best_plan_begins_with_a_plan_that_can_run_it():
    machine = pc.Machine.preset("dgx-h100", hosts=16)
    run = pc.train(
        MODEL, machine, "best", tokens="100B", batch=256, ramp="64:64:10B", failures=None
    )
    assert run.fits
    assert [phase.forecast.global_batch for phase in run.phases] == [64, 128, 192, 256]


@pytest.mark.parametrize("stragglers", [None, "50%:0.5"])
def test_random_steps_take_longer_on_average_and_alike_for_one_seed(stragglers):
    small, host = pc.Model.preset("gpt2"), pc.Machine.preset("dgx-h100", hosts=1)
    plan = "zero=1,mb=8"

    def run(seed):
        random = pc.Randomness(jitter=0.05, stragglers=stragglers, samples=3, seed=seed)
        asked = {"tokens": "1B", "batch": 64, "failures": None}
        return pc.train(small, host, plan, randomness=random, **asked)

    plain = pc.predict(small, host, plan, batch=64)
    drawn = pc.predict(
        small, host, plan, batch=64,
        randomness=pc.Randomness(jitter=0.05, stragglers=stragglers, samples=3, seed=7),
    )  # fmt: skip
    first = run(7)
    assert first.phases[0].step_s == pytest.approx(drawn.distribution.mean_s, rel=1e-9)
    assert first.seconds > first.steps * plain.iteration_time
    assert run(7).to_dict() == first.to_dict()
    assert run(8).seconds != first.seconds
    assert first.to_dict()["phases"][0]["jitter"]["seed"] == 7
