"""Ctrl-C at any point of `plancast plan`: the best until then, exit code 130."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import plancast as pc
import pytest
from plancast import choice
from plancast.choice import Choice
from plancast.cli import interrupt

HOST = "dgx-h100:1"
LINE = ("--batch", "64")
STOPPED = "plancast: stopped\n"


def press(*_, number=signal.SIGINT):
    signal.raise_signal(number)


@pytest.fixture
def presses(monkeypatch):
    """Has a key pressed as soon as `when(calls, done, total)` of the progress holds."""

    def wire(when, number=signal.SIGINT):
        calls = []

        def tell(done, total):
            calls.append(done)
            if when(len(calls), done, total):
                press(number=number)

        @contextlib.contextmanager
        def following(progress, what):
            yield tell

        monkeypatch.setattr("plancast.choice.following", following)

    return wire


@pytest.fixture
def ask(cli, small_file):
    return lambda *more, machine=HOST: cli("plan", small_file, machine, *LINE, *more)


def in_turn(small):
    """Plans of the ranking that comes first."""
    space = "vpp=1,mb=1|4|16,recompute=full"
    return len(pc.rank(small, pc.Machine.open(HOST), batch=64, space=space, exhaustive=True))


def test_while_modules_are_loaded():
    script = """
import signal, sys
class Pressed:
    def find_spec(self, name, path=None, target=None):
        if name == "plancast.cli.rank":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Pressed())
from plancast.__main__ import main
sys.exit(main())
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", script, "plan", "gpt2", HOST],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", STOPPED)


def test_while_the_core_is_loaded(cli, monkeypatch):
    def load(arguments):
        raise ImportError("initialization failed") from KeyboardInterrupt()

    monkeypatch.setattr("plancast.cli.main._run", load)
    assert cli("plan", "gpt2", HOST) == (130, "", STOPPED)


