"""`plancast train`: what it prints and what it refuses."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from plancast.cli.main import main

RUN = ["train", "-m", "llama3-8b", "-c", "dgx-h100:2", "--tokens", "1T", "--batch", "512"]
PLAN = [*RUN, "-s", "tp=2,zero=1,mb=1,recompute=selective"]


def answer(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_tables_fit_in_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    phases = ["--phase", "tokens=900B", "--phase", "seq=32768 batch=128 strategy=tp=8,cp=2,mb=1"]
    code, out, _ = answer(
        capsys, *PLAN, "--ramp", "64:64:10B", *phases, "--evaluate", "1000:2min",
        "--failures", "llama3,spares=1", "--simulate", "3",
    )  # fmt: skip
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    for words in ("GPU-hours", "90 % between", "ramp 64", "waiting for a host", "simulated"):
        assert words in out


def test_json_has_every_figure(capsys):
    code, out, _ = answer(capsys, *PLAN, "--json")
    assert code == 0
    fields = json.loads(out)
    low, high = fields["seconds_interval"]
    assert low < fields["seconds"] < high
    assert fields["usd"] == pytest.approx(fields["gpu_hours"] * 3.5)
    assert fields["reliability"]["useful_share"] == fields["useful_share"]
    assert sum(fields["reliability"]["shares"].values()) == pytest.approx(1.0)
    assert fields["phases"][0]["steps"] == fields["steps"]


def test_the_picture_is_a_stack_to_100_percent(capsys, tmp_path):
    path = tmp_path / "run.svg"
    page = tmp_path / "run.html"
    assert answer(capsys, *PLAN, "--svg", str(path), "--report", str(page))[0] == 0
    root = ElementTree.fromstring(path.read_text())
    polygons = root.findall("{http://www.w3.org/2000/svg}polygon")
    assert len(polygons) == 4  # training, saving, twice, restarting
    last = [point.split(",") for point in polygons[-1].attrib["points"].split()]
    upper = last[: len(last) // 2]
    assert {float(y) for _, y in upper} == {52.0}  # the top of the axis
    assert "Time by the interval of checkpoints" in page.read_text()
    code, _, err = answer(capsys, *PLAN, "--svg", str(path), "--failures", "none")
    assert code == 2 and "leave `--failures none` out" in err


def test_a_plan_that_does_not_fit_is_told(capsys):
    plan = [*RUN, "-s", "tp=1,mb=8,zero=0"]
    code, out, _ = answer(capsys, *plan)
    assert code == 0 and "does not fit in memory" in out
    assert answer(capsys, *plan, "--require-fit")[0] == 3


def test_no_price_is_unknown_not_zero(capsys):
    code, out, _ = answer(capsys, *PLAN, "--price", "spot", "-c", "dgx-h100:2")
    assert code == 2  # given twice
    box = [*PLAN]
    box[box.index("dgx-h100:2")] = "gb200-nvl72:4"
    code, out, _ = answer(capsys, *box, "--price", "spot")
    assert code == 0
    assert "unknown" in out and "no spot price" in out
    assert json.loads(answer(capsys, *box, "--price", "spot", "--json")[1])["usd"] is None


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--tokens", "much"], "`tokens` is `much`; write a number"),
        (["--phase", "token=5B"], "Did you mean `tokens`"),
        (["--phase", "batch=x"], "whole number"),
        (["--failures", "rsc1"], "Did you mean"),
        (["--checkpoints", "store=2"], "write a rate"),
        (["--price", "free"], "is no price"),
        (["--pue", "0.2"], "`pue`"),
    ],
)
def test_refusals_name_the_remedy(capsys, more, words):
    line = [*PLAN]
    if more[0] in line:
        line[line.index(more[0]) + 1] = more[1]
        more = []
    code, out, err = answer(capsys, *line, *more)
    assert (code, out) == (2, "")
    assert words in err and err.count("\n") == 1


def test_adapters_are_what_is_trained_and_saved(capsys):
    def fields(*more: str) -> dict:
        words = ["-m", "llama3-8b", "-c", "dgx-h100:1", "--tokens", "100M", "--batch", "64"]
        code, out, _ = answer(capsys, "train", *words, *more, "--json")
        assert code == 0
        return json.loads(out)

    saved = 14 * 32 * 16 * (4096 + 6144)
    plan = ("-s", "zero=1,mb=1")
    adapters = fields(*plan, "--lora", "16:qkv")
    assert adapters["reliability"]["checkpoint_bytes"] == saved
    assert adapters["seconds"] < fields(*plan)["seconds"]
    assert fields("--lora", "16:qkv")["reliability"]["checkpoint_bytes"] == saved
    phase = fields("--phase", "strategy=zero=1,mb=1", "--lora", "16:qkv")
    assert phase["reliability"]["checkpoint_bytes"] == saved
