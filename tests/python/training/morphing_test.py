"""Hosts that come and go: traces of two events in closed form, and what refuses a trace."""

from __future__ import annotations

import json
import random

import plancast as pc
import pytest
from plancast.cli.main import main
from plancast.training.morphing import Gear, morph
from plancast.training.prices import rent

# Eight hosts do 8 samples a second, six do 6, and so on.
STALL, LOAD, RESTART, INTERVAL = 10.0, 20.0, 100.0, 190.0


def gear(hosts: int) -> Gear | None:
    if hosts < 2:
        return None
    return Gear(hosts, float(hosts), stall_s=STALL, lag_s=0.0, load_s=LOAD)


def trace(*rows: tuple[float, int]) -> pc.Availability:
    return pc.Availability(tuple(float(t) for t, _ in rows), tuple(n for _, n in rows))


def run(events: pc.Availability, samples: float, **how: float):
    return morph(events, gear, samples, interval=INTERVAL, restart=RESTART, **how)


TWO = trace((0, 8), (5_000, 6), (9_000, 8))


def two_events(samples: float) -> tuple[float, float]:
    """VARUNA-3: wall time and lost seconds of two events, by hand.

    A loss at 5,000 s: of 25 cycles of 190 s training and 10 s saving nothing is left over, so
    all 25 count. A restart, then six hosts until 9,000 s: 3,880 s are 19 cycles and 80 s, which
    are saved, since hosts come: 10 s. A restart, then eight hosts to the end.
    """
    first = 25 * 190 * 8.0
    second = (19 * 190 + 80) * 6.0
    begin = 9_000 + STALL + RESTART + LOAD
    left = (samples - first - second) / 8.0
    saves = int(left / 190 - 1e-9)
    return begin + left + saves * STALL, 0.0


def test_two_events_take_what_the_closed_form_says():
    for samples in (80_000.0, 123_456.0, 400_000.0):
        found = run(TWO, samples)
        wall, _ = two_events(samples)
        assert found.wall_s == pytest.approx(wall, rel=1e-12)
        assert found.restarts == 2
        paid = 8 * 5_000 + 6 * 4_000 + 8 * (wall - 9_000)
        assert TWO.host_seconds(wall) == pytest.approx(paid)


def test_work_since_the_last_saved_state_is_lost():
    # 5,050 s: 25 cycles and 50 s, which are done twice.
    found = run(trace((0, 8), (5_050, 6)), 100_000.0)
    assert found.lost_samples == pytest.approx(50 * 8)
    assert found.repeated_s == pytest.approx(50)
    left = (100_000 - 25 * 190 * 8) / 6
    wall = 5_050 + RESTART + LOAD + left + int(left / 190) * STALL
    assert found.wall_s == pytest.approx(wall)


def test_a_loss_in_the_middle_of_saving_loses_the_cycle():
    found = run(trace((0, 8), (195, 6)), 20_000.0)
    assert found.lost_samples == pytest.approx(190 * 8)


def test_a_notice_that_is_long_enough_saves_the_work():
    events = trace((0, 8), (5_050, 6))
    found = run(events, 100_000.0, notice=STALL)
    assert found.lost_samples == 0
    # Ten seconds before the loss it saves instead of training.
    left = (100_000 - (25 * 190 + 40) * 8) / 6
    wall = 5_050 + RESTART + LOAD + left + int(left / 190) * STALL
    assert found.wall_s == pytest.approx(wall)
    assert run(events, 100_000.0, notice=STALL - 1).lost_samples == pytest.approx(50 * 8)


def test_asynchronous_states_count_once_they_are_written():
    def behind(hosts: int) -> Gear:
        return Gear(hosts, float(hosts), stall_s=10.0, lag_s=60.0, load_s=0.0)

    # The second state, at 400 s, is there at 460 s; the loss is at 450 s.
    found = morph(trace((0, 8), (450, 8 - 1)), behind, 10_000.0, interval=190.0, restart=0.0)
    assert found.lost_samples == pytest.approx((190 + 50) * 8)


