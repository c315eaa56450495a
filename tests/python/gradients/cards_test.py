"""DDP on boxes with PCIe: how many cards are worth it."""

from __future__ import annotations

import plancast as pc
import pytest

SWITCH = "preset: t4-pcie\nhosts: 1\ngpus_per_host: {cards}"
CARDS = (2, 4, 8)


@pytest.fixture(scope="module")
def model():
    return pc.Model.preset("resnet50")


def efficiency(model, machine, plan="mb=32"):
    return pc.gradients(model, machine, plan, dtype="fp16").efficiency


def switched(cards):
    return pc.Machine.from_yaml(SWITCH.format(cards=cards))


def bridged(cards, preset="t4-host-bridge"):
    return pc.Machine.open(f"{preset}:1x{cards}")


def test_behind_one_switch_cards_cost_little(model):
    two, four, eight = (efficiency(model, switched(cards)) for cards in CARDS)
    assert two > four > eight > 0.97
    assert two - eight < 0.01


def test_a_host_bridge_stops_at_four(model):
    """Of T4s in two groups of four, eight cross the bridge; nothing else differs."""
    two, four, eight = (efficiency(model, bridged(cards)) for cards in CARDS)
    assert two == pytest.approx(efficiency(model, switched(2)), rel=1e-3)
    assert four == pytest.approx(efficiency(model, switched(4)), rel=1e-3)
    assert four - eight > 5 * (two - four)
    # Four micro-batches for each exchange bring it back.
    restored = efficiency(model, bridged(8), "mb=32,accum=4")
    assert restored > 0.985 > eight


def test_faster_cards_stop_earlier(model):
    """L40S compute faster than T4s, and their bridge is as slow as was measured."""
    two, four, eight = (efficiency(model, bridged(c, "l40s-host-bridge")) for c in CARDS)
    flat = [efficiency(model, pc.Machine.open(f"l40s-pcie:1x{cards}")) for cards in CARDS]
    assert min(flat) > 0.98
    assert two > 0.98 and four > 0.95
    assert eight < 0.6
    again = efficiency(model, bridged(8, "l40s-host-bridge"), "mb=32,accum=4")
    assert again > eight + 0.15


@pytest.mark.parametrize("cards", CARDS)
def test_the_best_bucket_is_computed(model, cards):
    """`Enlarge the bucket` is right only where calls cost much."""
    best = []
    for call_us in (0.0, 1000.0, 5000.0):
        found = pc.gradients(
            model, switched(cards), "mb=32", dtype="fp16", call_us=call_us, tune="bucket"
        )
        assert found.tuning is not None
        best.append(found.traffic.bucket)
        rows = dict(found.tuning.along("bucket"))
        assert rows[max(rows)] > found.iteration_time  # all at once
        if call_us > 0:
            assert rows[0] > found.iteration_time  # each tensor by itself
    assert best[0] < best[1] < best[2]


@pytest.mark.parametrize("bus", [10.0, 6.0])
def test_what_shows_on_one_link_is_the_last_bucket(model, bus):
    """T4-3 in closed form: 1/efficiency - 1 = 2 (n - 1) / n * bucket / (bus * alone)."""
    shares = []
    for cards in CARDS:
        found = pc.gradients(
            model, switched(cards), "mb=32", dtype="fp16", bus_gb_per_s=bus, call_us=0
        )
        last = max((s for s in found.spans() if s.what == "reduce"), key=lambda span: span.end_s)
        share = last.end_s - last.start_s
        assert found.exposed_time == pytest.approx(share, rel=1e-9)
        assert 1 / found.efficiency - 1 == pytest.approx(share / found.alone_time, rel=1e-9)
        shares.append(share * bus / (2 * (cards - 1) / cards))
    # The same bucket on two, four and eight cards.
    assert shares == pytest.approx([shares[0]] * 3, rel=1e-6)
    assert shares[0] * 1e9 == pytest.approx(round(shares[0] * 1e9), abs=1e-2)  # whole bytes
