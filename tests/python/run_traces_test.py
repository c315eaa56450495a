"""Profiled runs beside forecasts: what a changed run shows and teaches, and what is refused."""

from __future__ import annotations

import gzip
import json
import math

import plancast as pc
import pytest
from kineto_writer import write_kineto
from plancast.learned import Learned

MACHINE = pc.Machine.preset("dgx-h100")
ASK = {"batch": 16, "profile": "torchtitan"}
PLAN = "zero=3,mb=1"
GEMM, RING = "H100-SXM-80GB/gemm/bf16", "nvlink4/ring"


@pytest.fixture(scope="module")
def model() -> pc.Model:
    return pc.Model.from_config(
        name="four",
        layers=4,
        hidden=4096,
        heads=32,
        kv_heads=8,
        ffn=14336,
        vocab=32000,
        seq=4096,
        mlp="swiglu",
        norm="rmsnorm",
    )


@pytest.fixture(scope="module")
def forecast(model) -> pc.Forecast:
    return pc.predict(model, MACHINE, PLAN, timeline=True, **ASK)


def facts(learned: Learned) -> dict[str, float]:
    return {fact.name: fact.change for fact in learned.facts()}


def test_a_run_as_simulated_differs_nowhere(forecast, tmp_path):
    run = pc.compare_run(forecast, write_kineto(tmp_path / "k.json", forecast))
    assert run.iterations == 3
    assert run.run_s == pytest.approx(forecast.simulated_time, rel=1e-4)
    for row in (*run.classes, *run.collectives, *run.products):
        assert row.times == pytest.approx(1, abs=0.03 if (row.run_s or 0) < 1e-4 else 2e-3), row
        assert row.forecast_count == row.run_count
    assert run.exposed.longer_s == pytest.approx(0, abs=1e-4)
    assert run.idle.longer_s == pytest.approx(0, abs=1e-4)
    assert run.run_s == pytest.approx(
        run.exposed.run_s + run.idle.run_s + sum(row.run_s for row in run.classes), rel=0.01
    )


def test_products_a_tenth_slower_teach_exactly_that(forecast, tmp_path):
    slow = write_kineto(
        tmp_path / "k.json", forecast, times=lambda k: 1.1 if k.kind == "product" else 1.0
    )
    run = pc.compare_run(forecast, slow)
    by_kind = {row.kind: row.times for row in run.classes}
    assert by_kind.pop("product") == pytest.approx(1.1, rel=1e-3)
    assert all(times == pytest.approx(1, rel=0.01) for times in by_kind.values())
    assert all(row.times == pytest.approx(1.1, rel=5e-3) for row in run.products)
    learned = pc.learn([run])
    told = facts(learned)
    # Less the belief before, and less that the iteration has nothing beyond its kernels here.
    assert told[GEMM] == pytest.approx(math.log(1.1), rel=0.1)
    for name, change in told.items():
        if name != GEMM and not name.startswith(("software/", "part/")):
            assert abs(change) < 0.004, name
    after = {fact.name: fact.after / fact.before for fact in learned.facts()}
    assert after[GEMM] < 0.3


def test_slow_links_teach_links_and_show_where(model, forecast, tmp_path):
    slow = write_kineto(
        tmp_path / "k.json", forecast, times=lambda k: 1.3 if k.is_collective else 1.0
    )
    run = pc.compare_run(forecast, slow)
    assert {row.kind for row in run.collectives} >= {"all_gather", "reduce_scatter"}
    assert all(row.times == pytest.approx(1.3, rel=0.05) for row in run.collectives)
    told = facts(pc.learn([run]))
    assert 0.15 < told[RING] < 0.27
    # Forecasts that go by it have the time where it was found.
    session = pc.Session(learned=pc.learn([run]))
    after = pc.predict(model, MACHINE, PLAN, session=session, **ASK)
    parts, before = after.breakdown(), forecast.breakdown()
    assert sum(parts.values()) == pytest.approx(after.iteration_time)
    assert sum(after.critical_path().values()) == pytest.approx(after.iteration_time)
    grows = {part: parts[part] / before[part] for part in ("compute", "exposed_dp", "optimizer")}
    assert grows["exposed_dp"] > 1.1 * grows["compute"]
    assert grows["optimizer"] == pytest.approx(grows["compute"])
    assert abs(told[GEMM]) < 0.01


