"""DDP on boxes with PCIe: how many cards are worth it."""

from __future__ import annotations

import plancast as pc
import pytest
from plancast import _core
from plancast.cli.main import main
from plancast.gradient_traffic.traffic import GradientTraffic

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


# 440 MB in equal tensors, buckets of 25 MiB, 100 us a call, passes of 55 and 110 ms.
TENSORS = 134
BERT = [("layer", 55 * 10**9 // TENSORS, 110 * 10**9 // TENSORS, 0, 440_000_000 // TENSORS)]


def of_a_line(cards, gb_per_s, passes=1):
    """Efficiency of cards on a link of this bus bandwidth, to three digits."""
    traffic = GradientTraffic(bucket=25 << 20, bus_gb_per_s=gb_per_s, call_us=100.0)
    run = _core.run_gradients(
        BERT * TENSORS, switched(cards)._core, host_ps=0, passes=passes, **traffic.core()
    )
    return round(run.compute_ps / run.iteration_ps, 3)


def test_t4_3_on_the_lines_that_nccl_plans_with():
    """All nine digits of the row: a switch at 10 GB/s, a host bridge at 6, and G = 4."""
    assert [of_a_line(cards, 10.0) for cards in CARDS] == [0.988, 0.982, 0.979]
    assert [of_a_line(cards, 6.0) for cards in CARDS] == [0.980, 0.952, 0.861]
    assert of_a_line(8, 6.0, passes=4) == 0.961


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


@pytest.mark.parametrize("preset", ["t4-pcie", "a10-pcie", "rtx4090-pcie", "l40s-pcie"])
def test_it_is_the_bridge_that_stops_cards_and_not_how_many_they_are(model, preset):
    """The same cards behind a switch, and in two groups with 6 GB/s between them."""
    bridge = "topology: host-bridge\ngpus_per_switch: 4\nhost_bridge_gb_per_s: 6"
    one = f"preset: {preset}\nhosts: 1\ngpus_per_host: {{cards}}\n"
    flat, parted = (
        [efficiency(model, pc.Machine.from_yaml(text.format(cards=n))) for n in CARDS]
        for text in (one, one + bridge)
    )
    assert min(flat) > 0.98 and flat[0] - flat[2] < 0.01
    # Below one switch nobody meets the bridge.
    assert parted[:2] == pytest.approx(flat[:2], abs=1e-3)
    assert flat[2] - parted[2] > 5 * (flat[0] - flat[1])


@pytest.mark.parametrize("cards", CARDS)
def test_the_best_bucket_is_computed(model, cards):
    """`Enlarge the bucket` is right only where calls cost much."""
    best = []
    for call_us in (0.0, 1000.0, 5000.0):
        found = pc.gradients(
            model, switched(cards), "mb=32", dtype="fp16", call_us=call_us, tune="bucket",
            bucket_view=True,
        )  # fmt: skip
        assert found.tuning is not None
        best.append(found.traffic.bucket)
        rows = dict(found.tuning.along("bucket"))
        assert rows[max(rows)] > found.iteration_time  # all at once
        if call_us > 0:
            assert rows[0] > found.iteration_time  # each tensor by itself
    assert best[0] < best[1] < best[2]


def test_advice_is_answered_for_a_machine(model):
    """Stop at four: on the bridge that was measured, not behind a switch."""
    bridge = pc.gradient_advice(model, pc.Machine.preset("l40s-host-bridge"), "mb=32", dtype="fp16")
    switch = pc.gradient_advice(model, pc.Machine.preset("l40s-pcie"), "mb=32", dtype="fp16")
    assert bridge.worth == 4
    assert switch.worth == switch.cards[-1][0] == 8
    for found in (bridge, switch):
        now, larger, best, accumulated, half, view = found.rows
        assert now.speed == 1.0
        assert best.speed >= max(now.speed, larger.speed) - 1e-12
        assert accumulated.forecast.efficiency > now.forecast.efficiency
        assert view.speed >= 1.0
        assert half.forecast.gradient_bytes * 2 == now.forecast.gradient_bytes
    assert bridge.rows[4].speed > 1.2 > switch.rows[4].speed
    told = bridge.to_dict()
    assert told["cards_worth"] == 4
    assert [row["cards"] for row in told["cards"]] == [2, 4, 8]


def test_the_command_that_advises(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    line = ["gradients", "-m", "resnet50", "-c", "l40s-host-bridge:1", "-s", "mb=32"]
    line += ["--dtype", "fp16", "--advice"]
    assert main(line) == 0
    out = capsys.readouterr().out
    assert "more than 4 are not worth it" in out
    assert max(map(len, out.splitlines())) <= 80
    assert main([*line, "--tune", "bucket"]) == 2
    assert "stands alone" in capsys.readouterr().err


@pytest.mark.parametrize("bus", [10.0, 6.0])
def test_what_shows_on_one_link_is_the_last_bucket(model, bus):
    """T4-3 in closed form: 1/efficiency - 1 = 2 (n - 1) / n * bucket / (bus * alone)."""
    shares = []
    for cards in CARDS:
        found = pc.gradients(
            model,
            switched(cards),
            "mb=32",
            dtype="fp16",
            bus_gb_per_s=bus,
            call_us=0,
            bucket_view=True,
        )
        last = max((s for s in found.spans() if s.what == "reduce"), key=lambda span: span.end_s)
        share = last.end_s - last.start_s
        assert found.exposed_time == pytest.approx(share, rel=1e-9)
        assert 1 / found.efficiency - 1 == pytest.approx(share / found.alone_time, rel=1e-9)
        shares.append(share * bus / (2 * (cards - 1) / cards))
    # The same bucket on two, four and eight cards.
    assert shares == pytest.approx([shares[0]] * 3, rel=1e-6)
    assert shares[0] * 1e9 == pytest.approx(round(shares[0] * 1e9), abs=1e-2)  # whole bytes
