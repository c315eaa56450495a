"""How sure forecasts and comparisons are."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

import plancast as pc
import pytest
from plancast.uncertainty import (
    NINETY_FIVE_PERCENT,
    difference_scale,
    faster_probability,
    student_below,
)


@dataclass
class Plan:
    """The error structure of a forecast, by hand."""

    shares: dict[str, tuple[float, float]]
    own_variance_s2: float = field(default=0.0)

    def factors(self):
        return self.shares


def test_students_t_is_symmetric_and_has_its_published_quantiles():
    # 0.90, 0.975 and 0.995 of four degrees of freedom, from any table.
    for probability, quantile in ((0.90, 1.533), (0.975, 2.776), (0.995, 4.604)):
        assert student_below(quantile) == pytest.approx(probability, abs=1e-4)
        assert student_below(-quantile) == pytest.approx(1 - probability, abs=1e-4)
    assert student_below(NINETY_FIVE_PERCENT) == pytest.approx(0.95, abs=1e-6)


def test_shared_errors_cancel():
    a = Plan({"gpu/gemm": (2.0, 0.1), "software/x": (3.0, 0.05)})
    assert difference_scale(a, a) == 0
    b = Plan({"gpu/gemm": (2.5, 0.1), "software/x": (3.0, 0.05)})
    assert difference_scale(a, b) == pytest.approx(0.05)
    assert difference_scale(b, a) == difference_scale(a, b)


def test_errors_of_different_factors_and_own_errors_add_up():
    a = Plan({"gpu/gemm": (2.0, 0.1)}, 0.01)
    b = Plan({"other/gemm": (3.0, 0.1)}, 0.03)
    assert difference_scale(a, b) == pytest.approx(math.sqrt(0.04 + 0.09 + 0.04))


def test_differences_drawn_from_the_model_lie_in_their_interval():
    draw = random.Random(5)
    a, b = {"f": (2.0, 0.1), "g": (1.0, 0.2)}, {"f": (2.5, 0.1), "g": (0.2, 0.2)}
    scale = difference_scale(Plan(a), Plan(b))
    inside, draws = 0, 20_000
    for _ in range(draws):
        # One t for all errors: the same runs of luck reach both plans.
        luck = math.sqrt(4 / draw.gammavariate(2, 2))
        errors = {name: draw.gauss(0, s) * luck for name, (_, s) in a.items()}
        difference = sum((b[name][0] - a[name][0]) * error for name, error in errors.items())
        inside += abs(difference) <= NINETY_FIVE_PERCENT * scale
    assert inside / draws == pytest.approx(0.9, abs=4 * math.sqrt(0.09 / draws))


def test_what_runs_take_beyond_the_simulation_is_in_the_time_and_its_parts():
    model, machine = pc.Model.preset("llama3-8b"), pc.Machine.preset("dgx-h100")
    ask = {"strategy": "tp=2,mb=1", "batch": 16}
    plain = pc.predict(model, machine, **ask, session=pc.Session(prior=False))
    forecast = pc.predict(model, machine, **ask)
    beyond = 1 + forecast.beyond_simulated
    assert beyond != 1 and plain.beyond_simulated == 0
    assert forecast.simulated_time == pytest.approx(plain.iteration_time, rel=1e-9)
    assert forecast.iteration_time == pytest.approx(plain.iteration_time * beyond)
    for whole, part in ((forecast, forecast.breakdown()), (forecast, forecast.critical_path())):
        assert sum(part.values()) == pytest.approx(whole.iteration_time)
    for name, (seconds, scale) in plain.factors().items():
        assert forecast.factors()[name] == pytest.approx((seconds * beyond, scale))
    assert forecast.interval[0] < forecast.iteration_time < forecast.interval[1]
    software = forecast.to_dict()["provenance"]["software"]
    assert software["times_simulated"] == 1 + forecast.beyond_simulated
    assert software["lineage"] == "megatron-core" and software["sources"] > 3


def test_nothing_is_added_to_models_without_sequences():
    forecast = pc.predict(
        pc.Model.preset("resnet50"), pc.Machine.preset("dgx-h100"), "dp=8,mb=64", batch=512
    )
    assert forecast.beyond_simulated == 0


def test_probability_of_being_faster():
    assert faster_probability(0, 0) == 0.5
    assert faster_probability(1, 0) == 0
    assert faster_probability(-NINETY_FIVE_PERCENT, 1) == pytest.approx(0.95, abs=1e-6)


@pytest.fixture(scope="module")
def forecasts():
    model = pc.Model.preset("llama3-8b")
    machine = pc.Machine.preset("dgx-a100-80g", hosts=1)
    session = pc.Session()

    def predict(strategy, **options):
        return pc.predict(model, machine, strategy, batch=16, session=session, **options)

    return predict


def test_plans_of_one_machine_differ_more_surely_than_each_is_known(forecasts):
    a = forecasts("tp=8,sp,zero=1,mb=1")
    b = forecasts("tp=4,dp=2,sp,zero=1,mb=1")
    (difference,) = pc.compare(a, b).differences
    low, high = difference.interval
    assert low <= difference.seconds <= high
    # As if no error were shared.
    alone = math.hypot(*(f.interval[1] - f.iteration_time for f in (a, b)))
    assert (high - low) / 2 < 0.8 * alone


def test_intervals_are_wider_on_the_slow_side(forecasts):
    forecast = forecasts("tp=8,sp,zero=1,mb=1")
    low, high = forecast.interval
    assert low < forecast.iteration_time < high
    assert high / forecast.iteration_time > forecast.iteration_time / low


def test_the_software_is_a_factor_of_all_of_the_time(forecasts):
    forecast = forecasts("tp=8,sp,zero=1,mb=1", profile="megatron-2021")
    seconds, scale = forecast.factors()["software/megatron-2021"]
    assert seconds == pytest.approx(forecast.iteration_time)
    assert scale > 0


def test_warnings_say_what_was_not_measured(forecasts):
    near = forecasts("tp=8,sp,mb=1")
    assert not any("A100-SXM-80GB/gemm" in warning for warning in near.warnings)
    forecast = pc.predict(
        pc.Model.preset("llama3-8b"), pc.Machine.preset("dgx1-v100-32g"), "tp=8,sp,mb=1", batch=16
    )
    assert any("extrapolated from other GPUs" in w for w in forecast.warnings)
    assert forecast.to_dict()["provenance"]["warnings"] == forecast.warnings
    assert forecast.interval[1] / forecast.iteration_time > near.interval[1] / near.iteration_time


def test_a_data_sheet_is_faster_than_reality(forecasts):
    plan = "tp=8,sp,zero=1,mb=1"
    assert forecasts(plan, datasheet=True).iteration_time < forecasts(plan).iteration_time


def test_jobs_together_have_intervals_around_their_own_times():
    model, machine = pc.Model.preset("llama3-8b"), pc.Machine.preset("dgx-a100-80g", hosts=2)
    jobs = [
        pc.TrainingJob(
            name=name, model=model, strategy="tp=4,dp=2,zero=1,mb=1", placement=place, batch=16
        )
        for name, place in (("one", "gpus 0-3"), ("two", "gpus 4-7"))
    ]
    for row in pc.predict_jobs(jobs, machine):
        low, high = row.forecast.interval
        time = row.forecast.iteration_time
        assert low < time < high
        assert row.forecast.factors()["software/megatron-core"][0] == pytest.approx(time)


def test_rankings_have_intervals_and_warnings():
    ranking = pc.rank(
        pc.Model.preset("llama3-8b"),
        pc.Machine.preset("v100-pcie-32g", hosts=8),
        batch=8,
        space="tp=8,pp=1,mb=1",
    )
    for plan in ranking:
        assert plan.interval[0] < plan.iteration_time < plan.interval[1]
        assert plan.warnings
