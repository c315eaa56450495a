"""`plancast ui`: what is chosen, and the page in a browser."""

from __future__ import annotations

import json
import threading

import plancast as pc
import pytest
from chromium import browser, complaints, overflow, resize, texts
from plancast.ui.app import choice_of, make_app
from plancast.ui.choices import SLIDERS, Choice, Desk, read_strategy, steps
from plancast.ui.serve import HOST, check_port

EVIL = "x</script><script>alert(1)</script><img src=x onerror=alert(1)>"
SIZES = {"layers": 4, "hidden": 512, "heads": 8, "ffn": 2048, "vocab": 1000, "seq": 256}


@pytest.fixture(scope="module")
def desk():
    return Desk(models={"evil.yaml": pc.Model.from_config(name=EVIL, **SIZES)})


@pytest.fixture(scope="module")
def first():
    return Choice(
        "evil.yaml", "dgx-a100-80g", 1, 16, degrees=(("tp", 2), ("pp", 4), ("mb", 1)), sp=False
    )


@pytest.fixture(scope="module")
def address(desk, first):
    from werkzeug.serving import make_server

    server = make_server(HOST, 0, make_app(desk, first).server, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://{HOST}:{server.server_port}/"
    server.shutdown()


def test_sliders_stop_at_degrees_that_can_be(desk):
    model, machine = pc.Model.preset("mixtral-8x7b"), pc.Machine.preset("dgx-h100", hosts=2)
    offered = steps(model, machine, 48)
    assert set(offered) == set(SLIDERS)
    assert offered["tp"] == [1, 2, 4, 8]
    assert offered["pp"] == [1, 2, 4, 8, 16]
    assert offered["ep"] == [1, 2, 4, 8]
    assert offered["mb"] == [1, 2, 3, 4, 6, 8, 12, 16, 24, 48]
    image = steps(pc.Model.preset("resnet50"), machine, 64)
    assert image["tp"] == image["cp"] == image["ep"] == [1]


def test_a_strategy_goes_to_the_controls_and_back():
    text = "tp=4,sp,pp=2,mb=1,zero=1,recompute=full,schedule=zbh1"
    said = read_strategy(text)
    choice = Choice("m", "c", 1, 8, **{**said, "degrees": tuple(said["degrees"].items())})
    parse = pc.Strategy.parse
    assert parse(choice.strategy()) == parse(text)
    assert choice.command() == f"plancast predict -m m -c c:1 -s {choice.strategy()} --batch 8"


def test_what_a_browser_sends_back_is_the_choice(first):
    from dataclasses import asdict

    assert choice_of(json.loads(json.dumps(asdict(first)))) == first


def test_nothing_but_what_is_on_offer_is_opened(desk):
    with pytest.raises(pc.InputError, match="on offer"):
        desk.forecast(Choice("/etc/passwd", "dgx-h100", 1, 8))
    with pytest.raises(pc.InputError, match="on offer"):
        desk.forecast(Choice("gpt2", "x.yaml", 1, 8))
    with pytest.raises(pc.InputError, match="hosts"):
        desk.forecast(Choice("gpt2", "dgx-h100", 10**9, 8))


def test_the_page_answers_its_own_address_alone(desk, first):
    client = make_app(desk, first).server.test_client()
    assert client.get("/", base_url="http://127.0.0.1:8050").status_code == 200
    assert client.get("/", base_url="http://localhost:8050").status_code == 200
    assert client.get("/", base_url="http://evil.example").status_code == 403
    odd = {"Origin": "http://evil.example"}
    assert client.get("/", base_url="http://127.0.0.1:8050", headers=odd).status_code == 403


def test_words_to_type_are_set_as_code():
    from plancast.ui.app import _coded

    first, name, last = _coded("of `a<b>` all")
    assert (first, name.children, last) == ("of ", "a<b>", " all")


def test_a_port_that_is_taken(address):
    port = int(address.rstrip("/").rpartition(":")[2])
    with pytest.raises(pc.InputError, match="--port"):
        check_port(port)


def test_what_is_missing_is_named(cli, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install 'plancast[ui]'" in cli.error("ui", "--port", "0")


def until(driver, condition, *arguments):
    """Waits for a condition in the page."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, 60, 0.1).until(
        lambda d: d.execute_script(f"return {condition}", *arguments)
    )


def test_in_a_browser(address):
    with browser() as driver:
        resize(driver, 1600)
        driver.get(address)
        until(driver, "document.querySelectorAll('#pipeline .xtick').length > 0")
        until(driver, "document.querySelectorAll('#memory .ytick').length == 4")
        line = texts(driver, "#command")[0]
        assert "tp=2,pp=4" in line
        assert EVIL in texts(driver, "#heading")[0]

        # A degree is moved by keys as by the pointer; all follows at once.
        thumb = driver.find_element("css selector", "#around-pp [role=slider]")
        thumb.send_keys("\ue012")  # left
        until(driver, "document.querySelector('#said-pp').textContent === '2'")
        until(driver, "document.querySelector('#command').textContent.includes('pp=2')")
        until(driver, "document.querySelectorAll('#memory .ytick').length == 2")

        # Pins are compared.
        driver.find_element("id", "pin").click()
        until(driver, "document.querySelectorAll('#pinned tbody tr').length === 1")
        thumb.send_keys("\ue014")  # right
        until(driver, "document.querySelector('#command').textContent.includes('pp=4')")
        driver.find_element("id", "pin").click()
        until(driver, "document.querySelectorAll('#pinned tbody tr').length === 2")
        rows = texts(driver, "#pinned tbody tr")
        assert "pp=2" in rows[0]
        assert "faster" in rows[1] or "slower" in rows[1]
        until(driver, "document.querySelectorAll('#times .ytick').length === 3")

        # What cannot be is said, and nothing breaks.
        more = driver.find_element("id", "more")
        more.send_keys("schedule=<b>\ue007")
        until(driver, "!document.querySelector('#error').hidden")
        assert "<b>" in texts(driver, "#error")[0]
        for width in (400, 800, 1600):
            resize(driver, width)
            assert overflow(driver) <= 0
        assert driver.execute_script("return document.images.length") == 0
        assert complaints(driver) == []
