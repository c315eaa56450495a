"""What is read at 80, 100 and 120 columns and in a pipe: whole numbers, wrapped plans, words."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys

import plancast as pc
import pytest
from plancast.report.terminal import Terminal
from plancast.textual import duration, gib, percent
from plancast.training.amounts import money, whole_run

WIDTHS = [80, 100, 120, None]
LONG = "dp=4,tp=2,sp,pp=2,vpp=2,zero=1,mb=1,recompute=selective,attn=flash,order=tp-cp-ep-dp-pp"
MACHINE = pc.Machine.preset("dgx-h100", hosts=2)
SMALL = {
    "name": "small", "layers": 4, "hidden": 512, "heads": 8, "ffn": 2048, "vocab": 1000,
    "seq": 256,
}  # fmt: skip


def rendered(shown, width):
    """The text that a page of a width gets; None: a pipe."""
    page = io.StringIO()
    Terminal(width=width or 100_000, file=page).print(shown, crop=False)
    text = page.getvalue()
    assert "…" not in text
    assert "\x1b" not in text
    if width is not None:
        assert max(map(len, text.splitlines())) <= width
    return text


def whole(text, number):
    """Whether a number stands in a text in one piece, not as a part of a longer one."""
    return re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d])", text) is not None


def unwrapped(text):
    return "".join(text.split())


@pytest.fixture(scope="module")
def model():
    return pc.Model.from_config(**SMALL)


@pytest.fixture(scope="module")
def forecast(model):
    return pc.predict(model, MACHINE, LONG, batch=64)


@pytest.fixture(scope="module")
def choice(model):
    return pc.plan(model, MACHINE, batch=64, tokens="10T")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_forecast(forecast, width):
    text = rendered(forecast, width)
    assert LONG in unwrapped(text)
    for value in (forecast.iteration_time, *forecast.interval):
        assert whole(text, duration(value))
    for value in (forecast.peak_memory, forecast.memory_capacity):
        assert whole(text, gib(value))
    for part, seconds in forecast.breakdown().items():
        if seconds > forecast.iteration_time * 1e-5:
            assert whole(text, duration(seconds)), part
    assert "compute" in text
    assert "kernels  " not in text
    assert re.search(r"MFU +[\d.]+ % +[\d.]+ % with attention counted causally", text)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_answer_to_the_one_question(choice, width):
    text = rendered(choice, width)
    assert choice.best.strategy in unwrapped(text)
    for other in choice.others:
        assert whole(text, duration(other.forecast.iteration_time))
        assert whole(text, gib(other.forecast.peak_memory))
        assert other.forecast.strategy.split(",")[0] in text
    numbers = (
        duration(choice.best.iteration_time),
        gib(choice.best.peak_memory),
        gib(choice.headroom),
        percent(choice.best.mfu),
        whole_run(choice.run.seconds).partition(" ")[0],
        money(choice.run.usd).partition(" ")[0],
    )
    for number in numbers:
        assert whole(text, number), number
    # Names in the margin stand alone there, and what belongs to them beside.
    if width is not None:
        margin = {line[:14].strip() for line in text.splitlines()}
        assert {"plan", "rate", "step", "memory", "time", "cost", "confidence"} <= margin


@pytest.mark.parametrize("width", WIDTHS)
def test_a_run(choice, width):
    run = choice.run
    text = rendered(run, width)
    for value in (run.seconds, *run.interval):
        assert whole_run(value) in text
    assert money(run.usd) in text


@pytest.mark.parametrize("width", WIDTHS)
def test_a_comparison(model, forecast, width):
    other = pc.predict(model, MACHINE, "tp=2,mb=2", batch=64)
    text = rendered(pc.compare(forecast, other, other), width)
    for one in (forecast, other):
        assert whole(text, duration(one.iteration_time))
    assert "compute" in text


@pytest.mark.parametrize("width", WIDTHS)
def test_a_ranking(model, width):
    ranking = pc.rank(model, MACHINE, batch=64, space="tp=2|4,mb=1|2,pp=1|2,vpp=1,zero=1")
    text = rendered(ranking, width)
    for plan in ranking[:10]:
        assert whole(text, duration(plan.iteration_time))
        assert whole(text, gib(plan.peak_memory))
    if width in (None, 120):
        assert "not shown" not in text
    if width == 80:
        # The first to leave is what is read least.
        left = re.search(r"not shown in 80 columns: (.*)", text)
        assert left is None or "iteration" not in left[1]


@pytest.fixture(scope="module")
def others(model, forecast):
    """Every other result that is printed as tables, with a number of it."""
    host = pc.Machine.preset("dgx-a100-80g", hosts=1)
    trace = pc.Availability.parse("time_min,hosts\n0,4\n30,3\n60,4\n")
    job = pc.ClusterJob(name="a", placement="hosts 0-1 gpus 0-3", compute=1, communicate="1 s")
    other = pc.predict(model, MACHINE, "tp=2,mb=2", batch=64)
    sizing = pc.size(model, tokens=1e9, days=30, machines=["dgx-a100-80g", "dgx-h100"])
    spot = pc.spot(model, host, trace, tokens=1e11, batch=96)
    cluster = pc.cluster([job], MACHINE)
    why = forecast.explain(versus=other)
    sent = pc.gradients(pc.Model.preset("resnet50"), host, "mb=32", dtype="fp16")
    advice = pc.gradient_advice(pc.Model.preset("resnet50"), host, "mb=32", dtype="fp16")
    ranked = pc.sensitivities(model, MACHINE, "tp=2,mb=1", batch=64)
    tuned = pc.tune_buckets(model, host, "tp=1,mb=1", batch=16, profile="ddp")
    return [
        (sizing, whole_run(sizing.options[0].run.seconds)),
        (spot, percent(spot.goodput)),
        (cluster, percent(cluster.busy_share)),
        (forecast.explain(), "GPUs"),
        (why, duration(abs(why.seconds))),
        (sent, duration(sent.iteration_time)),
        (advice, duration(advice.rows[0].forecast.iteration_time)),
        (ranked, duration(ranked[0].iteration_time)),
        (tuned, duration(tuned.best.iteration_time)),
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_all_other_tables(others, width):
    for shown, number in others:
        assert number in rendered(shown, width), type(shown).__name__


def test_a_pipe_has_no_line_ends_that_a_reader_would_have_to_mend(choice, forecast):
    assert LONG in rendered(forecast, None)
    assert choice.best.strategy in rendered(choice, None)
    assert choice.command() in rendered(choice, None)


@pytest.mark.parametrize(
    ("times", "said"), [(1 / 0.964, "3.7 % slower"), (0.5, "50.0 % faster"), (1.0, "as fast")]
)
def test_a_what_if_says_slower_or_faster(model, times, said):
    from plancast.textual import slower

    assert slower(times) == said
    with_if = pc.what_if(model, MACHINE, "tp=2,mb=1", "nic=50%", batch=64)
    assert re.search(r"\d %? ?(slower|faster)|as fast$", str(with_if))
    assert "x as fast" not in str(with_if)


def test_what_is_extrapolated_is_called_so():
    machine, model = pc.Machine.preset("dgx1-v100-32g", hosts=1), pc.Model.preset("llama3-8b-l4")
    (warning,) = [
        text
        for text in pc.predict(model, machine, "tp=2,mb=1", batch=64).warnings
        if "critical path" in text
    ]
    assert "% of the critical path is extrapolated from other GPUs or links: `" in warning


def on_a_terminal(*words, **environment):
    """What a command writes to a terminal of 100 columns."""
    try:
        ours, theirs = pty.openpty()
    except OSError:
        pytest.skip("no terminals here")
    run = subprocess.Popen(
        [sys.executable, "-m", "plancast", *words],
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path), "COLUMNS": "100", **environment},
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # Linux ends a terminal so
            break
        if not piece:
            break
        written += piece
    os.close(ours)
    assert run.wait() == 0, written
    return written.decode()


def test_colours_are_for_terminals_that_want_them():
    words = ("list", "models", "llama3-8b")
    coloured = re.compile("\x1b\\[[0-9;]*3[0-7]m")
    usual = {"TERM": "xterm-256color"}
    assert coloured.search(on_a_terminal(*words, **usual))
    assert not coloured.search(on_a_terminal(*words, NO_COLOR="1", **usual))