def test_what_a_run_shows_of_itself_is_forecast_of_it(model, forecast, tmp_path):
    """After products of it were slow, its plan is forecast closer to what it took."""
    slow = write_kineto(
        tmp_path / "k.json", forecast, times=lambda k: 1.4 if k.kind == "product" else 1.0
    )
    run = pc.compare_run(forecast, slow)
    session = pc.Session(learned=pc.learn([run]))
    after = pc.predict(model, MACHINE, PLAN, session=session, **ASK)
    before = abs(math.log(run.run_s / forecast.iteration_time))
    assert abs(math.log(run.run_s / after.iteration_time)) < 0.75 * before


def test_collectives_without_sizes_are_told_by_their_kernels(forecast, tmp_path):
    path = write_kineto(tmp_path / "k.json", forecast, says_sizes=False)
    rows = pc.compare_run(forecast, path).collectives
    assert {row.what for row in rows} == {"all_gather", "reduce_scatter", "all_reduce"}
    assert all(row.times == pytest.approx(1, rel=0.01) for row in rows if row.run_s > 1e-3)


def test_of_several_ranks_the_last_to_arrive_counts(forecast, tmp_path):
    late = write_kineto(
        tmp_path / "0.json", forecast, times=lambda k: 2.0 if k.is_collective else 1.0
    )
    prompt = write_kineto(tmp_path / "1.json", forecast)
    rows = pc.compare_run(forecast, [late, prompt]).collectives
    assert all(row.times == pytest.approx(1, rel=0.05) for row in rows if row.run_s > 1e-4)


def test_a_plan_with_stages_is_compared_stage_by_stage(model, tmp_path):
    forecast = pc.predict(model, MACHINE, "pp=2,tp=2,mb=1", timeline=True, **ASK)
    for rank in (0, 5):
        path = write_kineto(tmp_path / f"{rank}.json", forecast, rank=rank)
        run = pc.compare_run(forecast, path)
        assert all(row.times == pytest.approx(1, rel=0.02) for row in run.classes)
    learned = pc.learn([run])
    assert not any("message" in e.run for e in learned.evidence)


def test_hostile_and_poor_traces_are_refused_in_words(forecast, tmp_path):
    path = tmp_path / "k.json"
    good = json.loads(write_kineto(path, forecast, steps=1).read_text())

    def refused(body, match):
        path.write_text(body if isinstance(body, str) else json.dumps(body))
        with pytest.raises(pc.InputError, match=match):
            pc.compare_run(forecast, path)

    events = good["traceEvents"]
    refused({"traceEvents": []}, "no trace event")
    refused("[" * 5000, "JSON")
    refused("not a trace", "k.json")
    refused({"traceEvents": [e for e in events if "Step" not in e["name"]]}, "ProfilerStep")
    refused({"traceEvents": [e for e in events if e.get("cat") != "kernel"]}, "no kernel")
    far = [
        {**e, "ts": e["ts"] + 1e9} if e.get("cat") in ("kernel", "cuda_runtime") else e
        for e in events
    ]
    refused({"traceEvents": far}, "no kernel was launched in an iteration")
    refused({**good, "distributedInfo": {"rank": 0, "world_size": 64}}, "64 ranks")
    refused({**good, "distributedInfo": {"rank": 9, "world_size": 8}}, "rank 9")
    with pytest.raises(pc.InputError, match="no trace"):
        pc.compare_run(forecast, [])
    with pytest.raises(pc.InputError, match="there is no file"):
        pc.compare_run(forecast, tmp_path / "absent.json")
    bare = pc.predict(pc.Model.preset("gpt2"), MACHINE, "mb=1", batch=8)
    with pytest.raises(pc.InputError, match="timeline=True"):
        pc.compare_run(bare, path)


