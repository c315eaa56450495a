"""Explanations: their sums, their signs, and what they say."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from itertools import pairwise

import plancast as pc
import pytest
from plancast.cli.main import main
from plancast.explaining.account import Account
from plancast.explaining.split import shares, whole
from plancast.report.html import to_html
from plancast.simplicity import complexity
from plancast.ties import best_probabilities, ties
from plancast.uncertainty import difference_scale, faster_probability


@pytest.fixture(scope="module")
def session() -> pc.Session:
    return pc.Session()


@pytest.fixture(scope="module")
def small() -> pc.Model:
    return pc.Model.preset("llama3-8b", seq=2048)


def plans(seed: int, number: int) -> list[tuple[str, str, str, str]]:
    """Machine, strategy, profile and dtype, at random."""
    draw = random.Random(seed)
    out = []
    for _ in range(number):
        tp, pp = draw.choice([1, 2, 4, 8]), draw.choice([1, 2])
        words = [f"tp={tp}", f"pp={pp}", f"mb={draw.choice([1, 2])}"]
        words += ["sp"] * (tp > 1 and draw.random() < 0.7)
        words += [f"vpp={draw.choice([2, 4])}"] * (pp > 1 and draw.random() < 0.5)
        words += [f"recompute={draw.choice(['none', 'selective', 'full'])}"]
        words += [f"zero={draw.choice([0, 1, 3] if pp == 1 else [0, 1])}"]
        machine = draw.choice(["dgx-a100-80g:2", "dgx-h100:2", "dgx-h100:4"])
        profile = draw.choice(["megatron-core", "megatron-2021", "torchtitan"])
        out.append((machine, ",".join(words), profile, draw.choice(["bf16", "fp16"])))
    return out


@pytest.fixture(scope="module")
def forecasts(session: pc.Session, small: pc.Model) -> list[pc.Forecast]:
    made = []
    for machine, strategy, profile, dtype in plans(7, 14):
        on = pc.Machine.preset(machine)
        made.append(
            pc.predict(small, on, strategy, batch=64, profile=profile, dtype=dtype, session=session)
        )
    return made


def test_an_account_sums_to_the_simulated_time_exactly(forecasts: list[pc.Forecast]) -> None:
    for forecast in forecasts:
        account = Account.of(forecast)
        assert sum(entry.value for entry in account.entries.values()) == account.simulated
        for entry in account.entries.values():
            product = Fraction(1)
            for factor in entry.factors.values():
                product *= factor
            assert not entry.factors or product == entry.value


@pytest.mark.parametrize(
    ("machine", "strategy"),
    [
        ("dgx-h100:2", "tp=4,pp=2,vpp=2,mb=1,sp"),
        ("dgx-h100:2", "tp=2,zero=3,mb=1,recompute=full"),
        ("dgx-h100:2", "tp=8,pp=2,mb=2"),
        ("dgx-a100-80g:1+dgx-h100:1", "tp=4,mb=1"),
    ],
)
def test_work_is_what_the_timeline_has(
    session: pc.Session, small: pc.Model, machine: str, strategy: str
) -> None:
    forecast = pc.predict(
        small, pc.Machine.preset(machine), strategy, batch=16, session=session, timeline=True
    )
    ran: dict[tuple[str, str, str], list[float]] = {}
    for task in forecast.timeline():
        ran.setdefault((task.device_class, task.purpose, task.name), []).append(
            task.end_s - task.start_s
        )
    due: dict[tuple[str, str, str], list[float]] = {}
    for stage in Account.of(forecast).stages:
        for item in stage.items:
            entry = due.setdefault((stage.name, item.purpose, item.label), [0, 0.0])
            entry[0] += item.count
            entry[1] += item.ps / 1e12
    assert {key: len(times) for key, times in ran.items()} == {k: v[0] for k, v in due.items()}
    for key, (_, alone) in due.items():
        assert alone <= sum(ran[key]) * (1 + 1e-9), key


def test_causes_sum_to_the_difference_to_the_picosecond(forecasts: list[pc.Forecast]) -> None:
    for a in forecasts:
        for b in forecasts[:3]:
            found = a.explain(versus=b)
            total = round(a.iteration_time * 1e12) - round(b.iteration_time * 1e12)
            assert found.picoseconds == total
            assert sum(cause.picoseconds for cause in found.causes) == total
            for moved in found.stages.values():
                assert sum(moved.values()) == total


def test_swapping_both_plans_changes_signs_alone(forecasts: list[pc.Forecast]) -> None:
    for a, b in pairwise(forecasts):
        there = {(c.part, c.kind, c.why): c.picoseconds for c in a.explain(versus=b).causes}
        back = {(c.part, c.kind, c.why): -c.picoseconds for c in b.explain(versus=a).causes}
        assert there == back


def test_a_plan_does_not_differ_from_itself(forecasts: list[pc.Forecast]) -> None:
    for forecast in forecasts[:4]:
        found = forecast.explain(versus=forecast)
        assert (found.picoseconds, found.causes, found.modules) == (0, (), {})
        assert found.verdict == "as fast"


def test_no_cause_is_larger_than_what_there_is_of_it(forecasts: list[pc.Forecast]) -> None:
    for a, b in zip(forecasts, reversed(forecasts), strict=True):
        largest = max(a.iteration_time, b.iteration_time)
        for cause in a.explain(versus=b).causes:
            assert abs(cause.seconds) <= largest * (1 + 1e-9)
            assert cause.sentence


def test_stages_sum_to_the_iteration(forecasts: list[pc.Forecast]) -> None:
    for forecast in forecasts:
        for stage in forecast.explain().stages:
            assert sum(stage.seconds.values()) == pytest.approx(forecast.iteration_time, rel=1e-9)
            assert sum(stage.by_resource.values()) == pytest.approx(forecast.iteration_time)
            assert stage.binding in stage.by_resource


def test_shares_of_a_product_are_exact_and_antisymmetric() -> None:
    draw = random.Random(3)
    for _ in range(100):
        size = draw.randint(1, 3)
        a, b = (
            {str(i): Fraction(draw.randint(0, 9), draw.randint(1, 9)) for i in range(size)}
            for _ in range(2)
        )
        there, back = shares(a, b), shares(b, a)
        product = [Fraction(1), Fraction(1)]
        for name in a:
            product[0] *= a[name]
            product[1] *= b[name]
        assert sum(there.values()) == product[0] - product[1]
        assert there == {name: -value for name, value in back.items()}
        rounded = whole(there, round(sum(there.values())))
        assert sum(rounded.values()) == round(sum(there.values()))


def test_more_flops_do_not_slow_a_plan_down_unless_it_says_why(
    session: pc.Session, small: pc.Model
) -> None:
    machine = pc.Machine.preset("dgx-h100:2")
    space = "tp=1|2|4,pp=1|2,mb=1|2,zero=0|1"
    ranking = pc.rank(small, machine, batch=64, space=space, session=session)
    for forecast in (ranking[0], ranking[len(ranking) // 2], ranking[-1]):
        for marginal in forecast.explain().marginals:
            if marginal.seconds is None or marginal.resource == "GPUs":
                continue
            wrong = marginal.seconds * marginal.change > 0
            assert wrong == bool(marginal.anomaly), marginal
            assert not (wrong and marginal.resource == "memory")


def test_bottlenecks_are_what_ifs(session: pc.Session, small: pc.Model) -> None:
    plan = "tp=4,pp=2,mb=1,sp"
    machine = pc.Machine.preset("dgx-h100:2")
    forecast = pc.predict(small, machine, plan, batch=64, session=session)
    found = forecast.explain().bottlenecks
    assert [b.saves for b in found] == sorted((b.saves for b in found), reverse=True)
    for bottleneck in found:
        if bottleneck.simulated:
            changed = pc.predict(
                small, machine, plan, batch=64, session=session, what_if=bottleneck.change
            )
            assert bottleneck.iteration_time == pytest.approx(changed.iteration_time, rel=1e-12)
        elif bottleneck.change == "bubble":
            busiest = max(s.busy for s in Account.of(forecast).stages) / 1e12
            level = forecast.iteration_time / forecast.simulated_time
            assert bottleneck.iteration_time == pytest.approx(busiest * level)
    first = found[0]
    assert first.next != first.name
    assert first.next_iteration_time < first.iteration_time


def test_a_plan_that_does_not_fit_is_told_what_would(session: pc.Session) -> None:
    forecast = pc.predict(
        pc.Model.preset("llama3-70b"), pc.Machine.preset("dgx-h100:2"), "tp=8,mb=1", batch=16,
        session=session,
    )  # fmt: skip
    assert not forecast.fits
    assert forecast.explain().advice == forecast.fit_advice
    assert "Smallest" in to_html(forecast.explain()) or "No single change" in forecast.fit_advice


def test_more_memory_permits_what_less_does_not(session: pc.Session, small: pc.Model) -> None:
    forecast = pc.predict(
        small, pc.Machine.preset("dgx-h100:1"), "tp=2,sp,zero=1,mb=2,recompute=full", batch=64,
        session=session,
    )  # fmt: skip
    more, less = (m for m in forecast.explain().marginals if m.resource == "memory")
    assert more.seconds is not None and more.seconds <= 0
    assert less.seconds is None or less.seconds >= 0


def test_a_what_if_is_explained_as_one(session: pc.Session, small: pc.Model) -> None:
    machine, plan = pc.Machine.preset("dgx-h100:2"), "tp=8,mb=1"
    now = pc.predict(small, machine, plan, batch=64, session=session)
    then = pc.predict(small, machine, plan, batch=64, session=session, what_if="nvlink=2x")
    found = then.explain(versus=now)
    assert found.picoseconds < 0
    assert sum(c.picoseconds for c in found.causes if c.part == "exposed_tp") < 0


def test_layers_whose_kernels_are_free_end() -> None:
    # Once a layer that takes no time, but for a collective that lasts on, was begun for ever.
    model, machine = pc.Model.preset("flan-t5-small"), pc.Machine.preset("dgx-h100:2x1")
    times = {
        pc.predict(
            model, machine, "tp=2,mb=1,sp", what_if="kernel:memory=free", shortcuts=shortcuts
        ).iteration_time
        for shortcuts in (True, False)
    }
    assert len(times) == 1


def test_jobs_beside_others_are_refused(small: pc.Model) -> None:
    job = pc.TrainingJob(name="a", model=small, strategy="tp=8,mb=1", placement="gpus 0-7", batch=8)
    (row,) = pc.predict_jobs([job], pc.Machine.preset("dgx-h100:1"))
    with pytest.raises(pc.InputError, match="job beside others"):
        row.forecast.explain()


def test_the_command_says_the_same(capsys: pytest.CaptureFixture[str], tmp_path) -> None:  # type: ignore[no-untyped-def]
    line = ["explain", "-m", "llama3-8b", "-c", "dgx-h100:1", "--batch", "16", "-s", "tp=8,mb=1"]
    picture = tmp_path / "why.svg"
    assert main([*line, "--versus", "tp=4,mb=1", "--json", "--svg", str(picture)]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert sum(c["picoseconds"] for c in fields["causes"]) == fields["picoseconds"]
    assert picture.read_text().startswith("<svg")
    assert main([*line, "--versus", "tp=4,mb=1"]) == 0
    out = capsys.readouterr().out
    assert fields["verdict"] in out
    assert main([*line, "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert {"stages", "bottlenecks", "marginals", "advice"} <= set(alone)
    assert main([*line, "--svg", str(picture)]) == 2
    assert "--versus" in capsys.readouterr().err


def test_the_other_machine_is_what_versus_cluster_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = ["explain", "-m", "llama3-8b", "-c", "dgx-h100:1", "--batch", "16", "-s", "tp=8,mb=1"]
    assert main([*line, "--versus-cluster", "dgx-a100-80g:1", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["seconds"] < 0
    assert any("A100-SXM-80GB" in cause["sentence"] for cause in fields["causes"])


class Plan:
    """A forecast of which only errors matter."""

    def __init__(self, time: float, factors: dict[str, tuple[float, float]], own: float) -> None:
        self.iteration_time, self._factors, self.own_variance_s2 = time, factors, own**2
        self.strategy, self.chosen = f"mb={time}", {}  # type: ignore[var-annotated]

    def factors(self) -> dict[str, tuple[float, float]]:
        return self._factors


def test_of_two_the_better_is_as_probable_as_a_comparison_says() -> None:
    for gap in (0.0, 0.05, 0.3):
        a = Plan(1.0, {"gemm": (0.8, 0.1), "nic": (0.2, 0.2)}, 0.03)
        b = Plan(1.0 + gap, {"gemm": (0.7, 0.1)}, 0.04)
        stated = faster_probability(-gap, difference_scale(a, b))
        assert best_probabilities([a, b])[0] == pytest.approx(stated, abs=0.01)


def test_what_all_share_tells_nothing_apart() -> None:
    shared = [Plan(1.0 + i / 100, {"software": (1.0, 0.5)}, 0.0) for i in range(3)]
    assert best_probabilities(shared) == [1.0, 0.0, 0.0]
    assert [tie.position for tie in ties(shared)] == [0]
    own = [Plan(1.0 + i / 1000, {"software": (1.0, 0.5)}, 0.1) for i in range(3)]
    assert sum(best_probabilities(own)) == pytest.approx(1.0)
    assert sorted(tie.position for tie in ties(own)) == [0, 1, 2]


def test_ties_prefer_the_simpler_plan(session: pc.Session, small: pc.Model) -> None:
    ranking = pc.rank(
        small, pc.Machine.preset("dgx-h100:2"), batch=64, session=session,
        space="tp=1|2,pp=1|2,mb=1|2,zero=1,recompute=none",
    )  # fmt: skip
    found = ranking.ties
    best = max(tie.probability for tie in found)
    order = [(tie.probability < best / 10, tie.complexity) for tie in found]
    assert order == sorted(order)
    assert sum(tie.probability for tie in found) == pytest.approx(1.0)
    assert 0 in [tie.position for tie in found]
    # A total order: plans that differ in their text differ in it or in their place.
    for tie in found:
        assert tie.complexity == complexity(ranking[tie.position])
