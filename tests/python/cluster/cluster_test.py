"""Jobs that share the network of a cluster."""

from __future__ import annotations

import json
import random

import plancast as pc
import pytest

# CRUX's example: 40 GPUs, two hosts, one link between them.
UNIT = pc.Machine.from_yaml("preset: dgx-a100-80g\nhosts: 2\ngpus_per_host: 20\nnics_per_host: 1")
P = pc.ClusterJob(name="P", placement="hosts 0-1 gpus 0-15", compute=2, communicate="2 s")
Q = pc.ClusterJob(name="Q", placement="hosts 0-1 gpus 16-19", compute=2, communicate="3 s")


def test_two_equal_jobs_of_crux():
    one, two = (
        pc.ClusterJob(name=name, placement=f"gpus {gpus}", compute=1, communicate="1 s")
        for name, gpus in (("one", "0-9"), ("two", "10-19"))
    )
    fair = pc.cluster([one, two], UNIT)
    assert [job.iteration for job in fair.jobs] == pytest.approx([3.0, 3.0], abs=1e-9)
    assert fair.busy_share == pytest.approx(1 / 3, abs=1e-9)
    strict = pc.cluster([one, two], UNIT, sharing="strict")
    assert [job.iteration for job in strict.jobs] == pytest.approx([2.0, 2.0], abs=1e-9)
    assert strict.busy_share == pytest.approx(1 / 2, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "iterations", "busy"),
    [
        ({"sharing": "strict"}, [4.0, 8.0], 0.45),
        ({"sharing": "strict", "order": "reverse"}, [5.0, 5.0], 0.40),
        ({"sharing": "max-min"}, [5.2, 6.5], 0.369),
    ],
)
def test_the_unlike_jobs_of_crux(options, iterations, busy):
    outcome = pc.cluster([P, Q], UNIT, **options)
    assert [job.iteration for job in outcome.jobs] == pytest.approx(iterations, abs=1e-9)
    assert outcome.busy_share == pytest.approx(busy, abs=5e-4)


def test_who_waits_for_whom():
    outcome = pc.cluster([P, Q], UNIT, sharing="strict")
    (wait,) = outcome.waits
    assert (wait.waiter, wait.other) == ("Q", "P")
    assert wait.seconds == pytest.approx(3.0)  # of an iteration
    assert wait.link.startswith("nic 0 of host")


def test_a_weight_gives_more_of_a_link():
    jobs = [
        pc.ClusterJob(name=name, placement=f"gpus {gpus}", communicate="1 s", weight=weight)
        for name, gpus, weight in (("a", "0-9", 3), ("b", "10-19", 1))
    ]
    a, b = pc.cluster(jobs, UNIT, sharing="weighted").jobs
    assert (a.iteration, b.iteration) == pytest.approx((4 / 3, 4.0), rel=1e-6)


PLANS = [
    ("dgx-a100-80g:2", "tp=4,mb=1", 16, "max-min"),
    ("dgx-a100-80g:2", "tp=2,pp=2,mb=1,zero=1", 32, "strict"),
    ("dgx-h100:2", "tp=8,mb=1,zero=3", 8, "max-min"),
    ("dgx-h100:1", "tp=8,mb=1", 8, "weighted"),
]


@pytest.mark.parametrize(("machine", "plan", "batch", "sharing"), PLANS)
def test_one_job_is_as_its_forecast_to_the_digit(machine, plan, batch, sharing, small):
    where = pc.Machine.open(machine)
    forecast = pc.predict(small, where, plan, batch=batch)
    job = pc.ClusterJob(name="only", model=small, strategy=plan, batch=batch, placement="gpus 0-7")
    outcome = pc.cluster([job], where, sharing=sharing)
    assert outcome.jobs[0].alone == forecast.iteration_time
    assert outcome.jobs[0].iteration == forecast.iteration_time


@pytest.mark.parametrize("seed", range(40))
def test_so_is_any_plan_on_all_of_a_machine(seed):
    draw, model = random.Random(seed), pc.Model.preset("gpt2")
    name = draw.choice(["dgx-h100", "dgx-a100-80g", "t4-pcie", "l40s-host-bridge"])
    where = pc.Machine.preset(name, hosts=draw.choice([1, 2, 4]))
    tp, pp = draw.choice([1, 2, 4]), draw.choice([1, 2])
    # Tensor parallelism stays inside of four GPUs, which is the least that a host has.
    if where.devices % (tp * pp):
        pp = 1
    zero = draw.choice([0, 1]) if pp > 1 else draw.choice([0, 1, 3])
    plan, batch = f"tp={tp},pp={pp},mb=1,zero={zero}", where.devices * draw.choice([1, 2])
    forecast = pc.predict(model, where, plan, batch=batch)
    job = pc.ClusterJob(
        name="only", model=model, strategy=plan, batch=batch,
        placement=f"devices 0-{where.devices - 1}",
    )  # fmt: skip
    options = {"sharing": draw.choice(["max-min", "strict", "weighted"]),
               "uplinks": draw.choice([1, 2])}  # fmt: skip
    outcome = pc.cluster([job], where, **options).jobs[0]
    assert (outcome.alone, outcome.iteration) == (forecast.iteration_time,) * 2


