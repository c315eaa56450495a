"""The shipped coefficients are what the calibration makes of the measured rows.

Needs ../shared: PLANCAST_SHARED_DATA names its data folder.
"""

import os
from pathlib import Path

import pytest
from plancast.accuracy import calibrate_collectives
from plancast.accuracy import calibrate_kernels as calibrate
from textproto_reader import parse

SHARED = os.environ.get("PLANCAST_SHARED_DATA")
pytestmark = pytest.mark.skipif(
    not SHARED, reason="needs ../shared: set PLANCAST_SHARED_DATA to its data folder"
)
DATA = Path(SHARED or ".")
CORES = os.cpu_count() or 1
TABLES = Path("cost_models/data")
PROTOCOLS = Path("collectives/data/protocols.textproto")


def shipped() -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(TABLES.glob("*.textproto"))}


def date_of(texts: dict[str, str]) -> str:
    (message,) = parse(texts["a100_sxm_80gb.textproto"])["memory"]
    return message["fit"][0]["date"][0]


def test_one_command_gives_the_shipped_files_byte_for_byte():
    texts = shipped()
    made = calibrate.calibrate(DATA / "kernels", date=date_of(texts), workers=CORES)
    assert sorted(made) == sorted(texts)
    for name, text in texts.items():
        assert made[name] == text, name


def test_another_gives_the_shipped_file_of_collectives_byte_for_byte():
    assert calibrate_collectives.calibrate(DATA) == PROTOCOLS.read_text()