def test_odd_values_are_no_figures(forecast, tmp_path):
    path = tmp_path / "k.json.gz"
    body = json.loads(write_kineto(tmp_path / "k.json", forecast, steps=2).read_text())
    for event in body["traceEvents"]:
        args = event["args"]
        if "In msg nelems" in args:
            args |= {"In msg nelems": "9" * 400, "Group size": -3, "dtype": ["x"]}
    body["traceEvents"] += [
        {"ph": "X", "cat": "kernel", "name": "n" * 5000, "pid": 0, "tid": 7, "ts": -5, "dur": -1},
        {"ph": "X", "cat": "kernel", "name": "", "pid": 0, "tid": 7, "ts": 1e300, "dur": 1},
        {
            "ph": "X",
            "cat": "user_annotation",
            "name": "ProfilerStep#" + "9" * 50,
            "ts": 0,
            "dur": 1,
        },
    ]
    with gzip.open(path, "wt") as file:
        json.dump(body, file)
    rows = pc.compare_run(forecast, path).collectives
    assert {row.what for row in rows} == {"all_gather", "reduce_scatter", "all_reduce"}


NCCL = (
    '{{"name": "AllGather", "cat": "COLL", "ph": "b", "id": {i}, "pid": 9, "tid": 1, '
    '"ts": {start}, '
    '"args": {{"CommHash": 5, "Rank": 1, "Count": {count}, "Datatype": ncclBfloat16, '
    '"Algorithm": "RING", "Protocol": "SIMPLE", "nChannels": 8}}}},\n'
    '{{"name": "AllGather", "cat": "COLL", "ph": "e", "id": {i}, "pid": 9, "tid": 1, '
    '"ts": {end}}},\n'
)


def test_nccls_own_traces_tell_of_collectives_alone(forecast, tmp_path):
    plain = pc.compare_run(forecast, write_kineto(tmp_path / "k.json", forecast))
    row = next(row for row in plain.collectives if row.kind == "all_gather")
    each = row.forecast_s / row.forecast_count
    size = next(
        k.size
        for k in pc.run_traces.forecasts.forecast_iteration(forecast).kernels
        if k.kind == "all_gather" and k.seconds == pytest.approx(each, rel=0.2)
    )
    path = tmp_path / "dump.txt"
    us = 1.5e6 * each
    path.write_text(
        "[\n"
        + "".join(
            NCCL.format(i=i, count=size // 2 // 8, start=1e4 * i, end=1e4 * i + us)
            for i in range(5)
        )
        + "{}]\n"
    )
    run = pc.compare_run(forecast, path)
    assert [r.kind for r in run.collectives] == ["all_gather"]
    assert run.run_s is None and run.collectives[0].times == pytest.approx(1.5, rel=0.2)
    assert set(facts(pc.learn([run]))) == {RING}
    path.write_text(path.read_text().replace("AllGather", "Broadcast"))
    with pytest.raises(pc.InputError, match=r"none of its collectives .* is in the forecast"):
        pc.compare_run(forecast, path)


def test_the_command_shows_where_it_is_slow(cli, tmp_path):
    ask = ["-m", "llama3-8b", "-c", "dgx-h100:1", "-s", PLAN, "--batch", "8"]
    ask += ["--profile", "torchtitan"]
    forecast = pc.predict(
        pc.Model.preset("llama3-8b"), MACHINE, PLAN, batch=8, profile="torchtitan", timeline=True
    )
    trace = write_kineto(
        tmp_path / "k.json", forecast, times=lambda k: 1.5 if k.kind == "all_gather" else 1.0
    )
    out = tmp_path / "ours.learned"
    code, text, _ = cli("learn", "--trace", str(trace), *ask, "-o", str(out))
    assert code == 0 and "Slower than simulated: all_gather" in text and "1.50 times" in text
    assert "products" in text and "nothing runs" in text
    told = cli.json("learn", "--trace", str(trace), *ask)
    assert told["run"]["iterations"] == 3 and told["runs"] == 1
    again = cli.json("learn", "--merge", str(out), "--trace", str(trace), *ask)
    assert again["factors"] == told["factors"]  # a run that is in both counts once
    assert "--trace FILE" in cli.error("learn", *ask)
    assert "Give -m and -c and -s" in cli.error("learn", "--trace", str(trace))
