"""The page of a ranking: sorted, filtered, selected in a browser."""

from __future__ import annotations

import random

import plancast as pc
import pytest
from chromium import (
    PAPER,
    browser,
    complaints,
    fit,
    open_page,
    overflow,
    resize,
    texts,
    to_paper,
)
from plancast.report.page.frame import write_page
from plancast.report.page.rank import compare_command, plan_columns, ranking_page

EVIL = "x</script><script>alert(1)</script><img src=x onerror=alert(1)>"
SIZES = {"layers": 4, "hidden": 512, "heads": 8, "ffn": 2048, "vocab": 1000, "seq": 256}
COMMAND = "plancast rank -m small -c dgx-a100-80g --batch 16 --report x.html"
SEED = 20261127


@pytest.fixture(scope="module")
def ranking():
    model = pc.Model.from_config(name=EVIL, **SIZES)
    return pc.rank(model, pc.Machine.preset("dgx-a100-80g"), batch=16, space="tp=1|2|4,pp=1|2,mb=*")


@pytest.fixture(scope="module")
def driver():
    with browser() as driver:
        yield driver


def many(columns, count):
    """Columns of so many plans, at random."""
    draw = random.Random(SEED)
    measures = columns["measures"]
    time = sorted(draw.uniform(1, 9) for _ in range(count))
    return {
        "strategy": [f"tp=1,mb={at}<b>" for at in range(count)],
        "keys": {key: draw.choices(values, k=count) for key, values in columns["keys"].items()},
        "parts": {part: draw.choices(values, k=count) for part, values in columns["parts"].items()},
        "measures": {
            name: values and draw.choices(values, k=count) for name, values in measures.items()
        }
        | {"time": time, "memory": [draw.randrange(2**34, 2**36) for _ in time]},
    }


def test_columns_are_the_plans(ranking):
    columns = plan_columns(list(ranking))
    assert columns["strategy"] == [plan.strategy for plan in ranking]
    assert columns["measures"]["memory"] == [plan.peak_memory for plan in ranking]
    for at, plan in enumerate(ranking):
        degrees = [columns["keys"][key][at] for key in ("tp", "pp", "dp")]
        assert degrees[0] * degrees[1] * degrees[2] == plan.devices
        parts = sum(values[at] for values in columns["parts"].values())
        assert parts == pytest.approx(plan.iteration_time, rel=1e-4)


def test_where_nothing_fits_the_page_says_what_would():
    model = pc.Model.preset("gpt3-175b")
    ranking = pc.rank(model, pc.Machine.preset("dgx-a100-80g"), batch=8, space="tp=8,pp=1,mb=1")
    assert not len(ranking)
    assert "No plan of the space fits" in ranking_page(ranking).render()


def test_outside_of_a_space_is_said_what_fits():
    model = pc.Model.preset("llama3-70b-l60", seq=2048)
    machine = pc.Machine.preset("dgx-h100", hosts=1)
    plan = pc.predict(model, machine, "tp=8,sp,mb=1,zero=1,recompute=full,offload=optimizer")
    ranking = pc.rank(model, machine, batch=16, space="tp=1,mb=1,pp=1,zero=0")
    page = ranking_page(ranking.with_outside(plan)).render()
    assert "Outside of the space fits " in page
    assert "looks for another plan" not in page


def test_the_simplest_of_ties_is_named(ranking):
    page = ranking_page(ranking, COMMAND)
    simplest = ranking.ties[0]
    card = next(card for card in page.cards if card.label == "simplest of ties")
    assert card.value == f"#{simplest.position + 1}"
    assert simplest.strategy in card.more
    assert str(len(ranking.ties)) in card.more


def test_the_command_for_two_plans():
    assert compare_command(COMMAND) == "plancast compare -m small -c dgx-a100-80g --batch 16"


def column(driver, label):
    """Cells of a column of the table."""
    labels = texts(driver, "#plans-table th")
    at = labels.index(label) + 1
    return texts(driver, f"#plans-table td:nth-child({at})")


def head(driver, label):
    for button in driver.find_elements("css selector", "#plans-table th button"):
        if button.text == label:
            return button
    raise AssertionError(label)


def press(driver, element):
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    element.click()


def test_five_thousand_plans_in_a_browser(driver, ranking, tmp_path):
    page = ranking_page(ranking, COMMAND)
    page.data["plans"] = columns = many(page.data["plans"], 5000)
    path = tmp_path / "rank.html"
    write_page(path, page)
    text = path.read_text()
    assert "https://" not in text
    assert "<img" not in text
    open_page(driver, path, 1600)
    assert "1–50 of 5,000" in texts(driver, ".where")[0]
    assert "tp=1,mb=0<b>" in texts(driver, "#plans-table td")

    # Sorting, both ways; numbers by size.
    press(driver, head(driver, "GiB"))
    sizes = [float(size) for size in column(driver, "GiB")]
    assert sizes == sorted(sizes)
    assert sizes[0] == round(min(columns["measures"]["memory"]) / 2**30, 1)
    press(driver, head(driver, "GiB"))
    sizes = [float(size) for size in column(driver, "GiB")]
    assert sizes == sorted(sizes, reverse=True)

    # Filters narrow the table.
    menu = driver.find_element("css selector", "select[data-key=tp]")
    driver.execute_script(
        "arguments[0].value = '4'; arguments[0].dispatchEvent(new Event('change'))", menu
    )
    expected = columns["keys"]["tp"].count(4)
    assert f"of {expected:,}" in texts(driver, ".where")[0]
    assert set(column(driver, "tp")) == {"4"}
    field = driver.find_element("css selector", "input[data-most=memory]")
    press(driver, field)
    field.send_keys("20")
    assert all(float(size) <= 20 for size in column(driver, "GiB"))

    # Two plans, explained.
    boxes = driver.find_elements("css selector", "#plans-table td input")
    press(driver, boxes[0])
    boxes = driver.find_elements("css selector", "#plans-table td input")
    press(driver, boxes[3])
    said = " ".join(texts(driver, "#difference p"))
    assert "than A" in said
    assert "What differs:" in said
    line = texts(driver, "#compare-line")[0]
    assert line.startswith("plancast compare -m small -c dgx-a100-80g --batch 16 -s 'tp=1,mb=")

    # The front: nothing is better in both.
    front = driver.execute_script("return plancast.front(plancast.table.rows, 'memory')")
    time, memory = columns["measures"]["time"], columns["measures"]["memory"]
    rows = driver.execute_script("return plancast.table.rows")
    for at in front:
        assert not any(time[r] < time[at] and memory[r] < memory[at] for r in rows)

    saved = driver.execute_script("return plancast.makers['plans.csv']()").splitlines()
    assert len(saved) == 5001
    assert saved[0].startswith("rank,strategy,tp,pp,dp,mb,")
    # On paper the plans stand in one column, and nothing is cut.
    resize(driver, PAPER)
    to_paper(driver, True)
    shown = driver.execute_script(
        "return [...document.querySelectorAll('#plans-table th')]"
        ".filter((e) => e.offsetWidth).map((e) => e.textContent)"
    )
    assert "strategy" in shown
    assert "tp" not in shown
    assert overflow(driver) <= 0
    to_paper(driver, False)
    for width in (400, 800):
        fit(driver, width)
        assert overflow(driver) <= 0
    assert driver.execute_script("return document.images.length") == 0
    assert complaints(driver) == []
