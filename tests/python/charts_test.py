"""Results as tables and pictures."""

from __future__ import annotations

import subprocess
import sys

import plancast as pc
import pytest

MACHINE = pc.Machine.preset("dgx-a100-80g", hosts=1)
PLAN = "tp=2,sp,pp=2,zero=1,mb=1"


@pytest.fixture(scope="module")
def small():
    return pc.Model.from_config(
        name="small", layers=4, hidden=512, heads=8, ffn=2048, vocab=1000, seq=256
    )


@pytest.fixture(scope="module")
def forecast(small):
    return pc.predict(small, MACHINE, PLAN, batch=16, timeline=True)


@pytest.fixture(scope="module")
def ranking(small):
    return pc.rank(small, MACHINE, batch=16, space="tp=1|2,pp=1|2,mb=1")


def total(figure, name):
    """The sum of a bar's lengths."""
    return sum(sum(trace.x) for trace in figure.data if trace.type == "bar" and trace.name == name)


def test_a_ranking_has_a_column_for_each_knob(ranking):
    frame = ranking.to_frame()
    first = frame.iloc[0]
    chosen = ranking[0].chosen
    for name in ("dp", "tp", "pp", "mb", "accum", "zero"):
        assert first[name] == int(chosen[name])
    assert (frame["dp"] * frame["tp"] * frame["pp"] * frame["cp"] == 8).all()
    assert frame["sp"].isin([True, False]).all()
    assert (frame["ep"] == 1).all()
    assert set(frame["recompute"]) >= {"none"}


def test_an_empty_ranking_has_the_same_columns(ranking):
    none = pc.rank(
        pc.Model.preset("gpt3-175b"), MACHINE, batch=8, space="tp=8,pp=1,mb=1,recompute=full"
    )
    assert len(none) == 0
    assert list(none.to_frame().columns) == list(ranking.to_frame().columns)


def test_one_forecast_is_a_row_and_a_comparison_is_one_for_each(forecast, ranking):
    frame = pc.compare(forecast, *ranking[:2]).to_frame()
    assert list(frame["strategy"]) == [forecast.strategy, *(plan.strategy for plan in ranking[:2])]
    assert frame.iloc[:1].equals(forecast.to_frame())
    assert frame["devices"].tolist() == [8, 8, 8]
    assert frame["iteration_time_s"][0] == forecast.iteration_time


def test_memory_as_tables(forecast):
    peak = forecast.memory.to_frame()
    assert peak["device"].max() == forecast.peak_memory
    assert (peak["capacity"] == int(forecast.memory_capacity)).all()
    course = forecast.memory.timeline()
    rows = course.to_frame()
    kinds = rows[list(course.kinds)].sum(axis=1)
    assert kinds.max() == course.allocated[course.peak]
    assert rows["time_s"].is_monotonic_increasing


def test_changes_and_collectives_as_tables(small):
    ranked = pc.sensitivities(small, MACHINE, "tp=8,mb=1", batch=8)
    rows = ranked.to_frame()
    assert rows["gain_s"].is_monotonic_decreasing
    assert rows["change"][0] == ranked[0].change
    table = pc.collective(MACHINE, "all_reduce", sizes=[1 << 20, 1 << 24])
    assert table.to_frame()["size_bytes"].tolist() == [row.size_bytes for row in table]
    assert len(table) == 2
    assert table[1].gpus == 8


def test_bars_of_a_forecast_sum_to_its_time(forecast):
    figure = forecast.plot_breakdown()
    bars = [trace for trace in figure.data if trace.type == "bar"]
    whole = 1e3 * forecast.iteration_time  # the axis has milliseconds
    assert sum(trace.x[0] for trace in bars) == pytest.approx(whole, rel=1e-4)
    (interval,) = (trace for trace in figure.data if trace.type == "scatter")
    assert interval.x[0] + interval.error_x.array[0] == pytest.approx(1e3 * forecast.interval[1])


def test_bars_of_memory_sum_to_what_devices_hold(forecast):
    figure = forecast.memory.plot_peak()
    held = [sum(trace.x[i] for trace in figure.data) for i in range(len(forecast.memory))]
    assert held == pytest.approx([entry.device / 2**30 for entry in forecast.memory], rel=1e-5)


