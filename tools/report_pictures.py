"""Makes the pictures of docs/report.md: pages of real answers in Debian's chromium.

PYTHONPATH=python:tests/python/report .venv/bin/python tools/report_pictures.py
"""

from __future__ import annotations

import base64
import logging
import pathlib
import sys
import tempfile
import threading
from typing import Any

import plancast as pc
from plancast.accuracy.report.score_page import scoreboard_page
from plancast.accuracy.validation.run import validate
from plancast.report.page.choice import choice_page
from plancast.report.page.frame import Page, write_page
from plancast.report.page.predict import forecast_page
from plancast.report.page.rank import ranking_page
from plancast.report.page.size import sizing_page
from plancast.ui.app import make_app
from plancast.ui.choices import Choice, Desk
from plancast.ui.serve import HOST

_OUT = pathlib.Path("docs/pictures")
_QUALITY = 72
_SIZES = (
    ("light", 1600),
    ("light", 800),
    ("light", 400),
    ("dark", 1600),
    ("dark", 800),
    ("dark", 400),
)


def _shoot(driver: Any, name: str, width: int, begin: int, height: int) -> None:
    clip = {"x": 0, "y": begin, "width": width, "height": height, "scale": 1}
    shot = driver.execute_cdp_cmd(
        "Page.captureScreenshot",
        {"format": "webp", "quality": _QUALITY, "captureBeyondViewport": True, "clip": clip},
    )
    picture = base64.b64decode(shot["data"])
    (_OUT / f"report-{name}.webp").write_bytes(picture)
    print(f"{name}: {len(picture) / 1000:.0f} kB")


def _theme(driver: Any, theme: str) -> None:
    feature = {"name": "prefers-color-scheme", "value": theme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def _top(driver: Any, selector: str) -> int:
    script = "return document.querySelector(arguments[0]).getBoundingClientRect().top + scrollY"
    return int(driver.execute_script(script, selector))


def _pages() -> dict[str, Page]:
    machine = pc.Machine.preset("dgx-h100", hosts=4)
    plan = "tp=4,sp,pp=4,vpp=4,mb=1,zero=1"
    forecast = pc.predict(pc.Model.preset("llama3-70b", seq=4096), machine, plan, batch=32)
    command = f"plancast predict -m llama3-70b --seq 4096 -c dgx-h100:4 -s {plan} --batch 32"
    small = pc.Model.preset("llama3-8b")
    ranking = pc.rank(small, pc.Machine.preset("dgx-h100", hosts=2), batch=128)
    said = "plancast rank -m llama3-8b -c dgx-h100:2 --batch 128"
    return {
        "predict": forecast_page(forecast, command),
        "rank": ranking_page(ranking, said),
    }


def _more_pages() -> dict[str, Page]:
    """Pages that are shown once."""
    small = pc.Model.preset("llama3-8b")
    machine = pc.Machine.preset("dgx-h100", hosts=2)
    choice = pc.plan(small, machine, tokens="1T", framework="torchtitan")
    sizing = pc.size(small, tokens="1T", days=30, most_gpus=256)
    board = validate(["examples/validation"])
    return {
        "plan": choice_page(
            choice, "plancast plan llama3-8b dgx-h100:2 --tokens 1T --for torchtitan"
        ),
        "size": sizing_page(
            sizing, "Machines for llama3-8b", "plancast size -m llama3-8b --tokens 1T --days 30"
        ),
        "validate": scoreboard_page(board, "plancast validate examples/validation"),
    }


def _ui() -> str:
    from werkzeug.serving import make_server

    degrees = (("tp", 2), ("pp", 4), ("mb", 1), ("vpp", 2))
    choice = Choice("llama3-8b", "dgx-h100", 2, 32, 4096, degrees=degrees, sp=True)
    server = make_server(HOST, 0, make_app(Desk(), choice).server, threaded=True)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://{HOST}:{server.server_port}/"


def main() -> int:
    """Makes all of them."""
    from chromium import browser, fit, open_page, resize
    from selenium.webdriver.support.ui import WebDriverWait

    _OUT.mkdir(exist_ok=True)
    with browser() as driver, tempfile.TemporaryDirectory() as folder:
        for name, page in _pages().items():
            path = pathlib.Path(folder) / f"{name}.html"
            write_page(path, page)
            for theme, width in _SIZES:
                _theme(driver, theme)
                if (theme, width) == _SIZES[0]:
                    open_page(driver, path, width)
                fit(driver, width)
                if name == "rank" and (theme, width) == _SIZES[0]:
                    driver.execute_script("plancast.table.toggle(0); plancast.table.toggle(7)")
                    fit(driver, width)
                _shoot(driver, f"{name}-{width}-{theme}", width, 0, 1300 if width > 400 else 1100)
                if (theme, width) == _SIZES[0]:
                    part = "#pipeline" if name == "predict" else "#trade-offs"
                    _shoot(driver, f"{name}-below", width, _top(driver, part), 1500)
                if name == "predict" and theme == "dark" and width == 800:
                    _shoot(driver, "machine", width, _top(driver, "#machine"), 620)
        for name, page in _more_pages().items():
            path = pathlib.Path(folder) / f"{name}.html"
            write_page(path, page)
            theme = "dark" if name == "size" else "light"
            _theme(driver, theme)
            open_page(driver, path, 1000)
            fit(driver, 1000)
            _shoot(driver, f"{name}-1000-{theme}", 1000, 0, 1250)
        resize(driver, 1600, 1000)
        driver.get(_ui())
        WebDriverWait(driver, 120).until(
            lambda d: d.execute_script(
                "return document.querySelectorAll('#pipeline .xtick').length"
            )
        )
        _theme(driver, "dark")
        driver.find_element("id", "pin").click()
        thumb = driver.find_element("css selector", "#around-pp [role=slider]")
        thumb.send_keys("\ue012")
        WebDriverWait(driver, 120).until(
            lambda d: d.execute_script(
                "return document.querySelectorAll('#memory .ytick').length == 2"
            )
        )
        driver.implicitly_wait(1)
        _shoot(driver, "ui-1600-dark", 1600, 0, 1300)
    return 0


if __name__ == "__main__":
    sys.exit(main())
