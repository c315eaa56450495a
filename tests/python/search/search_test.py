"""Searches in pieces end as `plancast.rank` does, however often they are cut short."""

from __future__ import annotations

import contextlib
import random

import plancast as pc
import pytest
from plancast.search import SearchStore
from plancast.search.pools import Threads
from searches import driver, kill_after, rows, said, search


@pytest.mark.parametrize(
    "options",
    [{"top": 5}, {"top": 1}, {"top": 5, "exhaustive": True}, {"space": "tp=4,pp=2"},
     {"top": 3, "where": "dp>=2"}, {"top": 2, "objective": "cost"}, {"space": "tp=8,pp=1,ep=3"}],
)  # fmt: skip
@pytest.mark.parametrize("workers", [1, 3])
def test_a_search_with_a_store_is_the_ranking(tmp_path, options, workers):
    with_store = search(store=tmp_path / "s.db", workers=workers, **options)
    assert said(with_store) == said(search(**options))


def test_of_plans_that_do_not_fit_the_nearest_is_named(tmp_path):
    large = pc.Model.preset("gpt3-175b")
    machine = pc.Machine.preset("dgx-a100-80g", hosts=1)
    asked = {"batch": 8, "space": "tp=8,pp=1", "top": 4}
    ranking = pc.rank(large, machine, store=tmp_path / "s.db", **asked)
    assert ranking.nearest is not None
    assert said(ranking) == said(pc.rank(large, machine, **asked))


class CutError(Exception):
    """What ends a search in the middle."""


def cut_after(monkeypatch, chunks):
    """Lets so many chunks come in, then raises."""
    left = iter(range(chunks))
    before = Threads.finished

    def finished(self):
        if next(left, None) is None:
            raise CutError
        return before(self)

    monkeypatch.setattr(Threads, "finished", finished)


@pytest.mark.parametrize("exhaustive", [False, True])
def test_a_search_that_is_cut_short_anywhere_goes_on_where_it_was(
    tmp_path, monkeypatch, exhaustive
):
    monkeypatch.setattr(Threads, "bounds_at_once", 8)
    asked = {"top": 5, "workers": 2, "exhaustive": exhaustive}
    whole = search(**asked)
    for seed in range(4):
        path, draw, before = tmp_path / f"{seed}.db", random.Random(seed), []
        for _ in range(4):
            with monkeypatch.context() as patch:
                cut_after(patch, draw.randrange(12))
                with contextlib.suppress(CutError):
                    search(store=path, resume=True, **asked)
            now = rows(path)
            for number, *_, bound, value, reason in before:
                row = now[[r[0] for r in now].index(number)]
                assert value in (None, row[3])
                assert bound in (None, row[2])
                assert reason in (None, row[4])
            before = now
        assert said(search(store=path, resume=True, **asked)) == said(whole)


def test_what_is_in_the_store_is_not_asked_for_again(tmp_path, monkeypatch):
    path = tmp_path / "s.db"
    whole = search(store=path, top=5, workers=2)
    asked = []
    before = Threads.submit

    def submit(self, step, plans):
        asked.extend((step, plan) for plan in plans)
        return before(self, step, plans)

    monkeypatch.setattr(Threads, "submit", submit)
    assert said(search(store=path, top=5, workers=2, resume=True)) == said(whole)
    assert {step for step, _ in asked} == {"describe"}
    # More of the best are another question to the same store, which knows some of the answer.
    known = SearchStore(path).records()
    bounded = {row["strategy"] for row in known}
    simulated = {row["strategy"] for row in known if row["value"] is not None}
    more = search(store=path, top=9, workers=2, resume=True)
    assert not bounded & {plan for step, plan in asked if step == "bound"}
    assert not simulated & {plan for step, plan in asked if step == "simulate"}
    monkeypatch.undo()
    assert said(more) == said(search(top=9))
    assert said(search(store=path, resume=True)) == said(search())


@pytest.mark.parametrize("seed", range(3))
def test_a_driver_killed_in_mid_search_loses_nothing(tmp_path, seed):
    path, draw = tmp_path / "s.db", random.Random(seed)
    before = []
    for _ in range(2):
        process = driver(path)
        kill_after(process, path, len([r for r in before if r[3]]) + draw.randrange(1, 30))
        now = rows(path)
        assert set(before) <= set(now)
        before = now
    assert before
    assert said(search(store=path, resume=True, top=5)) == said(search(top=5))


def test_ctrl_c_gives_what_was_found_and_the_store_goes_on(tmp_path):
    totals = set()

    def stop(done, total):
        totals.add(total)
        if done >= 20:
            raise KeyboardInterrupt

    path = tmp_path / "s.db"
    with pytest.raises(KeyboardInterrupt):
        search(store=path, top=5, exhaustive=True, progress=stop)
    ranking = search(store=path, top=5, exhaustive=True, progress=stop, partial=True, resume=True)
    assert ranking.stopped
    assert len(ranking) == 5
    assert {ranking.open + ranking.evaluated + sum(ranking.excluded.values())} == totals
    assert said(search(store=path, top=5, resume=True)) == said(search(top=5))


def test_progress_ends_with_all_plans(tmp_path):
    told, best = [], []
    ranking = search(
        store=tmp_path / "s.db",
        top=3,
        progress=lambda *so_far: told.append(so_far),
        found=lambda *so_far: best.append(so_far),
    )
    assert told[-1][0] == told[-1][1] >= ranking.evaluated + ranking.bounded
    assert best[-1][0] == ranking[0].strategy
