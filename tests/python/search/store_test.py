"""Stores of searches: what they hold, whose they are, and what keeps them from being written."""

from __future__ import annotations

import csv
import importlib.util
import os
import resource
import sqlite3
import subprocess
import sys

import plancast as pc
import pytest
from plancast.search import SearchStore
from plancast.search import store as storing
from searches import MODEL, nouns, rows, search

RANK = ["rank", "-m", "FILE", "-c", "dgx-a100-80g:1", "--batch", "64"]
JOB = ["--space", "tp=2|4,pp=1,mb=1", "--top", "2"]


@pytest.fixture
def rank(small_file):
    return [*RANK[:2], small_file, *RANK[3:], *JOB]


def test_a_row_a_plan(tmp_path):
    path = tmp_path / "s.db"
    ranking = search(store=path, top=3, workers=1)
    store = SearchStore(path)
    records = store.records()
    plans = [r["plan"] for r in records]
    assert plans == sorted(set(plans))
    assert len(plans) == len(store)
    values = sorted(r["value"] for r in records if r["value"] is not None)
    assert len(values) == ranking.evaluated
    assert all(r["bound"] <= r["value"] for r in records if r["value"] is not None)
    assert all(r["bound"] is not None or r["reason"] is not None for r in records)
    assert all(r["value"] is None or r["reason"] is None for r in records)
    best = min((r for r in records if r["value"] is not None), key=lambda r: r["value"])
    assert best["strategy"] == ranking[0].strategy
    assert best["value"] == ranking[0].iteration_time
    assert store.search["batch"] == "64"
    assert store.search["space"] == ranking.space


