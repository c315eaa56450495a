"""Prices and powers have sources, and nothing is priced in silence."""

from __future__ import annotations

import re

import plancast as pc
import pytest
from plancast.training.prices import KINDS, draw, on_record, quotes, rent, rent_if_known


def test_every_quote_says_where_from_and_how_it_is_known():
    presets, gpus = pc.Machine.presets(), set()
    for preset in presets:
        gpus.add(pc.Machine.preset(preset).gpu)
    for quote in quotes():
        assert quote.kind in KINDS
        assert quote.of in gpus or quote.of in presets, quote
        assert quote.source and quote.usd > 0
        assert re.fullmatch(r"20\d\d(-(0[1-9]|1[0-2]|Q[1-4]))?", quote.date), quote
        assert quote.known in ("read", "recalled, not verified")
    keys = [(quote.of, quote.kind) for quote in quotes()]
    assert len(keys) == len(set(keys))


def test_prices_of_gpus_are_those_of_the_catalogue():
    # Else `rank --objective cost` and `train` would tell different prices.
    known = {quote.of: quote.usd for quote in quotes() if quote.kind == "on-demand"}
    for preset in pc.Machine.presets():
        fields = pc.Machine.preset(preset).to_dict()["gpu"]
        if fields["usd_per_hour"]:
            assert known.get(fields["name"], fields["usd_per_hour"]) == fields["usd_per_hour"]


def test_a_presets_own_price_goes_before_its_gpus():
    assert rent(pc.Machine.preset("p5-h100")).usd_per_hour == pytest.approx(8 * 6.88)
    assert rent(pc.Machine.preset("dgx-h100")).usd_per_hour == pytest.approx(8 * 3.5)


def test_the_price_in_a_machine_file_goes_first():
    machine = pc.Machine.from_yaml("preset: p5-h100\nhosts: 2\ngpu: {usd_per_hour: 2}")
    assert rent(machine).usd_per_hour == pytest.approx(32.0)


def test_mixed_machines_add_up():
    machine = pc.Machine.preset("dgx-h100:2+dgx-a100-80g:1")
    assert rent(machine).usd_per_hour == pytest.approx(16 * 3.5 + 8 * 1.9)
    assert len(rent(machine).quotes) == 2


@pytest.mark.parametrize(
    ("machine", "plan"),
    [("p5-h100:2", "mb=4,zero=1"), ("t4-pcie:1", "mb=1"), ("dgx-h100:1+dgx-b200:1", "mb=4,zero=1")],
)
def test_a_step_costs_what_a_run_pays(machine, plan):
    model, where = pc.Model.preset("gpt2"), pc.Machine.open(machine)
    batch = 16 * where.devices
    step = pc.predict(model, where, plan, batch=batch).to_dict()["cost"]["usd_per_iteration"]
    run = pc.train(model, where, plan, tokens="1B", batch=batch, failures=None)
    assert run.usd == pytest.approx(step * run.steps)


def test_a_step_without_a_price_has_no_cost():
    forecast = pc.predict(pc.Model.preset("gpt2"), pc.Machine.preset("gb300-nvl72"), "mb=4")
    assert forecast.to_dict()["cost"]["usd_per_iteration"] is None


def test_plans_are_ranked_by_any_price_on_record():
    model, where = pc.Model.preset("gpt2"), pc.Machine.preset("t4-pcie")
    asked = {"batch": 16, "space": "tp=1|2,pp=1|2,mb=1"}
    by_time = pc.rank(model, where, **asked)
    told: list[float] = []
    by_cost = pc.rank(
        model, where, objective="cost", found=lambda plan, value, left: told.append(value), **asked
    )
    assert [plan.strategy for plan in by_cost] == [plan.strategy for plan in by_time]
    assert len(by_cost) > 1
    for value in told:
        assert value < 0.01  # dollars, not seconds
    with pytest.raises(pc.InputError, match="price of a GB300 is not known"):
        pc.rank(model, pc.Machine.preset("gb300-nvl72"), objective="cost", batch=16)


def test_no_price_is_said_with_what_there_is():
    machine = pc.Machine.preset("gb200-nvl72")
    with pytest.raises(
        pc.InputError, match=r"no spot price of gb200-nvl72.*on-demand \$4.54.*--price"
    ):
        rent(machine, "spot")
    why = rent_if_known(machine, "spot")
    assert isinstance(why, str) and "no spot price" in why


def test_what_is_on_record_of_a_machine():
    p5 = on_record(pc.Machine.preset("p5-h100"))
    # Its own prices, and of the kinds that it has none of those of its GPU.
    assert [(quote.of, quote.kind) for quote in p5] == [
        ("p5-h100", "on-demand"), ("p5-h100", "reserved"), ("H100-SXM-80GB", "spot"),
    ]  # fmt: skip
    mixed = on_record(pc.Machine.preset("dgx-h100:2+dgx-b200:1"))
    assert len(mixed) == 6
    for kind in KINDS:
        total = rent(pc.Machine.preset("dgx-h100:2+dgx-b200:1"), kind).usd_per_hour
        h100, b200 = (quote.usd for quote in mixed if quote.kind == kind)
        assert total == pytest.approx(16 * h100 + 8 * b200)
    own = pc.Machine.from_yaml("preset: t4-pcie\ngpu: {usd_per_hour: 2}")
    assert [str(quote) for quote in on_record(own)] == [
        "$2 per GPU-hour on-demand (the machine's `usd_per_hour`)"
    ]
    assert on_record(pc.Machine.preset("gb300-nvl72")) == []


def test_hosts_draw_their_rated_power():
    assert draw(pc.Machine.preset("dgx-h100:10")).kilowatts == pytest.approx(102.0)
    assert draw(pc.Machine.preset("dgx-a100-80g:2")).kilowatts == pytest.approx(13.0, rel=0.001)


def test_a_gpu_of_unknown_power_is_named():
    machine = pc.Machine.from_yaml(
        "preset: dgx-h100\ngpu: {name: new, memory_gb: 80, memory_gb_per_s: 3000, "
        "bf16_tflops: 900, tdp_watts: 0}"
    )
    with pytest.raises(pc.InputError, match="power of a new is not known"):
        draw(machine)
    assert draw(machine, watts=900.0).kilowatts == pytest.approx(7.2)
