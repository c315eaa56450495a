"""Hosts as NCCL sees them: topology files, and what its search and tuner make of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plancast import _core, arguments
from plancast.checked import checked
from plancast.communication import nccl_file
from plancast.errors import InputError
from plancast.machine import Machine


@checked
class Topology:
    """An NCCL topology: one host, or the hosts of one NVLink domain.

    >>> topology = Topology.from_machine(Machine.preset("dgx-h100", hosts=2))
    >>> found = topology.search()
    >>> found["nRanks"], found["graphs"]["ring"]["nChannels"], found["nChannels"]
    (16, 8, 16)
    """

    __slots__ = ("_core",)

    def __init__(self, core: _core.NcclTopology) -> None:
        self._core = core

    @classmethod
    def from_file(cls, path: str | Path) -> Topology:
        """What `NCCL_TOPO_DUMP_FILE` wrote, or a cloud vendor's skeleton."""
        return cls(nccl_file.read(path))

    @classmethod
    def from_xml(cls, text: str, *, what: str = "topology") -> Topology:
        """A topology from its XML; `what` names the text in errors."""
        return cls(_core.NcclTopology.read(text, what))

    @classmethod
    def from_machine(cls, machine: Machine) -> Topology:
        """The hosts of a machine, with `assumptions` where it says too little."""
        return cls(_core.NcclTopology.of_machine(machine._core))

    def __repr__(self) -> str:
        system = self.to_xml()
        return f"<Topology of {self.count} hosts with {system.count('<gpu ')} GPUs each>"

    @property
    def count(self) -> int:
        """How many such hosts (or domains) the machine has that this was made from; else 1."""
        return self._core.count

    @property
    def assumptions(self) -> list[str]:
        """What was assumed or added, one sentence each."""
        return self._core.assumptions

    def missing(self) -> list[str]:
        """What NCCL would fill in at run time, one sentence each; `fill` does it here."""
        return self._core.missing()

    def fill(
        self,
        *,
        sm: int | None = None,
        nvlinks: int = 0,
        net_gbit_per_s: float | None = None,
        gdr: bool = True,
    ) -> Topology:
        """A copy with what a skeleton lacks.

        Args:
          sm: compute capability of the GPUs, 90 for Hopper.
          nvlinks: NVLinks of each GPU to NVSwitches.
          net_gbit_per_s: speed of each network device.
          gdr: whether network devices reach the memory of GPUs directly.
        """
        if sm is not None:
            sm = nccl_file.whole(sm, "sm", 30, 999)
        nvlinks = nccl_file.whole(nvlinks, "nvlinks", 0, 1024)
        mbit = None
        if net_gbit_per_s is not None:
            gbit = arguments.number(net_gbit_per_s, "net_gbit_per_s")
            if not 0.001 <= gbit <= 100_000:
                raise InputError(f"`net_gbit_per_s` is {gbit:g}; give 0.001 to 100000 Gbit/s.")
            mbit = round(1000 * gbit)
        return Topology(self._core.filled(sm, nvlinks, mbit, gdr))

    def to_xml(self) -> str:
        """A file that NCCL reads (`NCCL_TOPO_FILE`), and `from_xml` back."""
        return self._core.to_xml()

    def search(
        self, *, nodes: int | None = None, version: str = "2.30", collnet: bool = False
    ) -> dict[str, Any]:
        """What NCCL finds on `nodes` such hosts: graphs, paths, rings, trees, tuning and times.

        GB/s are 1e9 bytes per second, times microseconds; names are NCCL's.
        """
        nccl_file.check_filled(self._core)
        found: dict[str, Any] = json.loads(
            self._core.search_json(nccl_file.hosts(self._core, nodes), version, collnet)
        )
        return found

    def graphs_xml(
        self, *, nodes: int | None = None, version: str = "2.30", collnet: bool = False
    ) -> str:
        """The graphs of one host as `NCCL_GRAPH_DUMP_FILE` has them."""
        nccl_file.check_filled(self._core)
        return self._core.graphs_xml(nccl_file.hosts(self._core, nodes), version, collnet)

    def machine(self, *, nodes: int | None = None, fabric: str = "") -> tuple[Machine, list[str]]:
        """`nodes` such hosts as a machine, and what was assumed."""
        core, assumptions = nccl_file.machine(self._core, nodes, fabric)
        return Machine(core), assumptions