@pytest.mark.parametrize(
    ("name", "plan", "batch"),
    [("llama3-8b", "tp=4,mb=1,zero=1", 16), ("gpt2", "dp=8,mb=8", 64)],
)
def test_two_plans_on_one_interface_are_as_in_one_simulation(name, plan, batch):
    machine = pc.Machine.from_yaml("preset: dgx-a100-80g\nhosts: 2\nnics_per_host: 1")
    model = pc.Model.preset(name)
    told = [
        {"name": who, "model": model, "strategy": plan, "batch": batch, "placement": where}
        for who, where in (("a", "gpus 0-3"), ("b", "gpus 4-7"))
    ]
    outcome = pc.cluster([pc.ClusterJob(**one) for one in told], machine)
    together = pc.predict_jobs([pc.TrainingJob(**one) for one in told], machine)
    for loop, whole in zip(outcome.jobs, together, strict=True):
        assert loop.alone == whole.alone
        assert loop.slowdown > 1.1
        # The loop knows of phases what the joint simulation knows of single messages.
        assert loop.slowdown == pytest.approx(whole.slowdown, rel=2e-3)


def test_paths_of_jobs_keep_out_of_each_others_way():
    machine = pc.Machine.from_yaml(
        "preset: dgx-a100-80g\nhosts: 8\nnics_per_host: 1\nhosts_per_pod: 4\nrail_optimized: false"
    )
    jobs = [
        pc.ClusterJob(name=f"j{n}", placement=f"hosts {n},{n + 4}", communicate="1 s")
        for n in range(4)
    ]
    by_load = pc.cluster(jobs, machine, paths="load", uplinks=4)
    assert [job.slowdown for job in by_load.jobs] == [1.0] * 4
    worst = [
        max(job.slowdown for job in pc.cluster(jobs, machine, uplinks=4, seed=seed).jobs)
        for seed in range(8)
    ]
    assert max(worst) >= 2.0  # two flows of a hash on one link


def test_a_finite_run_and_its_timeline(tmp_path):
    jobs = [
        pc.ClusterJob(name="first", gpus=40, compute=1, iterations=10),
        pc.ClusterJob(name="second", gpus=8, compute=1, communicate="1 s", iterations=5),
    ]
    outcome = pc.cluster(jobs, UNIT, detail=12)
    assert not outcome.steady
    assert outcome.job("second").waited == 10.0
    assert outcome.job("second").completion == pytest.approx(20.0)
    assert outcome.busy_share == pytest.approx((40 * 10 + 8 * 5) / (40 * outcome.end))
    path = tmp_path / "trace.json"
    outcome.write_trace(path)
    events = json.loads(path.read_text())["traceEvents"]
    names = {event["name"] for event in events}
    assert {"waits for GPUs", "runs", "computes", "GPUs"} <= names
    assert len(pc.ChromeTrace.open(str(path))) > 0


def test_until_stops_there():
    job = pc.ClusterJob(name="a", gpus=4, compute=1, iterations=1000)
    outcome = pc.cluster([job], UNIT, until=10.5)
    assert (outcome.jobs[0].iterations, outcome.jobs[0].end, outcome.end) == (10, None, 10.5)


def test_what_one_change_would_give():
    machine = pc.Machine.from_yaml(
        "preset: dgx-a100-80g\nhosts: 6\nnics_per_host: 1\nhosts_per_pod: 3\n"
        "oversubscription: 3\nrail_optimized: false"
    )
    jobs = [
        pc.ClusterJob(name=name, placement=where, compute=1, communicate="25 GB")
        for name, where in (("a", "hosts 0,3"), ("b", "hosts 1,4"))
    ]
    now, *changes = pc.cluster_changes(jobs, machine, paths="load")
    assert (now.change, now.outcome.jobs[0].iteration) == ("as it is", pytest.approx(3.0))
    by_name = {row.change: row.outcome for row in changes}
    # In one pod it has the uplinks to nobody.
    assert by_name["a packed where there is room"].jobs[0].slowdown == 1.0
    assert by_name["a spine more (an uplink for every pod)"].jobs[0].iteration == pytest.approx(2.0)
    assert by_name["a rail more (an interface for every host)"].busy_share == pytest.approx(
        now.outcome.busy_share
    )
    merits = [row.outcome.busy_share for row in changes]
    assert merits == sorted(merits, reverse=True)


