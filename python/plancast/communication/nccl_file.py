"""NCCL's topology files, and the machines that they describe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plancast import _core, arguments, files
from plancast.errors import InputError


def read(path: str | Path) -> _core.NcclTopology:
    """The topology that a file describes."""
    return _core.NcclTopology.read(files.read_text(path), str(path))


def machine(
    topology: _core.NcclTopology, nodes: int | None, fabric: str
) -> tuple[_core.Machine, list[str]]:
    """`nodes` such hosts as a machine, and what was assumed."""
    check_filled(topology)
    return topology.machine(hosts(topology, nodes), fabric)


def hosts(topology: _core.NcclTopology, nodes: int | None) -> int:
    """How many hosts are meant: as many as the topology was made from if nothing is said."""
    return topology.count if nodes is None else whole(nodes, "nodes", 1, 1_000_000)


def check_filled(topology: _core.NcclTopology) -> None:
    """Raises InputError for a skeleton, with what it lacks."""
    missing = topology.missing()
    if missing:
        raise InputError(
            f"{' '.join(missing)} It is a skeleton, which NCCL fills at run time: fill it (sm, "
            "nvlinks, net_gbit_per_s), or write the whole with "
            "NCCL_TOPO_DUMP_FILE=topo.xml <any NCCL program>."
        )


def whole(value: Any, what: str, least: int, most: int) -> int:
    """A whole number between bounds."""
    if not arguments.is_whole(value) or not least <= value <= most:
        raise InputError(f"`{what}` is `{value!r}`; give a whole number from {least} to {most}.")
    return int(value)
