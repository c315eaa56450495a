"""Searches over a real Ray cluster on this machine, whose workers and drivers are killed."""

from __future__ import annotations

import importlib.util
import os
import random
import signal

import plancast as pc
import pytest
from plancast.search import pools
from plancast.search.store import WritableStore
from searches import driver, kill_after, rows, said, search

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray")


@pytest.fixture(scope="module")
def cluster():
    """One cluster of two workers for all tests, for it takes seconds to start."""
    import ray

    with pools._connected(pools.LOCAL, 2) as found:
        yield ray.get_runtime_context().gcs_address, found


def worker_pids(ray):
    def pid(_):
        import time

        time.sleep(0.2)  # so that no worker runs both
        return os.getpid()

    task = ray.remote(num_cpus=1)(pid)
    return set(ray.get([task.remote(i) for i in range(2)]))


@needs_ray
def test_a_worker_killed_in_mid_search_loses_and_repeats_nothing(cluster, tmp_path, monkeypatch):
    ray = cluster[1]
    draw, killed, committed = random.Random(7), [], []
    before = WritableStore._add

    def add(self, statement, found):
        found = list(found)
        committed.extend(plan for plan, *_ in found)
        before(self, statement, found)

    monkeypatch.setattr(WritableStore, "_add", add)
    kill_at = draw.randrange(1, 60)

    def kill(done, total):
        if not killed and done >= kill_at:
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    victim = worker_pids(ray).pop()
    path = tmp_path / "s.db"
    ranking = search(store=path, top=5, exhaustive=True, ray="local", progress=kill)
    assert killed
    assert said(ranking) == said(search(top=5, exhaustive=True))
    assert len(committed) == len(set(committed)) == len(rows(path))


@needs_ray
def test_bounds_over_a_cluster(cluster, tmp_path):
    assert said(search(top=3, ray="local", store=tmp_path / "s.db")) == said(search(top=3))


@needs_ray
def test_drivers_killed_at_random_points(cluster, tmp_path):
    path, draw, before = tmp_path / "s.db", random.Random(1), []
    for _ in range(3):
        process = driver(path, cluster[0])
        kill_after(process, path, len([r for r in before if r[3]]) + draw.randrange(1, 25))
        now = rows(path)
        assert set(before) <= set(now)
        before = now
    assert before
    assert said(search(store=path, resume=True, top=5, ray="local")) == said(search(top=5))


@needs_ray
def test_a_refusal_of_a_worker_is_told(cluster, monkeypatch):
    monkeypatch.setattr(pools, "core_digest", lambda: "another")
    with pytest.raises(pc.InputError, match="another build of plancast"):
        search(top=3, ray="local")


@needs_ray
def test_an_address_without_a_cluster_is_refused(cli, small_file, monkeypatch):
    import ray

    def fail(*address, **options):
        raise ConnectionError("nobody answers there\nand more")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", fail)
    error = cli.error("rank", "-m", small_file, "-c", "dgx-a100-80g:1", "--batch", "64", "--ray",
                      "nowhere:1")  # fmt: skip
    assert "there is no Ray cluster at `nowhere:1`: nobody answers there Give" in error


def test_without_ray_threads_do_what_a_local_cluster_would(cli, small_file, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    rank = [
        "rank",
        "-m",
        small_file,
        "-c",
        "dgx-a100-80g:1",
        "--batch",
        "64",
        "--space",
        "tp=4,pp=1",
    ]
    code, _, told = cli(*rank, "--ray", "local", "--workers", "2")
    assert code == 0
    assert told == "Ray is not installed; threads do the search\n"
    assert "pip install ray" in cli.error(*rank, "--ray", "head:6379")
