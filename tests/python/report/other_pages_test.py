"""Pages of comparisons, whole runs and clusters, in files and in a browser."""

from __future__ import annotations

import csv
import io
import json

import plancast as pc
import pytest
from chromium import browser, complaints, fit, open_page, overflow, texts
from plancast.explaining.causes import leading
from plancast.report.page.cluster import cluster_page
from plancast.report.page.compare import comparison_page, difference_bars
from plancast.report.page.frame import write_page
from plancast.report.page.text import text_page
from plancast.report.page.train import goodput_figure, run_page

LONG = "dp=1,tp=2,sp,pp=4,vpp=1,zero=0,mb=1,recompute=selective,attn=flash,bucket=160MB"
EVIL = "x</script><img src=x onerror=alert(1)>"
SIZES = {"layers": 4, "hidden": 512, "heads": 8, "ffn": 2048, "vocab": 1000, "seq": 256}

# Words of cards beyond their edge, cells wider than the page, and legends that one has to scroll.
CLIPPED = """
const wide = (e) => e.scrollWidth > e.clientWidth + 1;
return [
  ...[...document.querySelectorAll('.card, .card span')].filter(wide).map((e) => e.textContent),
  ...[...document.querySelectorAll('td.long')].filter(
    (e) => e.getBoundingClientRect().width > innerWidth).map((e) => e.textContent),
  ...[...document.querySelectorAll('.legend .scrollbar')].filter(
    (e) => e.getAttribute('height') > 0).map((e) => 'a legend scrolls'),
];
"""


@pytest.fixture(scope="module")
def model():
    return pc.Model.from_config(name=EVIL, **SIZES)


@pytest.fixture(scope="module")
def comparison(model):
    machine = pc.Machine.preset("dgx-a100-80g")
    return pc.compare(*(pc.predict(model, machine, plan, batch=16) for plan in ("tp=8,mb=1", LONG)))


@pytest.fixture(scope="module")
def run(model):
    return pc.train(model, pc.Machine.preset("dgx-a100-80g"), "tp=1,mb=1", tokens="1B", batch=64)


@pytest.fixture(scope="module")
def outcome():
    machine = pc.Machine.preset("dgx-a100-80g", hosts=4)
    jobs = [
        pc.ClusterJob(name=f"{EVIL} {at}", gpus=8, compute=1.0, communicate="1 s", iterations=4)
        for at in range(12)
    ]
    return pc.cluster(jobs, machine)


@pytest.fixture(scope="module")
def driver():
    with browser() as driver:
        yield driver


def saved(page, name):
    return list(csv.reader(io.StringIO(page.files[name])))


def test_a_comparison(driver, comparison, tmp_path):
    page = comparison_page(comparison, "plancast compare")
    assert json.loads(page.files["comparison.json"])["differences"]
    first = comparison.differences[0]
    bars = difference_bars(first)["data"][0]
    assert len(bars["x"]) == len(bars["y"]) <= len(first.parts)
    look(driver, page, tmp_path)
    assert first.reason in " ".join(texts(driver, "#differences p"))
    assert texts(driver, "#side th") == ["", "A", "B"]
    assert "MFU, causal" in texts(driver, "#side td")
    why = texts(driver, "#differences td")
    for cause in leading(first.causes, sum(one.picoseconds for one in first.causes)):
        assert cause.named("B", "A") in why
    assert not any("the other plan" in text for text in why)


def test_a_run(driver, run, tmp_path):
    page = run_page(run, "plancast train")
    assert [row[0] for row in saved(page, "phases.csv")][1:] == [p.name for p in run.phases]
    figure = goodput_figure(run.reliability)
    for column in zip(*(trace["y"] for trace in figure["data"]), strict=True):
        assert sum(column) == pytest.approx(100, abs=0.01)
    look(driver, page, tmp_path)
    assert any("90 % between" in card for card in texts(driver, ".card"))


def test_a_cluster(driver, outcome, tmp_path):
    page = cluster_page(outcome, f"Jobs of {EVIL}", "plancast cluster")
    assert len(saved(page, "jobs.csv")) == 1 + len(outcome.jobs)
    look(driver, page, tmp_path)
    assert texts(driver, "#grid0 tbody tr td:first-child")[0] == f"{EVIL} 0"
    driver.execute_script(
        "const i = document.querySelector('input[data-grid=grid0]'); i.value = ' 11';"
        "i.dispatchEvent(new Event('input'))"
    )
    assert texts(driver, "#grid0 tbody tr td:first-child") == [f"{EVIL} 11"]


def test_what_a_terminal_shows(driver, comparison, tmp_path):
    first, second = comparison
    answer = first.explain(versus=second)
    pictures = [answer.to_svg(standalone=False)]
    page = text_page(f"Why: {EVIL}", answer, answer.to_dict(), "plancast explain", pictures)
    assert json.loads(page.files["answer.json"])
    look(driver, page, tmp_path)
    assert driver.execute_script("return document.querySelectorAll('.picture svg').length") == 1
    assert len(page.render()) < 200_000  # no charts, no library


def look(driver, page, folder):
    """Nothing ends a script, loads, overflows or complains."""
    path = folder / "page.html"
    write_page(path, page)
    text = path.read_text()
    assert text.count("</script") == 4
    assert "<img" not in text
    open_page(driver, path, 1600)
    for width in (400, 800):
        fit(driver, width)
        assert overflow(driver) <= 0
        assert driver.execute_script(CLIPPED) == []
    assert driver.execute_script("return document.images.length") == 0
    assert complaints(driver) == []