def test_areas_of_memory_reach_the_peak(forecast):
    figure = forecast.plot_memory()
    areas = [trace.y for trace in figure.data if trace.stackgroup]
    heights = [sum(point) for point in zip(*areas, strict=True)]
    most = forecast.memory.timeline().memory.allocated / 2**30
    assert max(heights) == pytest.approx(most, rel=1e-4)
    with pytest.raises(pc.InputError, match="no device class"):
        forecast.plot_memory("stage 7")


def test_a_timeline_shows_every_stream_and_its_busy_time(forecast):
    figure = forecast.plot_timeline()
    slices = forecast.timeline()
    tracks = {track for trace in figure.data for track in trace.y}
    assert tracks == {f"{piece.device_class} {piece.stream}" for piece in slices}
    for purpose in {piece.purpose for piece in slices}:
        busy = sum(piece.end_s - piece.start_s for piece in slices if piece.purpose == purpose)
        # Joined bars cover small gaps, and nothing that runs is left out.
        assert busy * 0.999 <= total(figure, purpose) <= busy + 0.2 * forecast.iteration_time


def test_a_timeline_is_asked_for_beforehand(small):
    with pytest.raises(pc.InputError, match="timeline=True"):
        pc.predict(small, MACHINE, PLAN, batch=16).plot_timeline()


def test_every_plan_of_a_ranking_is_a_point(ranking):
    figure = ranking.plot_plans(by="pp")
    assert sum(len(trace.x) for trace in figure.data) == len(ranking)
    assert [trace.name for trace in figure.data] == ["pp=1", "pp=2"]
    with pytest.raises(pc.InputError, match=r"no column `ttp` of a plan\. Did you mean `tp`"):
        ranking.plot_plans(by="ttp")
    best = ranking.plot_breakdown(top=3)
    assert {len(trace.y) for trace in best.data} == {3}


def test_gains_and_bandwidths(small):
    ranked = pc.sensitivities(small, MACHINE, "tp=8,mb=1", batch=8)
    (bars,) = ranked.plot_gains(top=4).data
    assert list(bars.y) == [row.change for row in list(ranked)[:4]]
    table = pc.collective(MACHINE, "all_reduce", sizes=[1 << 20, 1 << 24])
    assert list(table.plot_bandwidth().data[0].y) == [row.busbw_gb_per_s for row in table]


def test_machines_for_a_run(small):
    sizing = pc.size(small, tokens=1e9, days=30, machines=["dgx-a100-80g", "dgx-h100"])
    rows = sizing.to_frame()
    assert rows["machine"].tolist() == [option.machine for option in sizing.options]
    drawn = sum(len(trace.x) for trace in sizing.plot_options().data)
    assert drawn == rows["usd"].notna().sum()


def test_hosts_that_come_and_go(small):
    trace = pc.Availability.parse("time_min,hosts\n0,4\n30,3\n60,4\n")
    run = pc.spot(small, MACHINE, trace, tokens=1e11, batch=96)
    there, train = run.plot_hosts().data
    assert list(there.y)[:3] == [4, 3, 4]
    assert all(used <= hosts for used, hosts in zip(train.y, there.y, strict=True))
    assert there.x[-1] * 3600 == pytest.approx(run.outcome.wall_s, rel=1e-4)


def test_links_that_are_used_alike_are_one_bar():
    jobs = [
        pc.ClusterJob(name="a", placement="hosts 0-1 gpus 0-3", compute=1, communicate="1 s"),
        pc.ClusterJob(name="b", placement="hosts 2-3 gpus 0-3", compute=3, communicate="1 s"),
    ]
    machine = pc.Machine.from_yaml("preset: dgx-a100-80g\nhosts: 4\nnics_per_host: 1")
    outcome = pc.cluster(jobs, machine)
    (bars,) = outcome.plot_links().data
    assert list(bars.x) == [25.0, 50.0]
    assert all(name.endswith("and 3 like it") for name in bars.y)
    assert len(outcome.links) == 8


@pytest.fixture(scope="module")
def choice(small):
    return pc.plan(small, MACHINE, batch=16, space="tp=1|2,pp=1|2,mb=1", tokens="1B")


