"""Sizes: the fewest hosts in time, cheapest machine first, and where scaling stops paying."""

from __future__ import annotations

import json

import plancast as pc
import pytest
from plancast.cli.main import main
from plancast.training.sizing import next_above
from plancast.training.sizing_result import knee

MODEL = pc.Model.preset("llama3-8b", seq=4096)
ASKED = {"tokens": "100B", "batch": 128, "failures": None}


@pytest.fixture(scope="module")
def sizing() -> pc.Sizing:
    return pc.size(MODEL, ["dgx-h100", "dgx-a100-80g"], days=10, budget="1M", **ASKED)


def test_every_option_keeps_the_date_and_fewer_hosts_do_not(sizing):
    for option in sizing.options:
        assert option.run is not None
        assert option.run.days <= 10
        fewer = pc.Machine.preset(option.machine, hosts=option.hosts - 1)
        if option is sizing.best or option.hosts <= 4:  # below, every count was tried
            assert pc.train(MODEL, fewer, **ASKED).days > 10


def test_the_cheapest_is_the_best(sizing):
    costs = [option.run.usd for option in sizing.options]
    assert costs == sorted(costs)
    assert sizing.best is sizing.options[0]


def test_a_small_budget_is_kept_by_none(sizing):
    costs = [option.run.usd for option in sizing.options]
    poor = pc.size(MODEL, ["dgx-h100"], days=10, budget=min(costs) / 2, curve=False, **ASKED)
    assert poor.best is None
    assert poor.options[0].run is not None  # and what it would cost is told


def test_a_budget_alone_buys_the_most_hosts(sizing):
    cost = min(option.run.usd for option in sizing.options)
    rich = pc.size(MODEL, ["dgx-h100"], budget=1.1 * cost, curve=False, most_gpus=128, **ASKED)
    assert rich.best is not None
    assert rich.best.run.usd <= 1.1 * cost
    more = pc.Machine.preset("dgx-h100", hosts=next_above(rich.best.hosts))
    assert pc.train(MODEL, more, **ASKED).usd > 1.1 * cost or more.devices > 128


def test_a_budget_that_the_smallest_machine_breaks_may_pay_a_larger_one():
    model = pc.Model.preset("llama3-70b")
    asked = {"tokens": "100B", "batch": 256, "curve": False, "failures": None, "most_gpus": 256}
    two = pc.train(
        model, pc.Machine.preset("dgx-h100", hosts=2), tokens="100B", batch=256, failures=None
    )
    found = pc.size(model, ["dgx-h100"], budget=0.9 * two.usd, **asked)
    assert found.best is not None
    assert found.best.hosts > 2 and found.best.run.usd <= 0.9 * two.usd
    none = pc.size(model, ["dgx-h100"], budget=0.1 * two.usd, **asked)
    assert none.best is None
    assert none.options[0].run.usd < two.usd
    assert "costs $" in none.options[0].why_not


def test_of_a_budget_alone_fewer_hosts_are_no_advice():
    """They cost less and take longer, and nobody asked for the fewest."""
    model = pc.Model.preset("llama3-8b")
    rich = pc.size(
        model, ["dgx-b200"], tokens="1T", budget="150K", batch=512, curve=False, most_gpus=128
    )
    assert rich.best is not None and rich.best.hosts > 1
    assert rich.cheaper is None


def test_confidence_asks_for_more(sizing):
    first = next(option for option in sizing.options if option.machine == "dgx-h100")
    days = first.run.days * 1.001
    sure = pc.size(MODEL, ["dgx-h100"], days=days, confidence=0.95, curve=False, **ASKED)
    assert sure.options[0].hosts > first.hosts
    assert sure.probability(sure.options[0]) >= 0.95


def test_a_machine_without_a_price_is_behind_the_others():
    sizing = pc.size(
        MODEL, ["gb300-nvl72", "dgx-a100-80g"], days=10, curve=False, **ASKED
    )  # fmt: skip
    assert [option.machine for option in sizing.options] == ["dgx-a100-80g", "gb300-nvl72"]
    assert sizing.options[1].run.usd is None
    capped = pc.size(MODEL, ["gb300-nvl72"], days=10, budget="1M", curve=False, **ASKED)
    assert capped.best is None  # whether it keeps the budget is not known


def test_a_date_that_no_size_keeps_is_said_with_the_fastest():
    sizing = pc.size(MODEL, ["dgx-h100"], days="1h", curve=False, most_gpus=64, **ASKED)
    assert sizing.best is None
    assert "the fastest size tried, 8 hosts" in sizing.options[0].why_not


def test_one_host_is_one_host():
    sizing = pc.size(MODEL, ["dgx-h100"], days="1h", curve=False, most_gpus=8, **ASKED)
    assert "the fastest size tried, 1 host, needs" in sizing.options[0].why_not


def test_the_knee_of_amdahls_law():
    # rate = n / (1 + n/n0): a doubling gives 1.5 times as much at n = n0 hosts.
    for n0 in (4, 16, 64):
        rates = [(hosts, hosts / (1 + hosts / n0)) for hosts in (1, 2, 4, 8, 16, 32, 64, 128)]
        assert knee(rates) == n0
    assert knee([(hosts, float(hosts)) for hosts in (2, 4, 8)]) == 8
    assert knee([(4, 1.0), (8, 1.1)]) is None


def test_the_curve_has_falling_efficiency(sizing):
    shares = [point.units_per_s / point.hosts for point in sizing.curve]
    assert shares[0] == pytest.approx(max(shares), rel=0.05)
    assert sizing.curve[-1].run.days < sizing.curve[0].run.days


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({}, "date or a budget"),
        ({"days": 10, "machines": ["dgx-h100:4"]}, "Write `dgx-h100`"),
        ({"days": 10, "machines": ["dgx-h1000"]}, "dgx-h100"),
        ({"days": "soon"}, "write a time"),
        ({"days": 10, "budget": "much"}, "write a number"),
        ({"days": 10, "confidence": 1.0}, "between 0 and 1"),
        ({"days": 10, "tokens": None}, "how long the run is"),
    ],
)
def test_sizes_nobody_can_mean(how, words):
    asked = {**ASKED, **how}
    with pytest.raises(pc.InputError, match=words):
        pc.size(MODEL, asked.pop("machines", ["dgx-h100"]), curve=False, **asked)


def test_the_command_prints_a_table_of_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    line = ["size", "-m", "llama3-8b", "--seq", "4096", "--tokens", "100B", "--batch", "128"]
    line += ["--days", "10", "-c", "dgx-h100", "-c", "gb300-nvl72"]
    assert main([*line]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    for words in ("P(date)", "not ranked by cost", "doubling", "no price"):
        assert words in out
    assert main([*line, "--budget", "10", "--json", "--no-curve"]) == 3
    fields = json.loads(capsys.readouterr().out)
    assert fields["best"] is None and fields["budget_usd"] == 10
    assert main([*line, "--days", "10"]) == 2
