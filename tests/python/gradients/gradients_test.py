"""When the gradients of data-parallel workers are sent."""

from __future__ import annotations

import copy
import itertools
import json
import pickle

import plancast as pc
import pytest
from plancast.cli.main import main
from plancast.gradient_traffic.traffic import scheme, size_of, size_text

T4 = pc.Machine.preset("t4-pcie")
SMALL = {"dtype": "fp16", "batch": 32}


@pytest.fixture(scope="module")
def resnet():
    return pc.Model.preset("resnet50")


def test_one_bucket_is_what_predict_says(resnet):
    """All gradients at once, behind the backward pass: nothing overlaps, so nothing differs."""
    plan = pc.predict(resnet, T4, "dp=4,mb=8,bucket=1GB", profile="ddp", **SMALL)
    ours = pc.gradients(resnet, T4, "mb=8", bucket="1GB", first_bucket=0, bucket_view=True, **SMALL)
    assert ours.messages == ours.parts == 1
    assert ours.iteration_time == pytest.approx(plan.iteration_time, rel=0.005)


def test_a_worker_alone_takes_what_predict_says(resnet):
    one = pc.Machine.open("t4-pcie:1x1")
    plan = pc.predict(resnet, one, "mb=8,accum=2", profile="ddp", dtype="fp16", batch=16)
    ours = pc.gradients(resnet, T4, "mb=8,accum=2", dtype="fp16", batch=64)
    assert ours.alone_time == pytest.approx(plan.iteration_time, rel=1e-6)
    assert ours.iteration_time >= ours.alone_time
    assert (ours.global_batch, ours.gpus) == (64, 4)


@pytest.mark.parametrize("name", ["resnet50", "vgg16", "bert-large", "gpt2", "llama3-8b"])
def test_every_parameter_is_sent_once(name):
    model = pc.Model.preset(name)
    found = pc.gradients(model, T4, "mb=1", dtype="fp16")
    assert found.gradient_bytes == 4 * model.parameters
    assert found.sent_bytes == found.gradient_bytes
    assert sum(size for _, size in found.units) == found.gradient_bytes


def test_types_on_the_wire(resnet):
    """DDP's hooks that compress to 16 bits."""

    def both(**line):
        job = {**SMALL, "bucket_view": True, **line}
        small = pc.gradients(resnet, T4, "mb=8", reduce_dtype="fp16", bucket="12.5MiB", **job)
        return pc.gradients(resnet, T4, "mb=8", **job), small

    whole, half = both(bus_gb_per_s=0.2)
    assert half.gradient_bytes * 2 == whole.gradient_bytes
    assert half.exposed_time == pytest.approx(whole.exposed_time / 2, rel=0.1)
    # Where nothing shows it helps nothing: what is left are the casts.
    whole, half = both(bus_gb_per_s=1000.0)
    assert half.iteration_time > whole.iteration_time
    assert half.iteration_time - half.copies_time == pytest.approx(whole.iteration_time, rel=1e-3)


def test_views_of_buckets_spare_copies_and_memory(resnet):
    """DDP's `gradient_as_bucket_view`: reads and writes of all gradients, and as many bytes."""
    copied = pc.gradients(resnet, T4, "mb=8", **SMALL)
    view = pc.gradients(resnet, T4, "mb=8", bucket_view=True, **SMALL)
    assert not copied.traffic.bucket_view  # PyTorch's default
    assert (copied.bucket_bytes, view.bucket_bytes) == (copied.gradient_bytes, 0)
    assert copied.peak_memory - view.peak_memory == copied.gradient_bytes
    assert view.copies_time == 0
    # At the memory's rate, 320 GB/s at most.
    assert copied.copies_time > 2 * copied.gradient_bytes / 320e9
    shown = copied.iteration_time - view.iteration_time
    # What waits for the last bucket meanwhile costs nothing.
    assert 0 < shown <= copied.copies_time * 1.5
    assert copied.alone_time == view.alone_time


def test_a_hook_that_compresses_casts(resnet):
    whole = pc.gradients(resnet, T4, "mb=8", bucket_view=True, **SMALL)
    half = pc.gradients(resnet, T4, "mb=8", bucket_view=True, reduce_dtype="fp16", **SMALL)
    bf16 = pc.gradients(resnet, T4, "mb=8", bucket_view=True, reduce_dtype="bf16", **SMALL)
    assert whole.copies_time == 0
    # Casts and a division in 16 bits, 4+2, 2+2 and 2+4 bytes an element, for one in 32, 4+4; a
    # copy of all gradients is 4+4 as well.
    copied = pc.gradients(resnet, T4, "mb=8", **SMALL)
    assert half.copies_time == pytest.approx(copied.copies_time, rel=1e-6)
    assert bf16.copies_time == half.copies_time
    assert half.bucket_bytes == half.gradient_bytes


def test_unused_parameters_cost_a_message_unless_the_graph_is_static(resnet):
    line = {"bus_gb_per_s": 8.0, "call_us": 500.0}
    plain = pc.gradients(resnet, T4, "mb=8", **SMALL, **line)
    looks = pc.gradients(resnet, T4, "mb=8", find_unused=True, **SMALL, **line)
    static = pc.gradients(resnet, T4, "mb=8", find_unused=True, static_graph=True, **SMALL, **line)
    assert looks.parts == plain.parts + 1
    assert looks.iteration_time == pytest.approx(plain.iteration_time + 500e-6, rel=0.01)
    assert static.iteration_time == plain.iteration_time