def test_an_answer_and_its_alternatives_are_rows_and_bars(choice):
    frame = choice.to_frame()
    others = [other.forecast for other in choice.others]
    assert list(frame["strategy"]) == [plan.strategy for plan in (choice.best, *others)]
    assert list(frame["slower"]) == [0.0, *(other.slower for other in choice.others)]
    assert {"dp", "tp", "pp", "mb", "zero"} <= set(frame.columns)
    bars = [trace for trace in choice.plot_breakdown().data if trace.type == "bar"]
    whole = sum(trace.x[0] for trace in bars)
    assert whole == pytest.approx(1e3 * choice.best.iteration_time, rel=1e-4)


def test_bars_of_a_difference_sum_to_it(forecast, ranking):
    both = pc.compare(forecast, ranking[0])
    (bars,) = both.plot_differences().data
    found = both.differences[0]
    longest = max(map(abs, bars.x))
    times = longest / max(map(abs, found.parts.values()))  # the axis has its own unit
    assert sum(bars.x) == pytest.approx(times * found.seconds, abs=2e-2 * longest)
    with pytest.raises(pc.InputError, match="`place` is `2`; give a whole number from 1 to 1"):
        both.plot_differences(2)


def test_shares_of_a_run_sum_to_all_of_it(choice):
    shares = [trace.x[0] for trace in choice.run.plot_time().data]
    assert sum(shares) == pytest.approx(100, abs=0.01)


def test_what_is_told_in_rows_is_a_frame(small, forecast, ranking):
    sent = pc.gradients(pc.Model.preset("resnet50"), MACHINE, "mb=32", dtype="fp16")
    spans = sent.to_frame()
    assert spans["end_s"].is_monotonic_increasing
    assert spans["end_s"].max() <= sent.iteration_time * (1 + 1e-9)
    why = forecast.explain(versus=ranking[0])
    assert why.to_frame()["picoseconds"].sum() == why.picoseconds
    alone = forecast.explain().to_frame()
    assert alone["saves"].is_monotonic_decreasing
    tuned = pc.tune_buckets(small, MACHINE, "tp=1,mb=1", batch=16, profile="ddp")
    assert tuned.to_frame()["time_s"].min() == tuned.best.iteration_time


def test_results_say_what_they_are_in_a_line(small, forecast, ranking, choice):
    plan = ("tp=8,mb=1",)
    job = pc.ClusterJob(name="a", placement="hosts 0-0 gpus 0-3", compute=1, communicate="1 s")
    results = [
        choice,
        choice.run,
        forecast.explain(),
        forecast.explain(versus=ranking[0]),
        pc.tune_buckets(small, MACHINE, "tp=1,mb=1", batch=16, profile="ddp"),
        pc.gradients(pc.Model.preset("resnet50"), MACHINE, "mb=32", dtype="fp16"),
        pc.gradient_advice(pc.Model.preset("resnet50"), MACHINE, "mb=32", dtype="fp16"),
        pc.cluster([job], MACHINE),
        forecast,
        forecast.memory,
        forecast.memory.explain(),
        forecast.memory.timeline(),
        ranking,
        pc.compare(forecast, ranking[0]),
        pc.sensitivities(small, MACHINE, *plan, batch=8),
        pc.execution_graph(small, MACHINE, *plan, batch=8),
        pc.collective(MACHINE, "all_reduce", sizes=[1 << 20]),
        pc.Topology.from_machine(MACHINE),
        pc.ModelBuilder("net"),
    ]
    for result in results:
        assert len(repr(result)) < 160
        assert " at 0x" not in repr(result)
        if hasattr(result, "__rich__"):
            assert "<" in result._repr_html_()


def test_plotly_is_loaded_for_a_picture_and_no_sooner():
    script = (
        "import sys, plancast as pc\n"
        "pc.Model, pc.Forecast, pc.Ranking, pc.Comparison, pc.CollectiveTable\n"
        "sys.exit('plotly' in sys.modules)\n"
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    assert subprocess.run([sys.executable, "-c", script], env=environment).returncode == 0


def test_without_plotly_the_remedy_is_named(forecast, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(pc.InputError, match=r"Install `plancast\[report\]`"):
        forecast.plot_breakdown()
