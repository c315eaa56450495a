"""Flows of collectives: from Python and the command line; both fidelities of a forecast."""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path

import plancast as pc
import pytest
from conftest import Cli
from plancast.communication.flow_list import to_csv
from plancast.communication.nccl import Topology


def test_a_ring_of_eight() -> None:
    flows = pc.flows("all_reduce", gpus=8, bytes=4 << 20)
    assert len(flows) == 112
    assert {flow.bytes for flow in flows} == {512 << 10}
    assert {flow.step for flow in flows} == set(range(14))
    assert sum(flow.bytes for flow in flows) == 56 << 20
    assert all(dep < flow.id for flow in flows for dep in flow.deps)
    ring = pc.Algorithm.make("all_reduce", "ring", gpus=8)
    assert pc.flows(ring, bytes=4 << 20) == flows
    assert pc.flows(pc.Algorithm.from_msccl(ring.to_msccl()), bytes=4 << 20) == flows
    assert ring.count_sends() == [14] * 8


def test_channels_do_not_change_sums() -> None:
    for algorithm in ("ring", "tree", "halving_doubling", "direct"):
        sums = {
            sum(
                flow.bytes
                for flow in pc.flows(
                    "all_reduce", gpus=8, bytes=1000003, algorithm=algorithm, channels=channels
                )
            )
            for channels in (2, 4, 6)
        }
        assert len(sums) == 1, algorithm


def test_ranks_of_a_machine_and_rings_of_nccl() -> None:
    machine = pc.Machine.preset("dgx-h100", hosts=2)
    of_machine = pc.flows("all_gather", machine, bytes=1 << 20)
    assert {flow.src for flow in of_machine} == set(range(16))
    topology = Topology.from_machine(machine)
    found = topology.search()
    rings = pc.flows("all_reduce", topology, bytes=16 << 20)
    assert {flow.channel for flow in rings} == set(range(len(found["rings"])))
    for channel, ring in enumerate(found["rings"]):
        pairs = {(flow.src, flow.dst) for flow in rings if flow.channel == channel}
        assert pairs == set(zip(ring, ring[1:] + ring[:1], strict=True))
    assert sum(flow.bytes for flow in rings) == 2 * 15 * (16 << 20)
    one = pc.flows("all_reduce", topology, bytes=16 << 20, channels=1)
    assert sum(flow.bytes for flow in one) == 2 * 15 * (16 << 20)
    trees = pc.flows("all_reduce", topology, bytes=16 << 20, algorithm="tree")
    assert sum(flow.bytes for flow in trees) == 2 * 15 * (16 << 20)
    halving = pc.flows("all_reduce", topology, bytes=16 << 20, algorithm="halving_doubling")
    assert sum(flow.bytes for flow in halving) == 2 * 15 * (16 << 20)


def test_export(cli: Cli, tmp_path: Path) -> None:
    code, out, _ = cli("export", "flows", "--op", "all_reduce", "--gpus", "8", "--bytes", "4M")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == 112
    assert rows[8]["deps"] == "0 7"
    assert out == to_csv(pc.flows("all_reduce", gpus=8, bytes=4 << 20))
    path = tmp_path / "topology.xml"
    path.write_text(Topology.from_machine(pc.Machine.preset("dgx-h100", hosts=1)).to_xml())
    table = tmp_path / "flows.csv"
    where = ("--topology", str(path), "--nodes", "2", "-o", str(table))
    code, out, _ = cli("export", "flows", "--op", "all_gather", "--bytes", "64M", *where)
    assert (code, out) == (0, "")
    rows = list(csv.DictReader(table.open()))
    assert sum(int(row["bytes"]) for row in rows) == 15 * (64 << 20)
    made = cli.json(
        "export", "flows", "--op", "broadcast", "-c", "dgx-h100:2x4", "--bytes", "1K", "--json"
    )
    assert [flow["bytes"] for flow in made] == [1024] * 7