def test_hosts_that_the_job_does_not_use_may_go():
    def at_most_four(hosts: int) -> Gear:
        return Gear(min(hosts, 4), float(min(hosts, 4)))

    found = morph(
        trace((0, 8), (100, 5), (200, 8)), at_most_four, 4_000.0, interval=1e9, restart=50.0
    )
    assert (found.wall_s, found.restarts) == (1_000.0, 0)


def test_a_run_that_is_shorter_than_a_save():
    short = spot(trace((0, 2), (2_000, 1)), tokens=100)
    assert short.outcome.restarts == 0
    assert short.outcome.wall_s == pytest.approx(100 / 2048 / short.reference.rate)


def test_it_waits_where_nothing_fits():
    found = run(trace((0, 8), (1_000, 1), (5_000, 8)), 20_000.0)
    assert found.waiting_s == pytest.approx(4_000)
    with pytest.raises(pc.InputError, match="the trace ends with 1 host,"):
        run(trace((0, 8), (1_000, 1)), 20_000.0)


def test_seconds_sum_to_the_wall_time():
    rows = [(0, 8), (700, 5), (1_000, 7), (1_050, 3), (2_345, 1), (4_000, 6), (9_999, 8)]
    found = run(trace(*rows), 60_000.0)
    spent = (
        found.training_s + found.saving_s + found.repeated_s + found.restarting_s + found.waiting_s
    )
    assert spent == pytest.approx(found.wall_s, rel=1e-9)


def test_nothing_happens_and_it_takes_the_work_and_the_saves():
    found = run(trace((0, 8)), 8 * 1_000.0)
    assert found.wall_s == pytest.approx(1_000 + 5 * STALL)


MODEL = pc.Model.preset("llama3-8b", seq=2048)
MACHINE = pc.Machine.preset("dgx-h100")


def spot(events: pc.Availability, **how):
    asked = {"tokens": "2B", "batch": 64, **how}
    return pc.spot(MODEL, MACHINE, events, **asked)


@pytest.fixture(scope="module")
def result() -> pc.SpotRun:
    return spot(trace((0, 2), (2_000, 1), (6_000, 2)))


def test_dollars_a_sample_are_hosts_times_price(result):
    paid = result.trace.host_seconds(result.outcome.wall_s) / 3600
    assert result.usd == pytest.approx(paid * rent(MACHINE, "spot").usd_per_hour / MACHINE.hosts)
    assert result.usd_per_sample == pytest.approx(result.usd / (2e9 / 2048))
    own = result.reference
    assert result.dedicated_usd_per_sample == pytest.approx(own.hosts * 8 * 3.5 / 3600 / own.rate)


def test_goodput_is_that_of_the_simulated_run(result):
    work = 2e9 / 2048
    alone = work / result.reference.rate * result.reference.hosts
    assert result.goodput == pytest.approx(alone / result.paid_host_s)
    assert 0 < result.goodput < 1


def test_two_events_cost_what_the_closed_form_says():
    """VARUNA-3 of a whole run: goodput and dollars a sample, by hand from its two plans."""
    every, restart, first, second = 400.0, 300.0, 2_000.0, 5_900.0
    run = spot(
        trace((0, 2), (first, 1), (second, 2)), restart=restart, checkpoints=f"every={every}s",
    )  # fmt: skip
    one, two = run.gears
    # Two hosts lose what they did since their last state; one host saves before it leaves.
    kept = int(first / (every + two.stall_s)) * every * two.rate
    begun = first + restart + one.load_s
    cycles, rest = divmod(second - begun, every + one.stall_s)
    assert rest < every
    kept += (cycles * every + rest) * one.rate
    samples = 2e9 / 2048
    left = (samples - kept) / two.rate
    wall = second + one.stall_s + restart + two.load_s + left + int(left / every) * two.stall_s
    assert run.outcome.wall_s == pytest.approx(wall, rel=1e-9)
    host_s = 2 * first + 1 * (second - first) + 2 * (wall - second)
    assert run.goodput == pytest.approx(samples / host_s / (two.rate / 2), rel=1e-9)
    price = rent(MACHINE, "spot").usd_per_hour / MACHINE.hosts / 3600
    assert run.usd_per_sample == pytest.approx(price * host_s / samples, rel=1e-9)


