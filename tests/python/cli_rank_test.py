"""What `plancast rank` says before and instead of its table."""

from __future__ import annotations

import json

from plancast.cli import rank
from plancast.cli.main import main

JOB = ["rank", "-m", "gpt3-175b", "-c", "dgx-a100-80g:1", "--batch", "8"]


def test_where_nothing_fits_the_nearest_plan_is_named(capsys):
    assert main([*JOB, "--space", "tp=8,pp=1,mb=1,recompute=none|full"]) == 3
    shown = " ".join(capsys.readouterr().out.split())
    assert "no plan of the space fits" in shown
    assert "nearest: dp=1,tp=8,sp,pp=1,mb=1,recompute=full" in shown
    assert "the plan needs" in shown
    assert "take more hosts" not in shown


def test_the_nearest_plan_is_in_json(capsys):
    assert main([*JOB, "--space", "tp=8,pp=1,mb=1,recompute=full", "--json"]) == 3
    answer = json.loads(capsys.readouterr().out)
    assert answer["plans"] == []
    nearest = answer["nearest"]
    assert nearest["strategy"] == "dp=1,tp=8,sp,pp=1,mb=1,recompute=full"
    assert nearest["peak_memory_bytes"] > nearest["memory_capacity_bytes"]
    assert nearest["advice"].startswith("the plan needs")


def test_where_plans_fit_there_is_no_nearest(capsys):
    fits = ["rank", "-m", "gpt2", "-c", "dgx-a100-80g:1", "--batch", "8"]
    assert main([*fits, "--space", "tp=1,pp=1,mb=1,recompute=none", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nearest"] is None


def test_only_long_searches_are_announced(capsys):
    rank._announce(400, 9.0)
    assert capsys.readouterr().err == ""
    rank._announce(41_472, 1234.0)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "41,472 plans take about 21 minutes; a narrower --space takes less\n"
    rank._announce(400, 31.0)
    assert "about 31 s" in capsys.readouterr().err


def test_a_batch_in_tokens_is_asked_about(capsys):
    tokens = ["rank", "-m", "llama3-8b", "-c", "dgx-h100:2", "--seq", "4096"]
    assert main([*tokens, "--batch", "4194304"]) == 2
    assert "if 4194304 tokens were meant, it is 1024" in capsys.readouterr().err