def test_accumulation(resnet):
    line = {"bus_gb_per_s": 0.1}
    one = pc.gradients(resnet, T4, "mb=8", dtype="fp16", **line)
    for accum in (2, 4):
        plan = f"mb=8,accum={accum}"
        last = pc.gradients(resnet, T4, plan, dtype="fp16", batch=32 * accum, **line)
        each = pc.gradients(resnet, T4, plan, sync="each", dtype="fp16", batch=32 * accum, **line)
        assert last.sent_bytes == one.sent_bytes
        assert each.sent_bytes == accum * one.sent_bytes
        assert last.exposed_time == pytest.approx(one.exposed_time, rel=0.02)
        assert each.exposed_time == pytest.approx(accum * one.exposed_time, rel=0.02)


ALL_KNOBS = "bucket,partition,credit"


def test_tuning_is_never_worse(resnet):
    for name in ("ddp", "bytescheduler", "tensors"):
        default = pc.gradients(resnet, T4, "mb=8", scheme=name, **SMALL)
        tuned = pc.gradients(
            resnet, T4, "mb=8", scheme=name, tune="bucket,partition,credit", **SMALL
        )
        assert tuned.tuning is not None
        assert tuned.tuning.default_time == pytest.approx(default.iteration_time)
        assert tuned.iteration_time == pytest.approx(tuned.tuning.best_time)
        assert tuned.iteration_time <= default.iteration_time
        assert tuned.tuning.loss >= 0
        assert min(time for _, time in tuned.tuning.tried) == tuned.tuning.best_time
        again = pc.gradients(
            resnet, T4, "mb=8", scheme=name, **SMALL,
            **{knob: getattr(tuned.traffic, knob)
               for knob in ("bucket", "first_bucket", "partition", "credit")},
        )  # fmt: skip
        assert again.iteration_time == tuned.iteration_time


def test_spans_tile_the_iteration(resnet):
    found = pc.gradients(resnet, T4, "mb=8", **SMALL)
    spans = found.spans()
    assert max(span.end_s for span in spans) == pytest.approx(found.iteration_time)
    own = [span for span in spans if span.what in ("forward", "backward", "update", "host")]
    assert sum(span.end_s - span.start_s for span in own) == pytest.approx(found.alone_time)
    for lane in ([s for s in spans if s.what == "reduce"], own):
        lane.sort(key=lambda span: span.start_s)
        for before, after in itertools.pairwise(lane):
            assert after.start_s >= before.end_s - 1e-9


def test_sizes_and_schemes():
    for text in ("25MiB", "4MB", "1B", "0B", "3GiB", "1234567B"):
        assert size_text(size_of(text, "bucket", 0)) == text
    assert str(scheme("tensors")) == "wait=own"
    assert scheme("bytescheduler").credit == 64_000_000
    assert pc.gradients.__doc__


@pytest.mark.parametrize(
    ("plan", "options", "says"),
    [
        ("tp=2", {}, "`tp=2`: queues of gradients are those of workers of one GPU"),
        ("zero=1", {}, "has sharded plans"),
        ("dp=8", {}, "leave dp out"),
        ("mb=8", {"scheme": "ddd"}, "no scheme `ddd`"),
        ("mb=8", {"order": "fifo"}, "no order `fifo`"),
        ("mb=8", {"bucket": "25X"}, "`bucket` is `25X`"),
        ("mb=8", {"credit": "0"}, "`credit` is `0`"),
        ("mb=8", {"credit": "each"}, "give `servers`"),
        ("mb=8", {"host_sums": False}, "give `servers`"),
        ("mb=8", {"tune": "bucket,size"}, "no knob `size`"),
        ("mb=8", {"half_bytes": "1MiB"}, "give both"),
        ("mb=8", {"batch": 30}, "no multiple"),
        ("mb=8", {"partition": 1}, "too many parts"),
        ("mb=8,overlap=grad", {}, "knobs of this command"),
    ],
)
def test_what_is_refused(resnet, plan, options, says):
    with pytest.raises(pc.InputError, match=says.replace("(", r"\(")):
        pc.gradients(resnet, T4, plan, dtype="fp16", **options)


def test_copies(resnet):
    found = pc.gradients(resnet, T4, "mb=8", tune="bucket", **SMALL)
    for other in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert other.to_dict() == found.to_dict()


def test_the_command(tmp_path, capsys):
    picture, page = tmp_path / "found.svg", tmp_path / "found.html"
    line = ["gradients", "-m", "resnet50", "-c", "t4-pcie:1", "-s", "mb=8", "--dtype", "fp16"]
    assert main([*line, "--tune", "bucket", "--svg", str(picture), "--report", str(page)]) == 0
    shown = capsys.readouterr().out
    assert "Tuned" in shown and "By bucket" in shown
    assert picture.read_text().count("last backward pass begins") == 2
    assert "Tuned" in page.read_text()
    assert main([*line, "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["traffic"] == "bucket=25MiB,first_bucket=1MiB,bucket_view=off"
    assert fields["iteration_time_s"] == pytest.approx(
        fields["alone_time_s"] + fields["exposed_time_s"]
    )
    assert main([*line, "--order", "best"]) == 2
    assert "priority" in capsys.readouterr().err