def test_a_tenant_asks_what_would_help_it():
    machine = pc.Machine.from_yaml(
        "preset: dgx-a100-80g\nhosts: 8\nnics_per_host: 1\nhosts_per_pod: 4\n"
        "oversubscription: 4\nrail_optimized: false"
    )
    jobs = [
        pc.ClusterJob(name=name, placement=where, compute=1, communicate=sent)
        for name, where, sent in (
            ("mine", "hosts 0,4", "25 GB"),
            ("other", "hosts 1,5", "25 GB"),
            ("inside", "hosts 2,3", "25 GB"),
            ("also", "hosts 6,7", "25 GB"),
        )
    ]
    now, *changes = pc.cluster_changes(jobs, machine, tenant="mine")
    assert now.outcome.job("mine").slowdown > 1.2
    times = [row.outcome.job("mine").iteration for row in changes if row.outcome is not None]
    assert times == sorted(times)
    names = [row.change for row in changes]
    # The cluster is full enough that only an exchange puts it into one pod.
    assert "mine and inside change places" in names
    swapped = next(row for row in changes if row.change == "mine and inside change places").outcome
    assert swapped.job("mine").devices == now.outcome.job("inside").devices
    assert swapped.job("mine").slowdown == 1.0
    with pytest.raises(pc.InputError, match="no job `mime`"):
        pc.cluster_changes(jobs, machine, tenant="mime")


def test_a_picture_of_jobs_over_time(tmp_path):
    jobs = [
        pc.ClusterJob(name="first <&>", gpus=40, compute=1, iterations=10),
        pc.ClusterJob(name="second", gpus=8, compute=1, communicate="1 s", iterations=5),
    ]
    path = tmp_path / "jobs.svg"
    pc.cluster(jobs, UNIT).to_svg(path)
    picture = path.read_text()
    assert picture.count("waits 10") == 1
    assert "first &lt;&amp;&gt;" in picture


@pytest.mark.parametrize(
    ("fields", "options", "words"),
    [
        ({"gpus": 41}, {}, "needs 41 GPUs; the cluster has 40"),
        ({"gpus": 4, "compute": 0}, {}, "neither computes nor communicates"),
        ({}, {}, "job `a` cannot run: it does not say how many GPUs"),
        ({"gpus": 4, "placement": "hosts 7"}, {}, "leaves the machine"),
        ({"gpus": 4, "communicate": "3 parsecs"}, {}, "3 parsecs"),
        ({"gpus": 4}, {"sharing": "fair"}, "no sharing `fair`"),
        ({"gpus": 4}, {"levels": -1}, "levels"),
        ({"gpus": 4, "weight": 0}, {}, "weight 0"),
        ({"gpus": 4, "priority": 1 << 40}, {}, "priority 1099"),
        ({"gpus": 1 << 80}, {}, "gpus 1208925"),
        ({"gpus": 4, "iterations": 1 << 49}, {}, "92 days"),
        ({"gpus": 4, "compute": "1e400 s"}, {}, "compute"),
        ({"gpus": 4}, {"shortcuts": False}, "has no end"),
        ({"gpus": 4}, {"detail": 1e6}, "an hour"),
    ],
)
def test_refusals(fields, options, words):
    with pytest.raises(pc.InputError, match=words):
        pc.cluster([pc.ClusterJob(**{"name": "a", "compute": 1, **fields})], UNIT, **options)


def beside_gpt(gpt_sends: float, overlap: float, bert: float, share: float) -> list[float]:
    """Slow-downs of GPT (1.53 s an iteration alone) and BERT, equal in what overlaps."""

    def job(name: str, gpus: str, iteration: float, sends: float) -> pc.ClusterJob:
        compute = (iteration - sends) / (1 - overlap)
        compute = iteration if overlap * compute > sends else compute
        return pc.ClusterJob(
            name=name,
            placement=f"gpus {gpus}",
            compute=compute,
            communicate=f"{sends} s",
            overlap=overlap,
        )

    machine = pc.Machine.from_yaml(
        "preset: dgx-a100-80g\nhosts: 2\ngpus_per_host: 40\nnics_per_host: 1"
    )
    jobs = [job("gpt", "0-31", 1.53, gpt_sends), job("bert", "32-39", bert, share * bert)]
    return [job.slowdown for job in pc.cluster(jobs, machine).jobs]


def test_what_crux_measured_of_bert_does_not_follow_from_gpt():
    """Three guesses of BERT give GPT its published +11 %, and BERT anything from 0 to -16 %."""
    guesses = [(0.7, 0.4, 0.4, 0.2), (0.7, 0.35, 0.8, 0.3), (0.7, 0.6, 0.8, 0.5)]
    losses = []
    for guess in guesses:
        gpt, bert = beside_gpt(*guess)
        assert gpt == pytest.approx(1.11, abs=0.005)
        losses.append(1 - 1 / bert)
    assert min(losses) < 0.01
    assert max(losses) > 0.15
