"""What a forecast says of memory: rows, reasons of the peak, memory over time."""

from __future__ import annotations

from pathlib import Path

import plancast as pc
import pytest
from plancast.memory import KINDS

MACHINE = "dgx-a100-80g:1"
PLANS = [
    "tp=8,mb=1",
    "tp=2,sp,pp=2,mb=1",
    "pp=4,mb=1,recompute=full",
    "pp=2,vpp=2,mb=1,zero=1",
    "pp=2,mb=1,schedule=gpipe",
]


def predicted(model, strategy, **options):
    return pc.predict(model, pc.Machine.open(MACHINE), strategy, batch=32, **options)


@pytest.mark.parametrize("strategy", PLANS)
def test_rows_add_up(small, strategy):
    for row in predicted(small, strategy).memory:
        assert sum(getattr(row, kind) for kind in KINDS) == row.allocated
        assert row.allocated + row.rounding + row.fragmentation == row.reserved
        assert row.reserved + row.nccl + row.context == row.device
        assert min(row.rounding, row.fragmentation, row.nccl, row.context) >= 0


@pytest.mark.parametrize("strategy", PLANS)
def test_reasons_sum_to_what_is_allocated(small, strategy):
    forecast = predicted(small, strategy)
    for row in forecast.memory:
        reasons = forecast.memory.explain(row.device_class)
        assert sum(tensor.bytes for tensor in reasons.tensors) == row.allocated
        for kind in KINDS:
            of_kind = sum(t.bytes for t in reasons.tensors if t.kind == kind)
            assert of_kind == getattr(row, kind)
        assert all(tensor.copies > 0 for tensor in reasons.tensors)
        sizes = [tensor.bytes for tensor in reasons.tensors]
        assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("strategy", PLANS)
def test_the_timeline_has_the_peak(small, strategy):
    forecast = predicted(small, strategy, timeline=True)
    for row in forecast.memory:
        for options in ({}, {"every_layer": True}, {"max_points": 4}):
            course = forecast.memory.timeline(row.device_class, **options)
            assert max(course.allocated) == row.allocated
            assert course.allocated[course.peak] == row.allocated
            assert sorted(course.time_s) == list(course.time_s)
            assert len(course.time_s) == len(course.issued) <= options.get("max_points", 2000)
            assert course.time_s[-1] <= forecast.iteration_time * (1 + 1e-9)


def test_without_a_timeline_memory_goes_by_order(small):
    course = predicted(small, "pp=2,mb=1").memory.timeline()
    assert course.time_s == ()
    assert course.to_dict()["time_s"] is None
    assert course.issued[-1] > 0


def test_looking_ahead_changes_nothing(small):
    one, other = (
        predicted(small, "tp=2,pp=2,mb=1", shortcuts=shortcuts) for shortcuts in (True, False)
    )
    assert one.memory == other.memory
    assert str(one.memory.explain()) == str(other.memory.explain())


def test_communicators_follow_the_groups_of_the_plan(small):
    alone = pc.predict(
        small, pc.Machine.preset("dgx-a100-80g", hosts=1, gpus_per_host=1), "mb=1", batch=8
    )
    assert alone.memory[0].nccl == 0
    one = predicted(small, "dp=8,mb=1").memory[0].nccl
    assert one > 0
    assert predicted(small, "tp=4,mb=1").memory[0].nccl > one


def test_text_names_tensors_copies_and_micro_batches(small):
    forecast = predicted(small, "pp=4,mb=1,recompute=full")
    text = str(forecast.memory.explain("stage 0"))
    assert text.startswith("stage 0 peaks at `")
    line = next(line for line in text.splitlines() if "layers.*.x " in line)
    assert line.split()[-2:] == ["micro-batches", "0-3"]
    assert text.splitlines()[-1].endswith("GiB  device")


def test_the_fullest_class_is_explained_by_default(small):
    memory = predicted(small, "pp=4,mb=1").memory
    assert memory.explain().memory == max(memory, key=lambda row: row.device)


def test_bad_requests(small):
    memory = predicted(small, "pp=2,mb=1").memory
    with pytest.raises(pc.InputError, match=r"no device class `stage 9`\. Did you mean `stage 0`"):
        memory.explain("stage 9")
    with pytest.raises(pc.InputError, match="`max_points` is 1"):
        memory.timeline(max_points=1)
    plans = pc.rank(small, pc.Machine.open(MACHINE), batch=16, space="tp=1|2,mb=1")
    with pytest.raises(pc.InputError, match="Predict its strategy alone"):
        plans[0].memory.explain()


def test_command_line_draws_and_explains(cli, small_file, monkeypatch):
    monkeypatch.setenv("COLUMNS", "78")
    code, out, err = cli(
        "predict", "-m", small_file, "-c", MACHINE, "-s", "pp=4,mb=1", "--batch", "32",
        "--memory-timeline",
    )  # fmt: skip
    assert code == 0, err
    assert "Live memory of stage" in out
    assert "Alive at the peak of stage" in out
    assert "░ activations" in out
    assert "\x1b" not in out
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 78


def test_json_has_the_series(cli, small_file):
    arguments = ("predict", "-m", small_file, "-c", MACHINE, "-s", "pp=4,mb=1", "--batch", "32")
    assert "memory_timeline" not in cli.json(*arguments)
    value = cli.json(*arguments, "--memory-timeline")
    rows = value["memory"]
    assert [entry["device_class"] for entry in value["memory_timeline"]] == [
        row["device_class"] for row in rows
    ]
    for row, course, peak in zip(rows, value["memory_timeline"], value["memory_peak"], strict=True):
        highest = max(sum(point) for point in zip(*(course[k] for k in KINDS), strict=True))
        assert highest == row["allocated"] == peak["allocated"]
        assert sum(tensor["bytes"] for tensor in peak["tensors"]) == row["allocated"]
        assert len(course["time_s"]) == len(course["issued"])


