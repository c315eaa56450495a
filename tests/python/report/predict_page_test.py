"""The page of a plan, in a file and in a browser."""

from __future__ import annotations

import json
import re

import plancast as pc
import pytest
from chromium import PAPER, browser, complaints, fit, open_page, overflow, texts, to_paper
from plancast.report.page import frame
from plancast.report.page.frame import Page, write_page
from plancast.report.page.predict import forecast_page

EVIL = "x</script><img src=x onerror=alert(1)><b>&lt;i&gt;\u202e"
SIZES = {"layers": 4, "hidden": 512, "heads": 8, "ffn": 2048, "vocab": 1000, "seq": 256}
COMMAND = "plancast predict -m small -s 'a</script>'"


# By how much legends above charts reach into them, pixels.
LEGENDS = """
return [...document.querySelectorAll('.chart')].flatMap((e) => {
  const legend = e.querySelector('.legend'), drawn = e.querySelector('.nsewdrag');
  if (legend === null || drawn === null) return [];
  return [legend.getBoundingClientRect().bottom - drawn.getBoundingClientRect().top];
});
"""


@pytest.fixture(scope="module")
def forecast():
    model = pc.Model.from_config(name=EVIL, **SIZES)
    machine = pc.Machine.from_dict({**pc.Machine.preset("dgx-a100-80g").to_dict(), "name": EVIL})
    return pc.predict(model, machine, "tp=2,pp=4,mb=1", batch=8)


@pytest.fixture(scope="module")
def path(forecast, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    write_page(path, forecast_page(forecast, COMMAND))
    return path


@pytest.fixture(scope="module")
def driver():
    with browser() as driver:
        yield driver


def test_a_file_that_loads_nothing_and_ends_no_script(path):
    text = path.read_text()
    assert "http://" not in text
    assert "https://" not in text
    assert "default-src 'none'" in text
    assert text.count("</script") == 4  # data, scripts, the library, the start
    assert "<img" not in text
    assert "\u202e" not in text
    assert len(text) < 3_000_000


def test_data_inside_are_the_forecast(path, forecast):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text())
    data = json.loads(found[1])
    assert json.loads(data["files"]["forecast.json"]) == json.loads(json.dumps(forecast.to_dict()))
    assert set(data["files"]) == {"forecast.json", "breakdown.csv", "memory.csv", "stages.csv"}


def test_a_forecast_with_too_many_tasks_says_so(forecast, monkeypatch):
    monkeypatch.setattr("plancast.report.page.slices.MOST_TASKS", 10)
    assert "<code>--trace FILE</code>" in forecast_page(forecast).render()


def test_the_library_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setattr(frame.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(pc.InputError, match=r"pip install 'plancast\[report\]'"):
        Page("x").render()


def test_in_a_browser(driver, path, forecast):
    open_page(driver, path, 1600)
    for width in (1600, 800, 400):
        if width != 1600:
            fit(driver, width)
        assert overflow(driver) <= 0
        drawn = driver.execute_script(
            "return [...document.querySelectorAll('.chart')].map((e) => e.dataset.done ?"
            " e.querySelector('svg').clientWidth : 0)"
        )
        assert all(0 < one <= width for one in drawn), (width, drawn)
    name = EVIL.replace("\u202e", "\\u202e")
    assert texts(driver, "h1") == [f"{name} on {name} (8 GPUs)"]
    assert driver.execute_script("return document.images.length") == 0
    assert texts(driver, "#line") == [COMMAND]
    words = " ".join(texts(driver, ".card"))
    assert "iteration" in words
    assert re.search(r"MFU[\d.]+ %[\d.]+ % causal, HFU", words)
    assert "fits" in words
    drawn = texts(driver, "#chart1 .ytick text")
    assert drawn == [entry.device_class for entry in forecast.memory]
    # Legends stand above what is drawn, whatever the width was before.
    for width in (1600, 400, 800):
        fit(driver, width)
        assert max(driver.execute_script(LEGENDS)) <= 0
    # On paper, drawn on a wide screen: nothing is cut.
    fit(driver, 1600)
    to_paper(driver, True)
    widths = driver.execute_script(
        "return [...document.querySelectorAll('.chart svg')].map((e) => e.clientWidth)"
    )
    assert widths and max(widths) <= PAPER
    to_paper(driver, False)
    widths = driver.execute_script(
        "return [...document.querySelectorAll('.chart svg')].map((e) => e.clientWidth)"
    )
    assert max(widths) > PAPER
    # Menus, and the other theme.
    menu = driver.find_element("css selector", "#memory select")
    menu.find_elements("tag name", "option")[1].click()
    ground = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    button = driver.find_element("id", "theme")
    driver.execute_script("scrollTo(0, 0)")
    button.click()
    button.click()
    assert button.text == "dark"
    assert ground != driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert complaints(driver) == []
