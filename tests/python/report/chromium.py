"""Debian's chromium without a window, driven by selenium; tests skip where it is not installed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def browser() -> Iterator[Any]:
    """A driver of a browser that reaches this machine alone."""
    selenium = pytest.importorskip("selenium", reason="selenium is not installed")
    assert selenium
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    programs = [shutil.which("chromium"), shutil.which("chromedriver")]
    if None in programs:
        pytest.skip("chromium or chromedriver is not installed (tools/setup.sh installs them)")
    if "HOME" not in os.environ:  # chromium does not start without one
        os.environ["HOME"] = tempfile.mkdtemp()
    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ):  # fmt: skip
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=Service(programs[1]))
    driver.set_script_timeout(180)
    try:
        yield driver
    finally:
        driver.quit()


def resize(driver: Any, width: int, height: int = 900) -> None:
    """A viewport of so many pixels."""
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )


def open_page(driver: Any, path: Path, width: int = 800) -> None:
    """A page from a file, with all its charts."""
    driver.get_log("browser")
    resize(driver, width)
    driver.get(path.as_uri())
    draw(driver)


def fit(driver: Any, width: int) -> None:
    """Another width, and the charts of a report drawn for it."""
    resize(driver, width)
    driver.execute_async_script(
        "const end = arguments[0]; requestAnimationFrame(() => plancast.redrawAll().then(end))"
    )


def draw(driver: Any) -> None:
    """Draws every chart of a report."""
    done = driver.execute_async_script(
        "const end = arguments[0]; plancast.drawAll().then(() => end('drawn'), (e) => end(`${e}`))"
    )
    assert done == "drawn", done


PAPER = 718  # pixels between the margins of a sheet of A4


def to_paper(driver: Any, on: bool) -> None:
    """As where the page is printed, or back."""
    driver.execute_async_script(
        "const end = arguments[1]; plancast.toPaper(arguments[0]).then(end)", on
    )
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print" if on else ""})


def complaints(driver: Any) -> list[str]:
    """What the console says, warnings included."""
    return [f"{line['level']}: {line['message']}" for line in driver.get_log("browser")]


def overflow(driver: Any) -> int:
    """By how many pixels the page is wider than the window."""
    return int(
        driver.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
    )


def texts(driver: Any, selector: str) -> list[str]:
    """The words of all elements that a selector finds."""
    found = driver.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector
    )
    return [str(text) for text in found]
