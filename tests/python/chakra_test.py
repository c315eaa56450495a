"""Chakra traces and ASTRA-sim's cases from the command line."""

from __future__ import annotations

import errno
import gzip
import json
import os

import plancast as pc
import pytest
from plancast.communication import chakra
from plancast.errors import InputError

SHARED = os.environ.get("PLANCAST_SHARED_DATA")

NETWORK = "topology: [Switch]\nnpus_count: [8]\nbandwidth: [50]\nlatency: [500]\n"
SYSTEM = {
    "scheduling-policy": "LIFO",
    "endpoint-delay": 1,
    "active-chunks-per-dimension": 1,
    "preferred-dataset-splits": 1,
    "all-reduce-implementation": ["ring"],
    "all-gather-implementation": ["ring"],
    "reduce-scatter-implementation": ["ring"],
    "all-to-all-implementation": ["ring"],
    "collective-optimization": "localBWAware",
    "local-mem-bw": 1e9,
}
CASES = (
    "case,backend,topology,npus_per_dim,bandwidth_GiBps,latency_ns,workload,collective,bytes,"
    "algorithm,preferred_dataset_splits,active_chunks_per_dim,endpoint_delay,local_mem_bw_GBps,"
    "scheduling,collective_optimization,num_queues_per_dim,finish_min_ns,finish_max_ns,status\n"
    "good,congestion_unaware,Switch,8,50,500,micro,all_reduce,1048576,ring,1,1,1,1e9,LIFO,"
    "localBWAware,1,48189,48189,ok\n"
    "words,congestion_unaware,Switch,8,50,500,something else,all_reduce,1048576,ring,1,1,1,1e9,"
    "LIFO,localBWAware,1,1,1,ok\n"
)


@pytest.fixture
def micro(cli, tmp_path):
    """The prefix of an all-reduce of 1 MiB on 8 ranks."""
    prefix = tmp_path / "micro"
    cli.json("export", "chakra", "--collective", "all_reduce", "--bytes", "1048576", "--ranks", "8",
             "-o", str(prefix))  # fmt: skip
    return str(prefix)


def test_import_of_cases(cli, tmp_path):
    table = tmp_path / "cases.csv"
    table.write_text(CASES)
    result = cli.json("import", "astra", str(table))
    good, words = result["cases"]
    # The closed form: 1 + 14 (T(131072) + 1).
    assert good["finish_max_ns"] == good["finish_min_ns"] == 48189
    assert good["equal"] is True
    assert words["status"] == "not run"
    assert "something else" in words["reason"]
    assert (result["compared"], result["equal"]) == (1, 1)
    assert "1 of 1 cases" in cli("import", "astra", str(table))[1]


def test_cases_of_which_less_is_known(cli, tmp_path):
    table = tmp_path / "cases.csv"
    table.write_text(CASES.replace("1,48189,48189,ok", "1,,48189,ok"))
    result = cli.json("import", "astra", str(table))
    assert result["cases"][0]["equal"] is None
    assert (result["compared"], result["equal"]) == (0, 0)
    assert "0 of 0 cases" in cli("import", "astra", str(table))[1]
    table.write_text(CASES.replace("1,48189,48189,ok", "1,soon,48189,ok"))
    assert "column `finish_min_ns`: `soon` is no time" in cli.error("import", "astra", str(table))


def test_more_chunks_than_can_wait_in_line(cli, tmp_path):
    table = tmp_path / "cases.csv"
    table.write_text(CASES.replace("ring,1,1,1,1e9", "ring,65536,1,1,1e9"))
    good = cli.json("import", "astra", str(table))["cases"][0]
    assert good["status"] == "not run"
    assert "is 65536; on 8 NPUs, 1 to 5792 will do" in good["reason"]


def test_a_trace_as_astra_sim_runs_it(cli, micro, tmp_path):
    network, system = tmp_path / "net.yml", tmp_path / "sys.json"
    network.write_text(NETWORK)
    system.write_text(json.dumps(SYSTEM))
    mode = ["--network", str(network), "--system", str(system)]
    result = cli.json("run", micro, *mode)
    assert result["finish_max_ns"] == 48189
    assert len(result["ranks"]) == 8
    assert "compatible" in result["mode"]
    aware = cli.json("run", micro, *mode, "--backend", "aware")
    # Store and forward pays the bytes on both links: 1 + 14 (2 T + 1).
    assert aware["finish_max_ns"] == 1 + 14 * (2 * 2941 + 1)


