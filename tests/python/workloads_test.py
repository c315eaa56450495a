"""Text workloads of ASTRA-sim 1.0."""

from __future__ import annotations

import json
import pickle

import plancast as pc
import pytest

TEXT = (
    "MODEL\n2\n"
    "one -1 100 ALLGATHER 65536 80 ALLREDUCE 65536 40 NONE 0 10\n"
    "two -1 100 NONE 0 80 ALLTOALL 32768 40 NONE 0 10\n"
)
NETWORK = "topology: [Ring]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n"
SYSTEM = {
    "scheduling-policy": "LIFO",
    "endpoint-delay": 10,
    "active-chunks-per-dimension": 1,
    "preferred-dataset-splits": 1,
    "all-reduce-implementation": ["ring"],
    "all-gather-implementation": ["ring"],
    "reduce-scatter-implementation": ["ring"],
    "all-to-all-implementation": ["ring"],
    "collective-optimization": "localBWAware",
    "local-mem-bw": 1600,
}


@pytest.fixture
def places(tmp_path):
    for name, text in (("w.txt", TEXT), ("n.yml", NETWORK), ("s.json", json.dumps(SYSTEM))):
        (tmp_path / name).write_text(text)
    return tmp_path / "w.txt", tmp_path / "n.yml", tmp_path / "s.json"


def test_nodes_and_totals(places):
    workload = pc.TextWorkload.open(places[0])
    kinds = [node.kind for node in workload.nodes]
    assert kinds.count("compute") == 6
    assert (workload.nodes[0].duration_us, workload.nodes[0].bytes) == (100, None)
    # The first layer has nobody to hand its input's gradient to.
    assert workload.totals() == {"compute": 440, "all_gather": 65536, "all_to_all": 32768}
    assert pickle.loads(pickle.dumps(workload)).nodes == workload.nodes


def test_a_run(places):
    workload, network, system = places
    run = pc.TextWorkload.open(workload).run(network, system)
    assert len(run.finish_ns) == 4
    assert set(run.compute_ns) == {440_000}
    assert run.time_s > 440e-6
    slower = pc.TextWorkload.open(workload).run(network, system, backend="aware")
    assert slower.time_s > 440e-6


def test_errors_say_line_and_words(places):
    with pytest.raises(pc.InputError, match=r"workload must begin with `MODEL`"):
        pc.TextWorkload.from_text("HYBRID_TRANSFORMER\n1\nx")
    with pytest.raises(pc.InputError, match=r"`w`: layer 0 must be"):
        pc.TextWorkload.from_text("MODEL\n1\nx -1 3 GATHER 4 5 NONE 0 5 NONE 0 1", what="`w`")
    with pytest.raises(pc.InputError, match="`backend` is `'best'`; give `unaware` or `aware`"):
        pc.TextWorkload.open(places[0]).run(places[1], places[2], backend="best")


def test_the_command(cli, places):
    workload, network, system = map(str, places)
    fields = cli.json("import", "workload", workload)
    assert (fields["nodes"], fields["compute_us"]) == (8, 440)
    ran = cli.json("import", "workload", workload, "--network", network, "--system", system)
    assert ran["ranks"] == 4
    code, text, _ = cli("import", "workload", workload, "--network", network, "--system", system)
    assert code == 0
    assert "440 us of kernels" in text
    assert "on 4 ranks" in text
    assert "needs both" in cli.error("import", "workload", workload, "--network", network)
