"""Long work says how far it is, where somebody looks and nobody said otherwise."""

from __future__ import annotations

import io
import sys
import types

import plancast as pc
import pytest
from plancast import progress

MACHINE = pc.Machine.preset("dgx-a100-80g", hosts=1)


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self):
        return True


@pytest.fixture
def screen(monkeypatch):
    found = Screen()
    # Its own, since pytest puts another in place between a fixture and its test.
    monkeypatch.setattr(progress, "sys", types.SimpleNamespace(stderr=found, modules=sys.modules))
    monkeypatch.setattr(progress, "_SOON", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    return found


def rank(small, **options):
    return pc.rank(small, MACHINE, batch=16, space="tp=1|2,mb=1", workers=1, **options)


def test_a_ranking_on_a_terminal_shows_a_bar(small, screen):
    rank(small)
    assert "plans" in screen.getvalue()


def test_a_caller_decides(small, screen):
    told = []
    rank(small, progress=lambda done, total: told.append((done, total)))
    rank(small, progress=False)
    assert screen.getvalue() == ""
    assert told[-1][0] == told[-1][1] > 0


def test_the_one_question_shows_a_bar(small, screen):
    pc.plan(small, MACHINE, batch=16, space="tp=1|2,mb=1")
    assert "plans" in screen.getvalue()
    screen.truncate(0)
    pc.plan(small, MACHINE, batch=16, space="tp=1|2,mb=1", progress=False)
    assert screen.getvalue().strip("\0") == ""


def test_searches_tell_how_far_they_are(small):
    told = []

    def tell(done, total):
        told.append((done, total))

    pc.local_search(small, MACHINE, batch=16, start="dp=8,mb=1", forecasts=3, progress=tell)
    assert told == [(0, 3), (1, 3), (2, 3)]
    told.clear()
    job = pc.ClusterJob(name="a", placement="hosts 0-0 gpus 0-3", compute=1, communicate="1 s")
    rows = pc.cluster_changes([job], MACHINE, progress=tell)
    assert [done for done, _ in told] == list(range(len(rows) - 1))


def test_work_inside_of_work_shows_nothing(small, screen):
    with progress.following(False, "all"):
        rank(small)
    assert screen.getvalue() == ""
    with progress.following(lambda done, total: None, "all"):
        rank(small, progress=None)
    assert screen.getvalue() == ""


def test_short_work_and_files_need_no_bar(small, screen, monkeypatch):
    monkeypatch.setattr(progress, "_SOON", 60.0)
    rank(small)
    assert screen.getvalue() == ""
    monkeypatch.setattr(progress, "_SOON", 0.0)
    file = io.StringIO()
    monkeypatch.setattr(progress.sys, "stderr", file)
    rank(small)
    assert file.getvalue() == ""


def test_a_notebook_shows_lines_that_replace_each_other(small, monkeypatch):
    lines = []

    class Handle:
        def update(self, shown, *, raw):
            lines.append(shown["text/plain"])

    def display(shown, *, raw, display_id):
        lines.append(shown["text/plain"])
        return Handle()

    notebook = types.SimpleNamespace(
        get_ipython=lambda: type("ZMQInteractiveShell", (), {})(),
        display=types.SimpleNamespace(display=display),
    )
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setattr(progress, "_SOON", 0.0)
    rank(small)
    assert lines[0].startswith("plans ")
    assert " of " in lines[-2]
    assert lines[-1] == ""


def test_a_wrong_progress_is_named(small):
    with pytest.raises(pc.InputError, match="`progress` is `5`; give a function or True or False"):
        rank(small, progress=5)
