"""What the API gives travels between processes and is copied."""

from __future__ import annotations

import copy
import json
import multiprocessing
import pickle
import threading

import plancast as pc
import pytest
from plancast.communication.nccl import Topology

MACHINE = pc.Machine.preset("dgx-a100-80g", hosts=1)


def again(item):
    return pickle.loads(pickle.dumps(item))


def figures(forecast):
    fields = forecast.to_dict()
    del fields["simulate_s"]
    return json.dumps(fields)


@pytest.fixture(params=["llama3-8b", "resnet50", "t5-base", "mixtral-8x7b", "vit-b-16"])
def model(request):
    return pc.Model.preset(request.param)


def test_models(model):
    for twin in (again(model), copy.copy(model), copy.deepcopy(model)):
        assert twin == model
        assert hash(twin) == hash(model)
        assert str(twin) == str(model)
        assert twin.config == model.config


def test_every_preset_of_a_machine():
    for name in pc.Machine.presets():
        machine = pc.Machine.preset(name)
        assert again(machine) == machine
    assert copy.copy(MACHINE) == copy.deepcopy(MACHINE) == MACHINE


def test_strategies_are_copied_apart():
    tree = pc.Strategy.parse("tp=2,pp=2,mb=1")
    tree["layers.*.attn"].recompute("full").split(tp="heads")
    for twin in (again(tree), copy.copy(tree), copy.deepcopy(tree)):
        assert twin == tree
        twin["layers"].recompute("full")
        assert twin != tree


def test_a_strategy_brings_the_file_that_it_was_read_from():
    tree = pc.Strategy.from_deepspeed({"zero_optimization": {"stage": 2}})
    for twin in (again(tree), copy.copy(tree), copy.deepcopy(tree)):
        assert twin == tree
        assert twin.launch.framework == tree.launch.framework == "deepspeed"
        assert twin.launch.strategy == tree.launch.strategy
    assert again(tree.launch) == tree.launch


def test_forecasts_bring_their_figures(small, monkeypatch):
    forecast = pc.predict(small, MACHINE, "tp=2,pp=2,mb=1", batch=16)
    text = pickle.dumps(forecast)
    assert len(text) < 20_000
    monkeypatch.setattr("plancast._core.predict", None)
    twin = pickle.loads(text)
    assert figures(twin) == figures(forecast)
    assert repr(twin) == repr(forecast)
    assert twin.memory == forecast.memory
    assert again(forecast.memory) == forecast.memory
    assert figures(again(twin)) == figures(forecast)
    assert copy.deepcopy(forecast) is copy.copy(forecast) is forecast
    assert pc.compare(twin, forecast).differences[0].seconds == 0


def test_forecasts_make_again_what_is_too_large_to_bring(small, tmp_path):
    forecast = pc.predict(
        small, MACHINE, "tp=2,pp=2,mb=1", batch=16, timeline=True, what_if="compute=2x"
    )
    twin = again(forecast)
    assert twin.timeline() == forecast.timeline()
    assert twin.memory.timeline() == forecast.memory.timeline()
    assert twin.memory.explain() == forecast.memory.explain()
    forecast.to_perfetto(tmp_path / "one.json")
    twin.to_perfetto(tmp_path / "two.json")
    assert (tmp_path / "one.json").read_text() == (tmp_path / "two.json").read_text()
    with pytest.raises(pc.InputError, match="no timeline"):
        again(pc.predict(small, MACHINE, "tp=8,mb=1")).timeline()


def test_a_forecast_still_says_what_would_fit():
    forecast = pc.predict(pc.Model.preset("llama3-70b"), MACHINE, "tp=8,mb=1", batch=8)
    assert not forecast.fits
    assert again(forecast).fit_advice == forecast.fit_advice != ""


def test_rankings_and_comparisons(small):
    ranking = pc.rank(small, MACHINE, batch=16, space="tp=1|2,mb=1|2")
    twin = again(ranking)
    assert [figures(plan) for plan in twin] == [figures(plan) for plan in ranking]
    assert twin.to_frame().equals(ranking.to_frame())
    assert (twin.space, twin.excluded, twin.evaluated, twin.seconds, twin.objective) == (
        ranking.space, ranking.excluded, ranking.evaluated, ranking.seconds, ranking.objective
    )  # fmt: skip
    assert len(copy.deepcopy(ranking)) == len(copy.copy(ranking)) == len(ranking)
    comparison = pc.compare(ranking[0], ranking[-1])
    assert again(comparison).differences == comparison.differences


def test_answers_to_questions(small):
    change = pc.what_if(small, MACHINE, "tp=8,mb=1", "compute=2x", batch=8)
    assert again(change).speedup == change.speedup
    ranked = pc.sensitivities(small, MACHINE, "tp=8,mb=1", batch=8)
    assert again(ranked).to_dict() == ranked.to_dict()
    (fit,) = pc.fits(small, MACHINE, "tp=8,mb=1", batch=8)
    assert again(fit) == fit