def test_tables_have_all_rows(tmp_path):
    path = tmp_path / "s.db"
    search(store=path, top=3)
    store = SearchStore(path)
    store.write(tmp_path / "s.csv")
    with open(tmp_path / "s.csv", newline="") as file:
        read = list(csv.DictReader(file))
    assert [float(r["value"]) for r in read if r["value"]] == [
        r["value"] for r in store.records() if r["value"] is not None
    ]
    assert len(read) == len(store) == len(store.to_frame())


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="needs pyarrow")
def test_parquet_is_the_frame(tmp_path):
    import pandas as pd

    search(store=tmp_path / "s.db", top=3)
    store = SearchStore(tmp_path / "s.db")
    store.write(tmp_path / "s.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "s.parquet"), store.to_frame())


CHANGES = {
    "model": lambda model, machine: (pc.Model.from_config(**{**MODEL, "vocab": 2000}), machine, {}),
    "machine": lambda model, machine: (model, pc.Machine.preset("dgx-h100", hosts=1), {}),
    "batch": lambda *nouns: (*nouns, {"batch": 32}),
    "space": lambda *nouns: (*nouns, {"space": "tp=2"}),
    "where": lambda *nouns: (*nouns, {"where": "dp>=2"}),
    "objective": lambda *nouns: (*nouns, {"objective": "cost"}),
    "profile": lambda *nouns: (*nouns, {"profile": "compiled"}),
    "dtype": lambda *nouns: (*nouns, {"dtype": "fp16"}),
    "types": lambda *nouns: (*nouns, {"grad_dtype": "bf16"}),
    "cuda_graphs": lambda *nouns: (*nouns, {"cuda_graphs": True}),
    "knowledge": lambda *nouns: (*nouns, {"session": pc.Session(prior=False)}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_store_of_another_search_is_refused(tmp_path, name):
    path = tmp_path / "s.db"
    asked = {"batch": 64, "space": "tp=4,pp=1,mb=1", "top": 1, "store": path}
    pc.rank(*nouns(), **asked)
    before = rows(path)
    model, machine, changed = CHANGES[name](*nouns())
    with pytest.raises(pc.InputError, match=f"is of another search: its {name} is "):
        pc.rank(model, machine, **{**asked, **changed}, resume=True)
    assert rows(path) == before


def test_the_store_of_another_core_is_refused(tmp_path):
    path = tmp_path / "s.db"
    search(store=path, top=1, space="tp=4,pp=1,mb=1")
    base = sqlite3.connect(path)
    base.execute("UPDATE search SET said = 'x' WHERE name = 'core'")
    base.commit()
    with pytest.raises(pc.InputError, match="another search: its core is `x`, now"):
        search(store=path, top=1, space="tp=4,pp=1,mb=1", resume=True)


def test_a_store_that_is_there_is_not_written_unasked(tmp_path, cli, rank):
    path = str(tmp_path / "s.db")
    assert cli(*rank, "--store", path)[0] == 0
    assert "--resume" in cli.error(*rank, "--store", path)
    assert cli(*rank, "--store", path, "--resume")[0] == 0


def test_what_a_killed_driver_left_before_it_began_is_no_store(tmp_path):
    (tmp_path / "s.db").touch()
    search(store=tmp_path / "s.db", top=1)
    sqlite3.connect(tmp_path / "t.db").execute("PRAGMA journal_mode=WAL")
    search(store=tmp_path / "t.db", top=1, resume=True)


def test_options_of_stores_need_one(cli, rank):
    assert "--store" in cli.error(*rank, "--resume")
    assert "--store" in cli.error(*rank, "--export", "x.csv")
    with pytest.raises(pc.InputError, match="store"):
        search(resume=True)


def test_export(tmp_path, cli, rank):
    path, table = str(tmp_path / "s.db"), tmp_path / "s.csv"
    assert cli(*rank, "--store", path, "--export", str(table))[0] == 0
    assert table.read_text().startswith("plan,strategy,bound,value,reason\n")
    assert len(table.read_text().splitlines()) == len(rows(path)) + 1
    assert "cannot be written" in cli.error(*rank, "--store", path, "--export", "x.txt")


def test_files_that_are_no_stores(tmp_path, cli, rank):
    text, other, cut = tmp_path / "text", tmp_path / "other.db", tmp_path / "cut.db"
    text.write_text("no database, but long enough that it could be one\n" * 99)
    base = sqlite3.connect(other)
    base.execute("CREATE TABLE kernels (x)")
    base.close()
    assert "not a database" in cli.error(*rank, "--store", str(text), "--resume")
    assert "no store of a search" in cli.error(*rank, "--store", str(other), "--resume")
    search(store=cut, top=1)
    whole = cut.read_bytes()
    cut.write_bytes(whole[: len(whole) // 2] + bytes(len(whole) // 4))
    assert "damaged" in cli.error(*rank, "--store", str(cut), "--resume")
    cut.write_bytes(whole.replace(b"tableplansplans", b"tablepl\x9ensplans"))
    said = cli.error(*rank, "--store", str(cut), "--resume")
    assert "is damaged: what tables it has cannot be read." in said
    assert "no folder" in cli.error(*rank, "--store", str(tmp_path / "none" / "s.db"))
    assert "folder" in cli.error(*rank, "--store", str(tmp_path))
    with pytest.raises(pc.InputError, match="there is no store"):
        SearchStore(tmp_path / "none.db")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(tmp_path, cli, rank):
    tmp_path.chmod(0o500)
    assert "permission denied" in cli.error(*rank, "--store", str(tmp_path / "s.db"))


def test_a_locked_store(tmp_path, cli, rank, monkeypatch):
    path = tmp_path / "s.db"
    cli(*rank, "--store", str(path))
    monkeypatch.setattr(storing, "_WAIT_S", 0.05)
    other = sqlite3.connect(path)
    other.execute("BEGIN IMMEDIATE")
    assert "being written by another" in cli.error(*rank, "--store", str(path), "--resume")
    other.rollback()
    assert cli(*rank, "--store", str(path), "--resume")[0] == 0


def test_a_full_disk_ends_the_search_and_what_was_committed_stays(tmp_path, small_file):
    """Files of the process may not grow beyond a few pages, as on a full disk."""
    path = tmp_path / "s.db"
    command = [sys.executable, "-m", "plancast", "rank", "-m", small_file, "-c", "dgx-a100-80g:1",
               "--batch", "64", "--top", "2", "--all", "--store", str(path)]  # fmt: skip

    def run(*more, limit=None):
        most = resource.RLIM_INFINITY if limit is None else limit
        return subprocess.run(
            [*command, *more],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
        )

    full = run(limit=100_000)
    assert full.returncode == 2, full.stderr
    assert full.stderr.count("\n") == 1
    assert "--resume" in full.stderr
    kept = rows(path)
    assert kept
    again = run("--resume")
    assert again.returncode == 0, again.stderr
    assert set(kept) <= set(rows(path))


def test_forecasts_and_rankings_do_without_sqlite():
    """A wheel runs where the host's library is missing (tools/check_wheel.sh)."""
    program = (
        "import sys; sys.modules['_sqlite3'] = None\n"
        "import plancast as pc\n"
        "nouns = pc.Model.preset('gpt2'), pc.Machine.preset('dgx-h100')\n"
        "pc.predict(*nouns, 'mb=1')\n"
        "pc.rank(*nouns, batch=8, top=1, space='tp=1,pp=1,mb=1,recompute=none')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