def test_in_code_made_from_text_it_is_no_death_by_signal():
    script = """
import sys
from plancast.cli import main
def run(arguments):
    exec("raise KeyboardInterrupt")
main._run = run
sys.exit(main.main([]))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment
    )
    assert (done.returncode, done.stderr) == (130, STOPPED)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_python_drops_in_a_finaliser_is_heard(capfd, number):
    class Pressed:
        def __del__(self):
            press(number=number)

    error = interrupt.Ended if number == signal.SIGTERM else KeyboardInterrupt
    before = sys.unraisablehook
    with pytest.raises(error) as raised, interrupt.stops_at_once(grace=300):
        Pressed()
        signal.pause()
    assert interrupt.status_of(raised.value) == 128 + number
    assert sys.unraisablehook is before
    assert capfd.readouterr().err == ""


def test_other_things_that_python_drops_are_told(monkeypatch):
    class Broken:
        def __del__(self):
            raise OSError("a pipe")

    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda dropped: told.append(str(dropped.exc_value)))
    with interrupt.stops_at_once():
        Broken()
    assert told == ["a pipe"]


def test_before_any_plan_is_found(ask, presses):
    presses(lambda calls, done, total: calls == 1)
    code, out, err = ask()
    assert code == 130
    # On a small machine the first plans may be there.
    assert err == STOPPED or "stopped: " in out


def test_of_a_large_space_a_first_plan_is_soon_found(ask, presses, monkeypatch):
    monkeypatch.setattr("plancast.plan_search._LONG", 10)
    presses(lambda calls, done, total: calls == 1)
    code, out, err = ask()
    assert (code, err) == (130, "")
    assert "plan          dp=" in out
    assert "stopped: " in out


def test_while_the_whole_space_is_looked_at(ask, presses, small):
    first = in_turn(small)
    presses(lambda calls, done, total: done > first)
    code, out, err = ask("--tokens", "1T")
    said = " ".join(out.split())
    assert (code, err) == (130, "")
    assert "plan dp=" in said
    assert "plans were not looked at and may be better" in said
    assert "stopped before time and cost of the whole run were computed" in said
    assert "launch" in said


def test_json_says_that_it_was_stopped(cli, small_file, presses, small):
    first = in_turn(small)
    assert cli.json("plan", small_file, HOST, *LINE)["stopped"] is False
    presses(lambda calls, done, total: done > first)
    code, out, _ = cli("plan", small_file, HOST, *LINE, "--json")
    assert code == 130
    assert '"stopped": true' in out


def test_a_request_to_end_is_no_question(ask, presses, small):
    first = in_turn(small)
    presses(lambda calls, done, total: done > first, signal.SIGTERM)
    assert ask() == (143, "", STOPPED)


def test_while_the_whole_run_is_computed(ask, monkeypatch):
    monkeypatch.setattr(choice, "_run", press)
    code, out, err = ask("--tokens", "1T")
    said = " ".join(out.split())
    assert (code, err) == (130, "")
    assert "plan dp=" in said
    assert "stopped before time and cost of the whole run were computed" in said


def test_where_nothing_fits(cli, monkeypatch):
    monkeypatch.setattr("plancast.plan_search.Search.would_fit", press)
    code, out, err = cli("plan", "gpt3-175b", HOST, "--seq", "512", *LINE)
    said = " ".join(out.split())
    assert (code, err) == (130, "")
    assert "no plan fits" in said
    assert "stopped before it was known what would fit" in said


def test_while_the_page_is_made(ask, monkeypatch, tmp_path):
    monkeypatch.setattr("plancast.report.page.choice.choice_page", press)
    page, launch = tmp_path / "page.html", tmp_path / "plan.sh"
    code, out, err = ask("--report", str(page), "--launch", str(launch))
    assert code == 130
    assert "plan          dp=" in out
    assert err == f"plancast: stopped, so `{page}` was not written\n"
    assert launch.exists()
    assert not page.exists()


@pytest.mark.parametrize("place", ["write_launch", "to_dict"])
def test_what_is_being_written_is_written_whole(cli, small_file, monkeypatch, tmp_path, place):
    plain = getattr(Choice, place)

    def pressed(self, *given):
        press()
        return plain(self, *given)

    whole = cli.json("plan", small_file, HOST, *LINE)
    monkeypatch.setattr(Choice, place, pressed)
    file = tmp_path / "plan.sh"
    code, out, err = cli("plan", small_file, HOST, *LINE, "--json", "--launch", str(file))
    assert (code, err) == (130, "")
    assert f'"strategy": "{whole["strategy"]}"' in out
    assert out.endswith("}\n")
    assert file.read_text() == whole["launch"]


def test_whoever_presses_twice_does_not_want_to_wait():
    with interrupt.held() as waiting:
        press()
        assert waiting.pressed
        with pytest.raises(KeyboardInterrupt):
            press()


def test_from_python_it_is_an_exception_unless_asked(small):
    first = in_turn(small)

    def tell(done, total):
        if done > first:
            press()

    machine = pc.Machine.open(HOST)
    with pytest.raises(KeyboardInterrupt):
        pc.plan(small, machine, batch=64, progress=tell)
    found = pc.plan(small, machine, batch=64, progress=tell, partial=True)
    assert found.stopped
    assert found.best is not None


def test_of_a_ranking_that_is_stopped_few_may_be_described(small):
    def tell(done, total):
        if done > total // 2:
            press()

    machine = pc.Machine.open(HOST)
    some = pc.rank(small, machine, batch=64, progress=tell, partial=True)
    few = pc.rank(small, machine, batch=64, progress=tell, partial=2)
    assert some.stopped and few.stopped
    assert len(some) > len(few) == 2
    with pytest.raises(pc.InputError, match="`partial` is -1"):
        pc.rank(small, machine, batch=64, partial=-1)


@pytest.mark.parametrize("top", [3, None])
def test_what_is_raised_in_the_last_report_is_not_lost(small, top):
    """All plans are decided on then, so that nothing is left to be stopped."""
    machine = pc.Machine.open(HOST)

    def rank(at_last, **options):
        def tell(done, total):
            if done == total:
                at_last()

        return pc.rank(small, machine, batch=64, top=top, progress=tell, **options)

    with pytest.raises(KeyboardInterrupt):
        rank(press)
    with pytest.raises(ZeroDivisionError):
        rank(lambda: 1 / 0, partial=True)
    whole, stopped = rank(lambda: None), rank(press, partial=True)
    assert stopped.stopped and stopped.open == 0
    assert [str(plan.strategy) for plan in stopped] == [str(plan.strategy) for plan in whole]