def test_a_trace_on_a_machine(cli, micro):
    result = cli.json("run", micro, "-c", "dgx-h100:1")
    assert result["machine"] == "dgx-h100"
    assert 0 < result["time_s"] < 1e-3
    (comm,) = result["communications"]
    assert (comm["kind"], comm["bytes"], comm["members"], comm["count"]) == (
        "all_reduce", 1 << 20, 8, 1,
    )  # fmt: skip
    assert comm["mean_s"] == pytest.approx(result["time_s"])


def test_a_plan_as_traces_takes_its_time(cli, tmp_path):
    prefix = str(tmp_path / "plan")
    plan = ["-m", "llama3-8b", "-c", "dgx-h100:2", "-s", "tp=4,pp=2,dp=2,mb=1", "--batch", "4",
            "--seq", "512"]  # fmt: skip
    written = cli.json("export", "chakra", *plan, "-o", prefix)
    assert written["ranks"] == 16
    groups = json.loads((tmp_path / "plan.groups.json").read_text())
    assert sorted(map(tuple, groups.values()))[0] == (0, 1, 2, 3)
    run = ["run", prefix, "--comm-groups", written["groups"]]
    ours = cli.json(*run, "-c", "dgx-h100:2")
    forecast = cli.json("predict", *plan, "--cuda-graphs")
    # Without the framework's own times (launches, loading, clipping), so less.
    assert 0.5 < ours["time_s"] / forecast["iteration_time_s"] < 1.05
    network, system = tmp_path / "net.yml", tmp_path / "sys.json"
    network.write_text(NETWORK.replace("[8]", "[16]"))
    system.write_text(json.dumps(SYSTEM))
    theirs = cli.json(*run, "--network", str(network), "--system", str(system))
    assert theirs["nodes"] == ours["nodes"]
    assert theirs["ranks"][0]["kernels_s"] == pytest.approx(ours["ranks"][0]["kernels_s"], rel=1e-5)


def test_a_smaller_trace_leaves_nothing_of_a_larger_one(cli, micro, tmp_path):
    (tmp_path / "micro.groups.json").write_text("{}")
    (tmp_path / "microbe.9.et").write_text("of another trace")
    cli.json("export", "chakra", "--collective", "all_gather", "--bytes", "1M", "--ranks", "4",
             "-o", micro)  # fmt: skip
    assert len(chakra.trace_files(micro)) == 4
    assert not (tmp_path / "micro.groups.json").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *(f"micro.{rank}.et" for rank in range(4)),
        "microbe.9.et",
    ]


def test_a_trace_cut_short_leaves_the_old_one(cli, micro, tmp_path, monkeypatch):
    old = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def full(handle, calls=[]):  # noqa: B006  # counts
        calls.append(handle)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    message = cli.error("export", "chakra", "--collective", "all_gather", "--bytes", "1M",
                        "--ranks", "16", "-o", micro)  # fmt: skip
    assert message == f"`{micro}.2.et` cannot be written: No space left on device."
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == old


def test_a_compressed_trace_is_not_mixed_with_a_new_one(cli, micro, tmp_path):
    (tmp_path / "micro.3.et.gz").write_bytes(b"")
    with pytest.raises(InputError, match=r"micro.3.et.* are both rank 3 of one trace"):
        chakra.read(micro)
    message = cli.error("export", "chakra", "--collective", "all_gather", "--bytes", "1M",
                        "--ranks", "4", "-o", micro)  # fmt: skip
    assert "`" + micro + ".3.et.gz` would be read as part of the new trace" in message
    assert len(list(tmp_path.glob("micro.*.et"))) == 8


def test_an_exported_plan_finds_its_own_groups(cli, small_file, tmp_path):
    prefix = str(tmp_path / "plan")
    plan = ["-m", small_file, "-c", "dgx-h100:1", "-s", "tp=2,dp=4,mb=1", "--batch", "8"]
    written = cli.json("export", "chakra", *plan, "-o", prefix)
    found = cli.json("run", prefix, "-c", "dgx-h100:1")
    said = cli.json("run", prefix, "-c", "dgx-h100:1", "--comm-groups", written["groups"])
    assert found == said
    assert found["groups"] == written["groups"]
    assert {row["members"] for row in found["communications"]} == {2, 4}
    # Traces of something else in the same place leave none behind.
    one = ["--collective", "all_reduce", "--bytes", "1M", "--ranks", "8"]
    cli.json("export", "chakra", *one, "-o", prefix)
    assert cli.json("run", prefix, "-c", "dgx-h100:1")["groups"] is None


