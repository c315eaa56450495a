"""Pages of `plan`, `size` and `spot`, in files and in a browser."""

from __future__ import annotations

import csv
import io
import json

import plancast as pc
import pytest
from chromium import browser, complaints, fit, open_page, overflow, texts
from plancast.report.page.choice import choice_page
from plancast.report.page.frame import write_page
from plancast.report.page.size import sizing_page
from plancast.report.page.spot import hosts_figure, spot_page

EVIL = "x</script><img src=x onerror=alert(1)>"
SIZES = {"layers": 4, "hidden": 512, "heads": 8, "ffn": 2048, "vocab": 1000, "seq": 256}


@pytest.fixture(scope="module")
def model():
    return pc.Model.from_config(name=EVIL, **SIZES)


@pytest.fixture(scope="module")
def driver():
    with browser() as driver:
        yield driver


def saved(page, name):
    return list(csv.reader(io.StringIO(page.files[name])))


def test_the_plan(driver, model, tmp_path):
    machine = pc.Machine.preset("dgx-a100-80g", hosts=1)
    choice = pc.plan(model, machine, batch=64, tokens="1B", space="mb=1|2,pp=1,recompute=none")
    page = choice_page(choice, "plancast plan")
    assert json.loads(page.files["choice.json"])["strategy"] == choice.best.strategy
    look(driver, page, tmp_path)
    shown = " ".join(texts(driver, "#sure td, #alternatives td, #launch pre, .card"))
    for word in ("measured", choice.others[0].forecast.strategy, "torchrun", "confidence", "$"):
        assert word in shown
    assert texts(driver, "#pipeline figcaption")
    # What is among the reasons of the grade is said once.
    reasons = texts(driver, "#sure td")
    told = texts(driver, ".warning")
    assert not set(told) & set(reasons)
    assert not any("of the critical path" in text for text in told)


def test_no_plan(driver, tmp_path):
    machine = pc.Machine.preset("dgx-a100-80g", hosts=1)
    model = pc.Model.from_config(
        name=EVIL, **{**SIZES, "layers": 96, "hidden": 12288, "ffn": 49152}
    )
    choice = pc.plan(model, machine, batch=8, space="mb=1,tp=1|8,recompute=full")
    assert choice.best is None
    page = choice_page(choice, "plancast plan")
    look(driver, page, tmp_path)
    shown = " ".join(texts(driver, "#lacks p, #would td"))
    assert "GiB" in shown
    assert choice.would_fit[0].replace("`", "") in shown  # set as code


def test_sizes(driver, model, tmp_path):
    sizing = pc.size(
        model, ["dgx-a100-80g", "dgx-h100"], tokens="1T", days=30, budget="1M", most_gpus=64
    )
    page = sizing_page(sizing, f"Machines for {EVIL}", "plancast size")
    rows = saved(page, "machines.csv")
    assert [row[0] for row in rows[1:]] == [option.machine for option in sizing.options]
    look(driver, page, tmp_path)
    assert texts(driver, "#grid0 tbody tr td:first-child") == [row[0] for row in rows[1:]]
    assert any(sizing.best.machine in card for card in texts(driver, ".card"))
    plans = "document.querySelectorAll('#grid0 td:last-child wbr').length"
    assert driver.execute_script(f"return {plans}") >= len(rows) - 1


def test_hosts_that_come_and_go(driver, model, tmp_path):
    trace = pc.Availability.parse("time_h,hosts\n0,4\n1,2\n2,4\n")
    run = pc.spot(model, pc.Machine.preset("dgx-a100-80g", hosts=1), trace, tokens="50B", batch=256)
    page = spot_page(run, f"{EVIL} on hosts of a trace", "plancast spot")
    there, used = hosts_figure(run)["data"]
    assert all(a <= b for a, b in zip(used["y"], there["y"], strict=True))
    assert there["x"][-1] * 3600 == pytest.approx(run.outcome.wall_s, rel=1e-4)
    look(driver, page, tmp_path)
    assert any("of linear" in head for head in texts(driver, "#plans th"))
    assert any("90 % between" in card for card in texts(driver, ".card"))


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
    assert driver.execute_script("return document.images.length") == 0
    assert complaints(driver) == []