def test_the_table_of_simccl(cli: Cli) -> None:
    """SIMCCL-3: columns as documented, messages as SimAI's own code makes them."""

    def table(*options: str, size: str = "4M") -> list[dict[str, str]]:
        code, out, err = cli("export", "flows", "--format", "simccl", "--bytes", size, *options)
        assert code == 0, err
        return list(csv.DictReader(io.StringIO(out)))

    ring = table("--op", "all_reduce", "--gpus", "8")
    assert list(ring[0]) == [
        "collective",
        "op",
        "data_size",
        "algorithm",
        "protocol",
        "channel_id",
        "flow_id",
        "src",
        "dest",
        "flow_size",
        "chunk_id",
        "chunk_count",
        "conn_type",
        "parent_flow_ids",
        "prev_flow_ids",
    ]
    assert len(ring) == 112
    assert {row["flow_size"] for row in ring} == {str(512 << 10)}
    assert {row["algorithm"] for row in ring} == {"1"}
    assert {row["chunk_count"] for row in ring} == {"14"}
    by_id = {row["flow_id"]: row for row in ring}
    for row in ring:
        for parent in row["parent_flow_ids"].split():
            assert by_id[parent]["dest"] == row["src"]
        before = (int(row["src"]) - 1) % 8  # a rank
        assert row["prev_flow_ids"] == str(before)
        assert bool(row["parent_flow_ids"]) == (row["chunk_id"] != "0")
    # 4 MiB to and from each of eight: 56 flows of 512 KiB.
    exchange = table("--op", "all_to_all", "--gpus", "8", "--algo", "direct")
    assert len(exchange) == 56
    assert {row["flow_size"] for row in exchange} == {str(512 << 10)}
    assert exchange[0]["prev_flow_ids"] == "1 2 3 4 5 6 7"
    # Two hosts of eight, eight channels: 3,840 messages, of which 480 are between hosts.
    two = table("--op", "all_reduce", "-c", "dgx-h100:2", "--channels", "8")
    assert len(two) == 8 * 2 * 15 * 16
    crossing = [
        (row["src"], row["dest"]) for row in two if int(row["src"]) // 8 != int(row["dest"]) // 8
    ]
    assert len(crossing) == 480
    assert set(Counter(crossing).values()) == {30}  # each channel crosses elsewhere
    assert {row["conn_type"] for row in two} == {"RING"}
    assert {row["flow_size"] for row in two} == {str(32 << 10)}
    switch = table("--op", "all_reduce", "-c", "dgx-h100:1", "--algo", "nvls")
    assert {row["conn_type"] for row in switch} == {"NVLS"}
    # As its `genAllreduceNVLSFlowModels` makes them: in four pieces up to the switch and down.
    assert [(row["src"], row["dest"]) for row in switch[:16]] == [
        *((str(rank), "8") for rank in range(8)), *(("8", str(rank)) for rank in range(8))
    ]  # fmt: skip
    assert len(switch) == 64
    assert {row["flow_size"] for row in switch} == {str(1 << 20)}
    assert {row["chunk_count"] for row in switch} == {"4"}
    assert [row["chunk_id"] for row in switch] == [str(at // 16) for at in range(64)]
    assert {row["prev_flow_ids"] for row in switch if row["src"] == "0"} == {"8"}
    assert {row["parent_flow_ids"] for row in switch if row["dest"] == "8"} == {""}
    assert {row["prev_flow_ids"] for row in switch if row["src"] == "8"} == {"0 1 2 3 4 5 6 7"}
    assert switch[-1]["parent_flow_ids"] == "48 49 50 51 52 53 54 55"
    odd = table("--op", "all_reduce", "-c", "dgx-h100:1", "--algo", "nvls", size="1027")
    assert [row["flow_size"] for row in odd[::16]] == ["256", "256", "256", "259"]
    gather = table("--op", "all_gather", "-c", "dgx-h100:1", "--algo", "nvls")
    assert {row["prev_flow_ids"] for row in gather if row["src"] == "0"} == {"8"}
    assert "SimCCL's table has no `gather`" in cli.error(
        "export", "flows", "--format", "simccl", "--op", "gather", "--bytes", "8", "--gpus", "4",
        "--algo", "direct",
    )  # fmt: skip


def test_refusals(cli: Cli) -> None:
    with pytest.raises(pc.InputError, match="flows need `bytes`"):
        pc.flows("all_reduce", gpus=8)
    with pytest.raises(pc.InputError, match="flows need `gpus`"):
        pc.flows("all_reduce", bytes=8)
    with pytest.raises(pc.InputError, match="Did you mean `all_reduce`"):
        pc.flows("all_reduc", gpus=8, bytes=8)
    with pytest.raises(pc.InputError, match="which has 8 devices"):
        pc.flows("all_reduce", pc.Machine.preset("dgx-h100", hosts=1), 16, 1024)
    with pytest.raises(pc.InputError, match="Use whole hosts"):
        pc.flows("all_reduce", pc.Machine.preset("dgx-h100", hosts=2), 12, 1024)
    code, _, err = cli("export", "flows", "--op", "all_reduce", "--gpus", "8", "--bytes", "4Q")
    assert code == 2
    assert "`4Q` is no size" in err


def test_both_fidelities_forecast_alike() -> None:
    job = (pc.Model.preset("llama3-8b"), pc.Machine.preset("dgx-h100", hosts=2), "dp=4,tp=4,sp")
    closed = pc.predict(*job, batch=16)
    chunks = pc.predict(*job, batch=16, fidelity="chunks")
    assert chunks.iteration_time == pytest.approx(closed.iteration_time, rel=0.02)
    assert chunks.iteration_time != closed.iteration_time
    with pytest.raises(pc.InputError, match="no fidelity `chunk`"):
        pc.predict(*job, batch=16, fidelity="chunk")


@pytest.mark.parametrize(
    ("arguments", "named", "answer"),
    [
        (("all_reduce", 8), {"bytes": 1}, "`machine` is 8, which is no machine. .*`gpus=8`"),
        (("all_reduce", [8, 4]), {"bytes": 1}, "give a Machine, such as"),
        (("all_reduce",), {"gpus": "8", "bytes": 1}, "`gpus` is `'8'`; give a number of ranks"),
        (("all_reduce",), {"gpus": 0, "bytes": 1}, "`gpus` is `0`"),
        (("all_reduce",), {"gpus": [], "bytes": 1}, "`gpus` is `\\[\\]`"),
        (("all_reduce",), {"gpus": 2.5, "bytes": 1}, "`gpus` is `2.5`"),
    ],
)
def test_what_are_no_flows_is_refused_in_words(arguments, named, answer) -> None:
    with pytest.raises(pc.InputError, match=answer):
        pc.flows(*arguments, **named)
