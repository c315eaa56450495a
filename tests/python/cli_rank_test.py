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


RANKED = ["rank", "-m", "llama3-8b", "-c", "dgx-h100:1", "--batch", "32", "--json"]


def test_the_best_are_the_same_with_and_without_bounds(capsys):
    assert main([*RANKED, "--top", "5"]) == 0
    best = json.loads(capsys.readouterr().out)
    assert main([*RANKED, "--top", "5", "--all"]) == 0
    every = json.loads(capsys.readouterr().out)
    assert best["plans"] == every["plans"]
    # Whether a plan fits that is none of the best by its bound is not looked at.
    assert best["excluded"].keys() == every["excluded"].keys()
    assert all(number <= every["excluded"][why] for why, number in best["excluded"].items())
    decided = best["evaluated"] + best["bounded"] + sum(best["excluded"].values())
    assert decided == every["evaluated"] + sum(every["excluded"].values())
    assert best["evaluated"] < every["evaluated"]
    assert every["bounded"] == 0


def test_json_has_all_plans_unless_some_are_asked_for(capsys):
    assert main(RANKED) == 0
    every = json.loads(capsys.readouterr().out)
    assert len(every["plans"]) == every["evaluated"] > 10


def test_the_table_says_how_plans_were_decided_on(capsys):
    assert main(RANKED[:-1]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "plans simulated, " in said
    assert " more cannot be among the best (bounds), in " in said


def test_where_keeps_plans_of_which_it_holds(capsys):
    condition = "tp<=2 and mb*seq<=16384 and recompute!='full'"
    assert main([*RANKED, "--where", condition]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["plans"]
    for plan in answer["plans"]:
        said = dict(part.partition("=")[::2] for part in plan["strategy"].split(","))
        assert int(said.get("tp", 1)) <= 2 and int(said["mb"]) <= 2
        assert said["recompute"] != "full"
    assert answer["excluded"][f"not where {condition}"] > 0


def test_a_condition_that_is_none_is_answered(capsys):
    assert main([*RANKED, "--where", "tp<=2 and mbs<2"]) == 2
    assert "there is no `mbs`" in capsys.readouterr().err