def test_report_has_memory_and_loads_nothing(cli, small_file, tmp_path):
    path = tmp_path / "report.html"
    code, _, err = cli(
        "predict", "-m", small_file, "-c", MACHINE, "-s", "pp=4,mb=1", "--batch", "32",
        "--report", str(path),
    )  # fmt: skip
    assert code == 0, err
    page = path.read_text()
    assert "Live memory over the iteration" in page
    assert "Alive at the peak" in page
    assert "http://" not in page
    assert "https://" not in page
    assert "src=" not in page


def test_a_plan_that_does_not_fit_names_its_largest_part(large_file):
    model = pc.Model.open(large_file)
    forecast = pc.predict(model, pc.Machine.open(MACHINE), "tp=8,mb=1", batch=8)
    assert not forecast.fits
    assert "; the largest part is optimizer) and" in forecast.fit_advice
    small = pc.Model.from_config(
        name="long", layers=4, hidden=2048, heads=16, ffn=8192, vocab=1000, seq=32768
    )
    forecast = pc.predict(small, pc.Machine.open(MACHINE), "pp=4,mb=16", batch=128)
    assert not forecast.fits
    assert "; the largest part is activations, of which 4 x `layers.*." in forecast.fit_advice
    assert " of 4 micro-batches take " in forecast.fit_advice


def test_advice_is_made_when_it_is_read(large_file, monkeypatch):
    model = pc.Model.open(large_file)
    asked = []
    made = pc._core.fit_advice
    monkeypatch.setattr(
        pc._core, "fit_advice", lambda *args, **words: asked.append(1) or made(*args, **words)
    )
    strategy = pc.Strategy.parse("tp=8,mb=1")
    forecast = pc.predict(model, pc.Machine.open(MACHINE), strategy, batch=8)
    assert not asked
    assert forecast.fit_advice == forecast.fit_advice
    assert len(asked) == 1
    small = pc.predict(pc.Model.preset("llama3-8b"), pc.Machine.open(MACHINE), "tp=8", batch=8)
    assert small.fits
    assert not small.fit_advice


def test_the_documentation_shows_what_is_said():
    forecast = pc.predict(
        pc.Model.preset("llama3-8b"),
        pc.Machine.preset("dgx-h100", hosts=2),
        "dp=4,pp=4,zero=1,mb=1,recompute=selective",
        batch=32,
    )
    text = "".join(f"    {line}\n" for line in str(forecast.memory.explain()).splitlines())
    page = (Path(__file__).parents[2] / "docs" / "memory.md").read_text()
    assert text in page, f"docs/memory.md differs; paste:\n{text}"


@pytest.mark.parametrize("strategy", PLANS)
def test_verdicts_without_time_are_the_forecasts(small, strategy):
    forecast = predicted(small, strategy)
    (verdict,) = pc.fits(small, pc.Machine.open(MACHINE), strategy, batch=32)
    assert verdict.device == forecast.peak_memory
    assert verdict.fits == forecast.fits
    assert bool(verdict)
    assert verdict.refused is None


def test_verdicts_name_what_no_machine_could_run(small):
    fine, refused = pc.fits(small, pc.Machine.open(MACHINE), "tp=8,mb=1", "tp=3", batch=32)
    assert fine.fits
    assert not refused
    with pytest.raises(pc.InputError) as error:
        predicted(small, "tp=3")
    assert refused.refused == str(error.value)


def test_verdicts_on_trees_are_the_forecasts(small):
    recomputed = pc.Strategy.parse("tp=8,mb=1")
    recomputed["layers.*.mlp"].recompute("full")
    plain = pc.Strategy.parse("tp=8,mb=1")
    machine = pc.Machine.open(MACHINE)
    less, all_kept = pc.fits(small, machine, recomputed, plain, batch=32)
    for verdict, tree in ((less, recomputed), (all_kept, plain)):
        forecast = pc.predict(small, machine, tree, batch=32)
        assert (verdict.device, verdict.fits) == (forecast.peak_memory, forecast.fits)
    assert less.device < all_kept.device


def test_unlike_loads_of_experts_count_for_whether_a_plan_fits():
    model = pc.Model.preset("mixtral-8x7b-l4")
    machine = pc.Machine.preset("dgx-h100", hosts=1)
    even = pc.Strategy.parse("dp=8,ep=8,zero=1,mb=1")
    uneven = pc.Strategy.from_dict(
        {**even.to_dict(), "load": {"experts": [9, 1, 1, 1, 1, 1, 1, 1]}}
    )
    alike, skewed = pc.fits(model, machine, even, uneven, batch=16)
    assert skewed.device > alike.device
    assert skewed.device == pc.predict(model, machine, uneven, batch=16).peak_memory


@pytest.mark.parametrize("strategy", PLANS)
def test_the_allocator_holds_every_block(small, strategy):
    forecast = predicted(small, strategy)
    for row in forecast.memory:
        placed = forecast.memory.placement(row.device_class)
        free = forecast.memory.placement(row.device_class, limited=False)
        assert not placed.out_of_memory
        assert placed.reserved >= placed.blocks >= row.allocated
        assert placed.reserved <= free.reserved
        assert 0 <= placed.fragmentation < 1


def test_the_picture_is_written(cli, small_file, tmp_path):
    path = tmp_path / "memory.svg"
    code, _, err = cli(
        "predict", "-m", small_file, "-c", MACHINE, "-s", "pp=4,mb=1", "--batch", "32",
        "--memory-svg", str(path),
    )  # fmt: skip
    assert code == 0, err
    assert path.read_text().startswith('<svg xmlns="http://www.w3.org/2000/svg"')
