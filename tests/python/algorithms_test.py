"""Collective algorithms from Python and the command line."""

from __future__ import annotations

import json

import plancast as pc
import pytest
from plancast.cli.main import main

RING = ["export", "msccl", "--op", "all_reduce", "--algo", "ring", "--gpus", "8"]
SEARCH = ["export", "msccl", "--synthesize", "all_gather", "--topology", "dgx1"]


def run(capsys, *arguments):
    assert main([str(a) for a in arguments]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def refusal(capsys, *arguments):
    assert main([str(a) for a in arguments]) == 2
    return capsys.readouterr().err


# MSCCL-1's counts of msccl-tools' ring, by our own.
def test_an_exported_ring_reads_back_and_runs(capsys, tmp_path):
    path = tmp_path / "ring.xml"
    fields = json.loads(run(capsys, *RING, "-o", path, "--json"))
    assert fields["steps_by_type"] == {"s": 8, "rrs": 48, "rrcs": 8, "rcs": 48, "r": 8}
    assert fields["chunks_sent_by_gpu"] == [14] * 8
    assert run(capsys, *RING) == path.read_text()
    assert run(capsys, "export", "msccl", "--from", path) == path.read_text()
    got = json.loads(run(capsys, "run", path, "-c", "dgx-h100:1", "--bytes", "64M", "--json"))
    assert got["op"] == "all_reduce" and got["bytes"] == 64 << 20
    assert got["busbw_bytes_per_s"] == pytest.approx(got["algbw_bytes_per_s"] * 14 / 8)
    assert got["time_s"] == max(got["rank_finish_s"]) > 64 * 2**20 / 450e9
    assert 0 < got["busiest_link"]["busy"] <= 1 and 0 < got["busiest_thread_block"]["busy"] <= 1
    assert "busbw" in run(capsys, "run", path, "-c", "dgx-h100:1", "--bytes", "64M")


@pytest.mark.parametrize(
    ("op", "algo", "gpus"),
    [
        ("all_gather", "ring", "4"),
        ("all_reduce", "tree", "8x2"),
        ("all_reduce", "direct", "8"),
        ("reduce_scatter", "ring", "6"),
        ("all_to_all", "direct", "8"),
        ("broadcast", "ring", "5"),
    ],
)
def test_every_export_reads_back_right(op, algo, gpus):
    levels = [int(n) for n in gpus.split("x")]
    made = pc.Algorithm.make(op, algo, gpus=levels, channels=2)
    read = pc.Algorithm.from_msccl(made.to_msccl())
    read.check()
    assert (read.op, read.gpus, read.chunks) == (op, made.gpus, made.chunks)
    assert read.count_steps() == made.count_steps()


def test_a_wrong_algorithm_is_refused_by_place(capsys, tmp_path):
    text = run(capsys, *RING)
    path = tmp_path / "wrong.xml"
    path.write_text(text.replace('type="rrs"', 'type="rcs"', 1))
    message = refusal(capsys, "run", path, "-c", "dgx-h100:1", "--bytes", "1M")
    assert "gpu " in message and "thread block 0" in message and "(line " in message
    path.write_text(text[:400])
    assert "not XML" in refusal(capsys, "run", path, "-c", "dgx-h100:1", "--bytes", "1M")


def test_synthesised_algorithms_take_their_rounds(capsys, tmp_path):
    for steps, rounds, chunks in [(2, 3, 2), (3, 7, 6)]:
        path = tmp_path / "found.xml"
        shape = ["--steps", steps, "--rounds", rounds, "--chunks", chunks]
        run(capsys, *SEARCH, *shape, "-o", path)
        bare = ["run", path, "--topology", "dgx1", "--bytes", 8 * 42_000_000, "--json"]
        got = json.loads(run(capsys, *bare))
        assert got["time_s"] == pytest.approx(rounds / chunks * 42e6 / 25e9, rel=1e-6)
        got = json.loads(run(capsys, *bare, "--alpha", "100"))
        assert got["time_s"] == pytest.approx(steps * 1e-4 + rounds / chunks * 42e6 / 25e9, rel=0.1)


def test_the_pareto_front_of_a_dgx1(capsys):
    got = json.loads(run(capsys, *SEARCH, "--pareto", "--json"))
    assert [(p["steps"], p["rounds"], p["chunks"]) for p in got["points"]] == [(2, 3, 2), (3, 7, 6)]
    assert got["least_rounds_per_chunk"] == [7, 6] and got["complete"]
    assert {p["proof"] for p in got["others"]} == {"bound"}
    assert "at least 2 steps" in run(capsys, *SEARCH, "--pareto")


def test_own_links_are_a_topology():
    ring = [(v, (v + 1) % 4, 1) for v in range(4)]
    front = pc.pareto_front("all_gather", ring)
    assert [(p.steps, p.rounds, p.chunks) for p in front.points] == [(3, 3, 1)]


def test_messages_are_traced(capsys, tmp_path):
    ring, trace = tmp_path / "ring.xml", tmp_path / "trace.json"
    run(capsys, *RING, "-o", ring)
    run(capsys, "run", ring, "--topology", "ring:8", "--bytes", "1M", "--trace", trace)
    events = json.loads(trace.read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == 8 * 14


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*SEARCH, "--steps", "2", "--rounds", "4", "--chunks", "3"], "there is no all_gather"),
        ([*SEARCH, "--steps", "2"], "needs --rounds"),
        (SEARCH[:-2], "needs --topology"),
        ([*SEARCH[:-1], "dgx7", "--pareto"], "no topology `dgx7`"),
        (RING[:-2], "--op needs --gpus"),
        ([*RING[:-1], "eight"], "--gpus is `eight`"),
        ([*RING, "--synthesize", "all_gather"], "give one of --op, --synthesize and --from"),
        ([*RING[:2]], "give one of --op, --synthesize and --from"),
        ([*RING[:3], "all_redcue", *RING[4:]], "Did you mean `all_reduce`?"),
        (["run", "a.xml", "--bytes", "1M"], "-c MACHINE or on --topology"),
        (["run", "a.xml", "-c", "dgx-h100:1"], "--bytes is missing"),
        (["run", "a.xml", "-c", "dgx-h100:1", "--bytes", "lots"], "`lots` is no size"),
        (["run", "a.xml", "-c", "dgx-h100:1", "--bytes", "1M"], "there is no file `a.xml`"),
    ],
)
def test_bad_words_are_named(capsys, arguments, message):
    assert message in refusal(capsys, *arguments)