def test_answers_with_runs_and_reasons(small):
    job = pc.ClusterJob(name="a", placement="hosts 0-0 gpus 0-3", compute=1, communicate="1 s")
    trace = pc.Availability.parse("time_min,hosts\n0,4\n30,3\n60,4\n")
    one, other = (pc.predict(small, MACHINE, plan, batch=16) for plan in ("tp=2,mb=1", "mb=1"))
    answers = [
        pc.plan(small, MACHINE, batch=16, space="tp=1|2,mb=1", tokens="1B"),
        pc.spot(small, MACHINE, trace, tokens=1e11, batch=96),
        pc.cluster([job], MACHINE),
        pc.gradients(pc.Model.preset("resnet50"), MACHINE, "mb=32", dtype="fp16"),
        one.explain(),
        one.explain(versus=other),
    ]
    for answer in answers:
        twin = again(answer)
        assert repr(twin) == repr(answer) == repr(copy.deepcopy(answer))
        assert twin.to_frame().equals(answer.to_frame())


def test_jobs(small):
    jobs = [
        pc.TrainingJob(name=name, model=small, strategy="tp=4,mb=1", placement=place, batch=8)
        for name, place in (("one", "gpus 0-3"), ("two", "gpus 4-7"))
    ]
    assert again(jobs) == jobs
    rows = pc.predict_jobs(jobs, MACHINE)
    for row, twin in zip(rows, again(rows), strict=True):
        assert (twin.name, twin.slowdown) == (row.name, row.slowdown)
        assert figures(twin.forecast) == figures(row.forecast)


def test_stores_and_sessions_open_their_file_again(small, tmp_path):
    kernel = pc.Kernel.gemm(4096, 4096, 4096)
    records = pc.Records(tmp_path / "kernels.db")
    records.add(kernel, gpu="A100-SXM-80GB", seconds=1e-3, library="torch")
    twin = again(records.only(library="torch"))
    assert twin.query(kernel, gpu="A100-SXM-80GB", library="torch") == 1e-3
    assert again(kernel) == kernel
    session = pc.Session(records=records)
    one = pc.predict(small, MACHINE, "tp=8,mb=1", session=session)
    other = pc.predict(small, MACHINE, "tp=8,mb=1", session=again(session))
    assert figures(one) == figures(other) == figures(again(one))


def test_algorithms_rules_and_topologies():
    algorithm = pc.Algorithm.make("all_reduce", "ring", gpus=8)
    for twin in (again(algorithm), copy.deepcopy(algorithm)):
        assert twin.to_msccl() == algorithm.to_msccl()
        assert repr(twin) == repr(algorithm)
    for name in pc.rules():
        try:
            rule = pc.Rule.find(name)
        except pc.InputError:
            continue  # needs attributes
        assert str(again(rule)) == str(copy.deepcopy(rule)) == str(rule)
    topology = Topology.from_machine(pc.Machine.preset("dgx-h100", hosts=2))
    twin = again(topology)
    assert twin.to_xml() == topology.to_xml()
    assert (twin.count, twin.assumptions) == (topology.count, topology.assumptions)
    assert twin.search() == copy.copy(topology).search() == topology.search()
    table = pc.collective(MACHINE, "all_reduce", sizes=[1 << 20])
    assert again(table) == table
    found = pc.synthesize("all_gather", "ring:4", steps=2, rounds=2, chunks=1)
    assert again(found).algorithm.to_msccl() == found.algorithm.to_msccl()


def forecast_of(arguments):
    return pc.predict(*arguments, batch=16)


def test_another_process_predicts(small):
    plans = [(small, MACHINE, pc.Strategy.parse(f"tp={tp},mb=1")) for tp in (1, 2, 4)]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        theirs = pool.map(forecast_of, plans)
    assert [figures(f) for f in theirs] == [figures(forecast_of(plan)) for plan in plans]


def test_a_timeline_lets_other_threads_run():
    forecast = pc.predict(
        pc.Model.preset("gpt3-175b"),
        pc.Machine.preset("dgx-a100-80g", hosts=8),
        "tp=8,pp=8,mb=1",
        batch=64,
        timeline=True,
    )
    ticks, stop = 0, threading.Event()

    def tick():
        nonlocal ticks
        while not stop.is_set():
            ticks += 1
            stop.wait(1e-4)

    thread = threading.Thread(target=tick)
    thread.start()
    before = ticks
    slices = forecast.timeline()
    during = ticks - before
    stop.set()
    thread.join()
    # A thread that wants to run gets its turn within 5 ms; the list takes many times that.
    assert len(slices) > 10_000
    assert during >= 2