@pytest.mark.parametrize(("factor", "wins"), [(0.999, True), (1.001, False)])
def test_spot_wins_exactly_below_its_goodput(result, factor: float, wins: bool):
    dear = result.goodput * 3.5 * factor
    again = spot(result.trace, price=dear)
    assert again.goodput == pytest.approx(result.goodput)
    assert again.wins is wins


@pytest.mark.parametrize("goodput", [0.199, 0.201])
def test_at_a_fifth_of_the_price_spot_wins_where_goodput_is_over_a_fifth(goodput: float):
    # VARUNA-3. Hosts go for a moment after 100 s, and are paid for while the job starts again.
    def four(hosts: int) -> Gear | None:
        return Gear(4, 4.0) if hosts == 4 else None

    events, useful = trace((0, 4), (100, 3), (100.001, 4)), 1_000.0
    restart = useful / goodput - useful - 0.001
    found = morph(events, four, 4 * useful, interval=0.5, restart=restart)
    assert found.wall_s == pytest.approx(useful / goodput)
    paid = events.host_seconds(found.wall_s)
    assert found.samples / paid == pytest.approx(goodput, rel=1e-5)
    spot_price, dedicated_price = 0.2, 1.0
    cheaper = spot_price * paid / found.samples < dedicated_price * 4 / 4.0
    assert cheaper is (goodput > 0.2)


def test_plans_fit_and_their_state_is_moved(result):
    assert [g.hosts for g in result.gears] == [1, 2]
    for g in result.gears:
        plan = pc.predict(MODEL, pc.Machine.preset("dgx-h100", hosts=g.hosts), g.strategy, batch=64)
        assert plan.fits
        assert g.rate == pytest.approx(plan.samples_per_s)
    assert result.moved_bytes == result.outcome.restarts * 14 * MODEL.parameters


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("time_s,hosts\n0,8\n10,4\n5,8\n", "trace:4: time goes back, from 10 s to 5 s"),
        ("time_s,hosts\n0,8\n10,-4\n", "trace:3: -4 hosts; a count is never negative"),
        ("time_s,change\n0,8\n\n# gone\n10,-9\n", "trace:5: -1 hosts are left"),
        ("time_s,hosts\n0,8\n10,x\n", "trace:3: `hosts` is `x`"),
        ("time_s,hosts\n0,8\nnan,4\n", "trace:3: `time_s` is nan"),
        ("time_s,hosts\n5,8\n", "trace:2: the first row is at 5"),
        ("time_s,hosts\n0,8\n0,4\n", "trace:3: the time 0 s is there twice"),
        ("time_s,hosts\n0,8,9\n", "trace:2 has 3 columns"),
        ("time,hosts\n0,8\n", "trace:1 has the columns"),
        ("time_s,hosts\n", "has no rows"),
        ("", "is empty"),
    ],
)
def test_bad_traces_are_refused_with_their_line(text: str, words: str):
    with pytest.raises(pc.InputError, match=words):
        pc.Availability.parse(text)


def test_changes_add_up_and_units_count():
    changes = pc.Availability.parse("time_min,change\n0,8\n2,-3\n5,+1\n")
    assert changes == pc.Availability((0.0, 120.0, 300.0), (8, 5, 6))


