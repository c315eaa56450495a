"""Makes the pictures of docs/report.md: pages of real answers in Debian's chromium.

PYTHONPATH=python:tests/python/report:tools .venv/bin/python tools/report_pictures.py [PAGE...]
"""

from __future__ import annotations

import base64
import logging
import pathlib
import sys
import tempfile
import threading
from typing import Any

import gallery
import plancast as pc
from plancast.accuracy.report.score_page import scoreboard_page
from plancast.accuracy.validation.run import validate
from plancast.report.page.choice import choice_page
from plancast.report.page.cluster import cluster_page
from plancast.report.page.compare import comparison_page
from plancast.report.page.frame import Page, write_page
from plancast.report.page.predict import forecast_page
from plancast.report.page.rank import ranking_page
from plancast.report.page.size import sizing_page
from plancast.report.page.spot import spot_page
from plancast.report.page.train import run_page
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


def _predict() -> Page:
    machine = pc.Machine.preset("dgx-h100", hosts=4)
    plan = "tp=4,sp,pp=4,vpp=4,mb=1,zero=1"
    forecast = pc.predict(pc.Model.preset("llama3-70b", seq=4096), machine, plan, batch=32)
    said = f"plancast predict -m llama3-70b --seq 4096 -c dgx-h100:4 -s {plan} --batch 32"
    return forecast_page(forecast, said)


def _small() -> tuple[pc.Model, pc.Machine]:
    return pc.Model.preset("llama3-8b"), pc.Machine.preset("dgx-h100", hosts=2)


def _rank() -> Page:
    ranking = pc.rank(*_small(), batch=128)
    return ranking_page(ranking, "plancast rank -m llama3-8b -c dgx-h100:2 --batch 128")


def _plan() -> Page:
    choice = pc.plan(*_small(), tokens="1T", framework="torchtitan")
    said = "plancast plan llama3-8b dgx-h100:2 --tokens 1T --for torchtitan"
    return choice_page(choice, said)


def _compare() -> Page:
    model, machine = _small()
    plans = "tp=1,zero=2,mb=1", "tp=2,sp,pp=2,zero=1,mb=1"
    comparison = pc.compare(*(pc.predict(model, machine, plan, batch=128) for plan in plans))
    said = "plancast compare -m llama3-8b -c dgx-h100:2 --batch 128"
    return comparison_page(comparison, f"{said} {' '.join(f'-s {plan}' for plan in plans)}")


def _train() -> Page:
    plan = "tp=1,zero=2,mb=1"
    run = pc.train(*_small(), plan, tokens="1T", batch=512)
    said = f"plancast train -m llama3-8b -c dgx-h100:2 -s {plan} --tokens 1T --batch 512"
    return run_page(run, said)


def _size() -> Page:
    sizing = pc.size(_small()[0], tokens="1T", days=30, most_gpus=256)
    said = "plancast size -m llama3-8b --tokens 1T --days 30"
    return sizing_page(sizing, "Machines for llama3-8b", said)


def _spot() -> Page:
    hosts = pc.Availability.parse(gallery.HOSTS)
    run = pc.spot(*_small(), hosts, tokens="150B", batch=512)
    said = (
        "plancast spot -m llama3-8b -c dgx-h100 --availability trace.csv --tokens 150B --batch 512"
    )
    return spot_page(run, "llama3-8b on hosts of trace.csv", said)


def _cluster() -> Page:
    jobs = "examples/clusters/shared-pods.yaml"
    said = f"plancast cluster {jobs} -c examples/clusters/oversubscribed.yaml"
    return cluster_page(gallery.shared_pods(), f"Jobs of {jobs}", said)


def _validate() -> Page:
    said = "plancast validate examples/validation"
    return scoreboard_page(validate(["examples/validation"]), said)


# Pages at all widths, and pages that are shown once.
_PAGES = {"predict": _predict, "rank": _rank}
_MORE_PAGES = {
    "plan": _plan, "compare": _compare, "train": _train, "size": _size, "spot": _spot,
    "cluster": _cluster, "validate": _validate,
}  # fmt: skip
_DARK = ("size", "cluster", "compare")


def _ui() -> str:
    from werkzeug.serving import make_server

    degrees = (("tp", 2), ("pp", 4), ("mb", 1), ("vpp", 2))
    choice = Choice("llama3-8b", "dgx-h100", 2, 32, 4096, degrees=degrees, sp=True)
    server = make_server(HOST, 0, make_app(Desk(), choice).server, threaded=True)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://{HOST}:{server.server_port}/"


def main() -> int:
    """Makes those of the pages named, or all."""
    from chromium import browser, fit, open_page, resize
    from selenium.webdriver.support.ui import WebDriverWait

    _OUT.mkdir(exist_ok=True)
    wanted = sys.argv[1:] or [*_PAGES, *_MORE_PAGES, "ui"]
    with browser() as driver, tempfile.TemporaryDirectory() as folder:
        for name in (name for name in _PAGES if name in wanted):
            path = pathlib.Path(folder) / f"{name}.html"
            write_page(path, _PAGES[name]())
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
                    _shoot(driver, "machine", width, _top(driver, "#machine"), 1330)
        for name in (name for name in _MORE_PAGES if name in wanted):
            path = pathlib.Path(folder) / f"{name}.html"
            write_page(path, _MORE_PAGES[name]())
            theme = "dark" if name in _DARK else "light"
            _theme(driver, theme)
            open_page(driver, path, 1000)
            fit(driver, 1000)
            _shoot(driver, f"{name}-1000-{theme}", 1000, 0, 1250)
        if "ui" not in wanted:
            return 0
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
        for theme, width in (("dark", 1600), ("light", 800), ("light", 400)):
            _theme(driver, theme)
            resize(driver, width, 1000)
            driver.implicitly_wait(1)
            _shoot(driver, f"ui-{width}-{theme}", width, 0, 1300)
    return 0


if __name__ == "__main__":
    sys.exit(main())