def test_packed_traces(micro, tmp_path):
    for rank in range(8):
        packed = gzip.compress((tmp_path / f"micro.{rank}.et").read_bytes())
        (tmp_path / f"packed.{rank}.et.gz").write_bytes(packed)
    assert chakra.read(tmp_path / "packed").nodes == 8


def test_errors(cli, micro, tmp_path):
    assert "say one of both" in cli.error("run", micro)
    assert "say either a plan" in cli.error("export", "chakra", "-o", "x", "--ranks", "3")
    with pytest.raises(InputError, match=r"there is no trace"):
        chakra.read(tmp_path / "none")
    (tmp_path / "micro.3.et").unlink()
    with pytest.raises(InputError, match="none of rank 3"):
        chakra.read(micro)
    (tmp_path / "bad.0.et").write_bytes(b"\xff\xff\xff\xff\xff\xff")
    with pytest.raises(InputError, match="byte 0: no message begins here"):
        chakra.read(tmp_path / "bad")


def test_stages_with_meshes_of_their_own_send_messages(cli, tmp_path):
    """Between pairs of ranks; two devices are idle."""
    tree = {
        "plan": "mb=2",
        "stages": [
            {"nodes": ["embedding", "layers[0:8]"], "devices": "gpus 0-1", "mesh": {"tp": 1}},
            {"nodes": ["layers[8:32]", "head"], "devices": "gpus 4-7", "mesh": {"tp": 4}},
        ],
        "idle": "gpus 2-3",
    }
    (tmp_path / "tree.json").write_text(json.dumps(tree))
    plan = ["-m", "llama3-8b", "-c", "dgx-h100:1", "-s", str(tmp_path / "tree.json"), "--batch",
            "8", "--seq", "1024"]  # fmt: skip
    prefix = str(tmp_path / "plan")
    cli.json("export", "chakra", *plan, "-o", prefix)
    ours = cli.json("run", prefix, "-c", "dgx-h100:1")
    assert [rank["kernels_s"] > 0 for rank in ours["ranks"]] == [True] * 2 + [False] * 2 + [
        True
    ] * 4
    forecast = cli.json("predict", *plan)
    assert 0.5 < ours["time_s"] / forecast["iteration_time_s"] < 1.05


@pytest.mark.parametrize(
    ("plan", "batch", "profile"),
    [
        ("dp=8,mb=1,zero=3", 32, "megatron-core"),
        ("dp=8,mb=1,zero=1", 16, "fsdp"),  # many buckets of one group
        ("pp=2,mb=1,zero=1", 16, "torchtitan"),
    ],
)
def test_a_sharded_plan_takes_as_traces_what_it_takes(cli, tmp_path, plan, batch, profile):
    """But for what is no task: the ends of an iteration, launches, the slowdown of kernels."""
    job = ("llama3-8b-l2", "dgx-h100:1", plan)
    simulated = pc.predict(
        pc.Model.preset(job[0]), pc.Machine.open(job[1]), plan, batch=batch, profile=profile
    ).simulated_time
    prefix = str(tmp_path / "t")
    code, _, err = cli(
        "export", "chakra", "-m", job[0], "-c", job[1], "-s", plan, "--batch", str(batch),
        "--profile", profile, "-o", prefix,
    )  # fmt: skip
    assert code == 0, err
    ran = cli.json("run", prefix, "-c", job[1], "--json")
    assert 0.85 * simulated < ran["time_s"] < simulated
    assert all(comm["members"] > 1 for comm in ran["communications"])


@pytest.mark.skipif(not SHARED, reason="needs ../shared")
def test_the_custom_ring_runs_on_a_machine(cli):
    """All ranks send before they receive."""
    ring = f"{SHARED}/chakra/custom_ring_allreduce_8npus_1MB/custom_allreduce"
    ran = cli.json("run", ring, "-c", "dgx-h100:1", "--json")
    assert ran["time_s"] > 0
    assert sum(comm["count"] for comm in ran["communications"]) == 8 * 14
    assert any("they do not wait here" in note for note in ran["notes"])