def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / "trace.csv"
    path.write_text("time_h,hosts\n0,2\n1,1\n2,2\n")
    line = ["spot", "-m", "llama3-8b", "--seq", "2048", "-c", "dgx-h100", "--batch", "64"]
    line += ["--tokens", "2B", "--availability", str(path)]
    assert main([*line, "--notice", "2min"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "goodput" in out and "cheaper" in out
    assert main([*line, "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["wins"] is True and fields["restarts"] == 2
    path.write_text("time_h,hosts\n0,2\n3,1\n1,2\n")
    assert main(line) == 2
    assert "trace.csv:4: time goes back" in capsys.readouterr().err


def test_small_states_and_large_rates_are_readable(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / "trace.csv"
    path.write_text("time_h,hosts\n0,16\n1,15\n")
    line = ["spot", "-m", "resnet50", "-c", "t4-pcie", "--availability", str(path)]
    assert main([*line, "--samples", "100M", "--batch", "2048", "--dtype", "fp16"]) == 0
    out = capsys.readouterr().out
    assert "1 restart," in out
    assert " 0 GB" not in out and " 0 TB" not in out and "e+" not in out


def second_by_second(
    rows, samples: int, interval: int, stall: int, restart: int
) -> tuple[int, int]:
    """The same run in steps of a second, with whole numbers everywhere: wall time, restarts."""
    hosts_at = dict(rows)
    hosts = now = done = 0
    restarts = -1
    job, state, left, position, cycle, safe = 0, "stopped", 0, 0, 0, 0
    while True:
        hosts = hosts_at.get(now, hosts)
        if state != "stopped" and hosts < job:  # what was not saved is gone
            done += safe
            state, position, safe = "stopped", 0, 0
        if state == "training" and hosts > job:
            state, left = "leaving", stall if position > safe else 0
        if state == "leaving" and left == 0:
            done += position
            state, position, safe = "stopped", 0, 0
        if state == "stopped" and hosts >= 2:
            restarts += 1
            job, state, left = hosts, "starting", restart if restarts else 0
            cycle = 0
        if state == "starting" and left == 0:
            state = "training"
            if hosts > job:
                continue  # hosts came in the meantime
        if state == "training" and cycle == interval:
            state, left = "saving", stall
        if state == "training":
            position, cycle = position + job, cycle + 1
            if done + position >= samples:
                return now + 1, restarts
        elif state != "stopped":
            left -= 1
            if state == "saving" and left == 0:
                state, cycle, safe = "training", 0, position
        now += 1


@pytest.mark.parametrize("seed", range(60))
def test_random_traces_agree_with_a_run_in_steps_of_a_second(seed: int):
    chance = random.Random(seed)
    times = [0, *sorted(chance.sample(range(1, 2_000), chance.randint(1, 9)))]
    rows = [(time, chance.choice((1, 2, 3, 4, 6, 8))) for time in times]
    rows = [(rows[0][0], 8), *rows[1:], (2_001, 8)]
    interval, stall, restart = chance.randint(20, 90), chance.randint(1, 9), chance.randint(5, 60)

    def plain(hosts: int) -> Gear | None:
        return Gear(hosts, float(hosts), stall_s=stall) if hosts >= 2 else None

    # A whole number of seconds on any count of hosts.
    samples = 24 * chance.randint(300, 700)
    wall, restarts = second_by_second(rows, samples, interval, stall, restart)
    found = morph(trace(*rows), plain, samples, interval=interval, restart=restart)
    # The last step may be done within its second.
    assert wall - 1 < found.wall_s <= wall + 1e-6
    assert found.restarts == restarts


def test_the_interval_is_of_runs_as_slow_and_as_fast_as_forecasts_may_be_wrong():
    """Without events it is that of the forecast; with them time at restarts does not scale."""
    quiet = spot(trace((0, 2)))
    low, high = quiet.interval
    error_low, error_high = pc.train(
        MODEL, quiet.machine, quiet.gears[0].strategy, samples=None, tokens="1B", batch=64,
        failures=None,
    ).spread.interval(1.0)  # fmt: skip
    assert low / quiet.outcome.wall_s == pytest.approx(error_low, rel=0.02)
    assert high / quiet.outcome.wall_s == pytest.approx(error_high, rel=0.02)
    busy = spot(trace((0, 2), (2_000, 1), (6_000, 2)))
    low, high = busy.interval
    assert low < busy.outcome.wall_s < high
    least, most = busy.usd_interval
    assert least < busy.usd < most
    assert busy.to_dict()["wall_s_interval"] == [low, high]
