"""`plancast plan`: a tree on standard output that other commands read."""

from __future__ import annotations

import json
from pathlib import Path

import plancast as pc
import pytest
from plancast.cli.main import main

ALEXNET = ["-m", "alexnet", "-c", "dgx-a100-80g:1x4", "--batch", "256"]
ALEXNET += ["--profile", "nvidia-pytorch"]


def test_the_tree_is_printed_and_can_be_predicted(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for method, more in (
        ("intra-op", ["--mesh", "4"]),
        ("bisection", []),
        ("inter-op", ["--samples", "64,256"]),
        ("auto-config", ["--sizes", "64"]),
        ("local-search", ["--start", "dp=4,mb=64", "--forecasts", "10"]),
        ("grid", ["--space", "mb=64"]),
    ):
        out = tmp_path / f"{method}.yaml"
        line = ["plan", *ALEXNET, "--method", method, *more, "--out", str(out)]
        assert main(line) == 0, method
        text = capfd.readouterr().out
        # With files of descriptors, as HiGHS writes to them: nothing but comments and YAML.
        assert text.startswith(f"# method {method}")
        tree = pc.Strategy.from_yaml(text)
        assert tree == pc.Strategy.from_file(out)
        assert main(["predict", *ALEXNET, "-s", str(out), "--json"]) in (0, 2)
        answer = capfd.readouterr()
        if method != "auto-config":
            assert json.loads(answer.out)["fits"], answer.err


def test_json_has_the_plan_and_its_forecast(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *ALEXNET, "--method", "bisection", "--json"]) == 0
    answer = json.loads(capfd.readouterr().out)
    assert answer["method"] == "bisection"
    assert answer["unit"] == "bytes"
    assert answer["forecast"]["fits"]
    assert pc.Strategy.from_dict(answer["strategy"])


def test_without_a_method_the_question_is_answered(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *ALEXNET]) == 0
    answer = capfd.readouterr()
    assert answer.out.startswith("alexnet on dgx-a100-80g (4 GPUs)")
    assert "confidence" in answer.out


def test_a_plan_that_does_not_fit_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    line = ["-m", "llama3-8b", "-c", "dgx-h100:1", "--batch", "8", "--method", "bisection"]
    assert main(["plan", *line]) == 3
    assert "knows no bound on memory" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--method", "intra"], "no method `intra`. Did you mean `intra-op`?"),
        (["--method", "grid", "--mesh", "4"], "method `grid` takes no --mesh; `intra-op` does."),
        (["--method", "intra-op", "--mesh", "4y"], "`4y` is no mesh; write 8 or 2x4"),
        (["--method", "intra-op", "--mesh", "3"], "give axes that multiply to that"),
        (["--method", "intra-op", "--zero", "7"], "`zero` is 7"),
        (["--method", "auto-config", "--sizes", "a"], "`a` are no sizes"),
        (["--out", "plan.txt"], ".yaml"),
    ],
)
def test_errors_are_one_line(
    words: list[str], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *ALEXNET, *words]) == 2
    answer = capfd.readouterr()
    assert answer.out == ""
    assert message in answer.err
    assert answer.err.count("\n") == 1


def test_what_layers_keep_is_a_tree_that_can_be_predicted(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    job = ["-m", "llama3-8b", "-c", "dgx-h100:1", "--batch", "64"]
    start = ["--start", "dp=2,tp=2,sp,pp=2,zero=1,mb=2", "--memory", "45"]
    out = tmp_path / "kept.yaml"
    assert main(["plan", *job, "--method", "memory", *start, "--out", str(out)]) == 0
    text = capfd.readouterr().out
    assert text.startswith("# method memory")
    assert main(["predict", *job, "-s", str(out), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["peak_memory_bytes"] <= 45 * 2**30
    assert main(["plan", *job, "--method", "memory", "--memory", "much"]) == 2
    assert "`much` is no number of GiB" in capfd.readouterr().err
