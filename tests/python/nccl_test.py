"""NCCL topologies: from files and machines, searched, written, imported on the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import plancast as pc
import pytest
from conftest import Cli
from plancast.communication.nccl import Topology

BOX = """<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="106">
    <pci busid="0000:10:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:40:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"/>
      <pci busid="0000:41:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"/>
      <pci busid="0000:80:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16"/>
    </pci>
  </cpu>
</system>
"""


@pytest.fixture
def box(tmp_path: Path) -> str:
    topology = Topology.from_xml(BOX).fill(sm=80, net_gbit_per_s=100)
    path = tmp_path / "box.xml"
    path.write_text(topology.to_xml())
    return str(path)


def test_a_skeleton_says_what_is_missing() -> None:
    skeleton = Topology.from_xml(BOX)
    assert len(skeleton.missing()) == 2
    with pytest.raises(pc.InputError, match="2 PCI devices could be GPUs"):
        skeleton.search()
    filled = skeleton.fill(sm=90, nvlinks=18, net_gbit_per_s=400)
    assert filled.missing() == []
    assert len(filled.assumptions) == 3
    assert filled.search()["gpuPaths"][0]["gpu"][1] == ["NVL", 370.8, 4]


def test_search_has_the_names_of_nccl(box: str) -> None:
    found = Topology.from_file(box).search(nodes=2)
    assert found["nRanks"] == 4
    ring = found["graphs"]["ring"]
    assert ring["pattern"] == 4
    assert len(ring["channels"]) == ring["nChannels"]
    assert sorted(found["rings"][0]) == [0, 1, 2, 3]
    assert len(found["trees_per_rank_per_channel_up_down"]) == 4
    assert found["times"][0]["coll"] == "Broadcast"


def test_xml_comes_back(box: str) -> None:
    topology = Topology.from_file(box)
    assert Topology.from_xml(topology.to_xml()).to_xml() == topology.to_xml()


def test_a_machine_goes_there_and_back() -> None:
    machine = pc.Machine.preset("dgx-h100", hosts=4)
    topology = Topology.from_machine(machine)
    assert topology.count == 4
    back, assumed = topology.machine()
    assert (back.devices, back.gpu) == (32, "H100-SXM-80GB")
    assert assumed


def test_a_file_is_a_machine(box: str) -> None:
    machine = pc.Machine.open(f"{box}:3")
    assert (machine.name, machine.hosts, machine.gpus_per_host) == ("box", 3, 2)
    assert "nearest to compute capability 80" in machine.to_dict()["source"]
    assert pc.Machine.from_nccl(box, fabric="roce").to_dict()["fabric"] == "roce"
    with pytest.raises(pc.InputError, match="how many hosts"):
        pc.Machine.open(f"{box}:many")


def test_hosts_and_fabric_are_options(box: str, capsys: pytest.CaptureFixture[str]) -> None:
    cli = Cli(capsys)
    plan = ("-m", "gpt2", "-s", "dp=4,mb=1", "--batch", "8")
    by_options = cli.json("predict", "-c", box, "--nodes", "2", "--fabric", "infiniband", *plan)
    in_one_word = cli.json("predict", "-c", f"{box}:2", *plan)
    assert by_options["iteration_time_s"] == in_one_word["iteration_time_s"]
    for words, message in [
        ((f"{box}:2", "--nodes", "2"), "leave `--nodes 2` out"),
        (("dgx-h100", "--nodes", "2"), "write `PRESET:2`"),
        (("dgx-h100", "--fabric", "roce"), "machine files say `fabric:`"),
    ]:
        code, out, err = cli("predict", "-c", *words, *plan)
        assert (code, out) == (2, "")
        assert message in err


def test_the_command_line(box: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli = Cli(capsys)
    copy, graphs, machine = (str(tmp_path / name) for name in ("c.xml", "g.xml", "m.yaml"))
    exports = ("--export", copy, "--graph-export", graphs, "--machine", machine)
    code, out, err = cli("import", "nccl", box, "--nodes", "2", "--version", "2.27", *exports)
    assert code == 0, err
    assert "NCCL 2.27.7" in out
    assert Path(copy).read_text() == Path(box).read_text()
    assert "<graphs" in Path(graphs).read_text()
    assert pc.Machine.from_file(machine).hosts == 2
    found = cli.json("import", "nccl", "dgx-a100-80g", "--nodes", "2")
    assert (found["nRanks"], found["nChannels"]) == (16, 16)


def test_bad_input_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli = Cli(capsys)
    path = tmp_path / "bad.xml"
    for text, message in [
        ("<system>", "is no XML: line 1"),
        (BOX, "could be network cards. Say what to add"),
        (BOX.replace("cpu", "cpux"), "<cpux> of line 2 in a <system>"),
        ("<system version='1'/>", "No <gpu> elements"),
    ]:
        path.write_text(text)
        code, out, err = cli("import", "nccl", str(path))
        assert (code, out) == (2, "")
        assert message in err
    path.write_text(BOX)
    code, _, err = cli("import", "nccl", str(path), "--sm", "80", "--nodes", "2")
    assert code == 2
    assert "--net-gbit" in err


def test_oracles(capsys: pytest.CaptureFixture[str]) -> None:
    shared = os.environ.get("PLANCAST_SHARED_DATA")
    if shared is None:
        pytest.skip("PLANCAST_SHARED_DATA is not set")
    oracle = json.loads(Path(shared, "oracles/nccl/dgx_a100_n4_v230.json").read_text())
    topology = str(Path(shared, "topologies/dgx_a100.xml"))
    found = Cli(capsys).json("import", "nccl", topology, "--nodes", "4", "--version", "2.30")
    for field in ("graphs", "gpuPaths", "rings", "trees_per_rank_per_channel_up_down"):
        assert found[field] == oracle[field]
