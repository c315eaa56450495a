"""Flows: the messages of a collective one by one, for network simulators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from plancast import _core, arguments
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.communication.algorithms import Algorithm
    from plancast.communication.nccl import Topology
    from plancast.machine import Machine


_MOST_NODES = 4096


class Flow(NamedTuple):
    """One message.

    Attributes:
      id: counts from 0; whatever a flow depends on has a lower one.
      src: the rank that sends it.
      dst: the rank that receives it.
      bytes: its size.
      channel: of the library that sends it.
      step: messages before it on the longest way.
      deps: flows that must have arrived at `src`, or been sent by it, before.
    """

    id: int
    src: int
    dst: int
    bytes: int
    channel: int
    step: int
    deps: tuple[int, ...]


def flows(
    op: str | Algorithm,
    machine: Machine | Topology | str | None = None,
    gpus: int | Sequence[int] | None = None,
    bytes: int | None = None,
    *,
    algorithm: str = "ring",
    channels: int | None = None,
    nodes: int | None = None,
    version: str = "2.30",
    root: int = 0,
) -> list[Flow]:
    """The messages of a collective, in an order in which they can be sent.

    Args:
      op: `all_reduce`, `all_gather`, ..., or an algorithm, whose flows these are.
      machine: whose devices 0, 1, ... are the ranks; of an NCCL topology the rings and
        trees are those that NCCL finds. Its file, or what `-c` takes, will do.
      gpus: how many ranks, or of each level, innermost first: [8, 4] are four hosts of
        eight. Default: all of the machine.
      bytes: of the buffer, as nccl-tests count it.
      algorithm: `ring`, `tree`, `direct`, `halving_doubling`, `hierarchical`, ...
      channels: parts of the data that move side by side; default 1 (a topology: all
        channels that NCCL uses). They do not change sums of bytes.
      nodes: hosts with a topology's figures; default: as many as it was made from.
      version: of NCCL, for a topology.
      root: of broadcast, reduce, gather, scatter.

    >>> ring = flows("all_reduce", gpus=8, bytes=4 << 20)
    >>> len(ring), ring[-1].step, sum(flow.bytes for flow in ring) >> 20
    (112, 13, 56)
    >>> ring[8]
    Flow(id=8, src=0, dst=1, bytes=524288, channel=0, step=1, deps=(0, 7))
    """
    from plancast.communication.algorithms import Algorithm
    from plancast.communication.nccl import Topology
    from plancast.machine import Machine

    if arguments.is_whole(machine):
        raise InputError(
            f"`machine` is {machine}, which is no machine. Of so many ranks without one, say "
            f'`gpus={machine}`; of a machine, give it, such as `Machine.preset("dgx-h100")`.'
        )
    if isinstance(machine, str):
        is_topology = machine.endswith(".xml")
        machine = Topology.from_file(machine) if is_topology else Machine.open(machine)
    if machine is not None and not isinstance(machine, Topology):
        arguments.instance(machine, Machine, "machine", 'Machine.preset("dgx-h100")')
    gpus = _counts(gpus)
    if bytes is None:
        raise InputError("flows need `bytes`, the size of the buffer.")
    size = arguments.whole(bytes, "bytes", 0, arguments.MOST_BYTES)
    if channels is not None:
        arguments.whole(channels, "channels", 1, 1024)
    arguments.whole(root, "root", 0, arguments.MOST_RANKS)
    if isinstance(op, Algorithm):
        return _flows(_core.flows(op._core, bytes=size))
    arguments.word(op, "op")
    arguments.word(algorithm, "algorithm")
    if isinstance(machine, Topology) and algorithm in ("ring", "tree"):
        return _along_nccl(op, machine, gpus, size, algorithm, channels, nodes, version, root)
    if isinstance(machine, Topology):
        machine, _ = machine.machine(nodes=nodes)
    levels = _levels(machine, gpus)
    made = Algorithm.make(op, algorithm, gpus=levels, channels=channels or 1, root=root)
    return _flows(_core.flows(made._core, bytes=size))


def to_csv(of: Sequence[Flow]) -> str:
    """A table `id,src,dst,bytes,channel,step,deps`; dependencies are separated by spaces.

    >>> print(to_csv(flows("all_gather", gpus=2, bytes=8)), end="")
    id,src,dst,bytes,channel,step,deps
    0,0,1,4,0,0,
    1,1,0,4,0,0,
    """
    lines = ["id,src,dst,bytes,channel,step,deps"]
    for flow in of:
        *head, deps = flow
        lines.append(",".join(map(str, head)) + "," + " ".join(map(str, deps)))
    return "\n".join(lines) + "\n"


def _flows(made: list[tuple[int, int, int, int, int, int, list[int]]]) -> list[Flow]:
    return [Flow(*flow[:6], deps=tuple(flow[6])) for flow in made]


def _counts(gpus: Any) -> int | list[int] | None:
    """`gpus` as it is meant; InputError of what are no counts."""
    if gpus is None:
        return None
    several = isinstance(gpus, Iterable) and not isinstance(gpus, str)
    levels = list(gpus) if several else [gpus]
    if not levels or not all(arguments.is_whole(level) and level > 0 for level in levels):
        raise InputError(
            f"`gpus` is `{gpus!r}`; give a number of ranks, such as 8, or of each level, [8, 4]."
        )
    return [int(level) for level in levels] if several else int(gpus)


def _levels(machine: Machine | None, gpus: int | Sequence[int] | None) -> list[int]:
    if machine is None:
        if gpus is None:
            raise InputError("flows need `gpus`, or a machine.")
        return arguments.levels(gpus)
    inner = machine.gpus_per_domain
    if gpus is None:
        gpus = machine.devices
    levels = arguments.levels(gpus)
    total = 1
    for level in levels:
        total *= level
    if total > machine.devices:
        raise InputError(
            f"flows of {total} ranks on `{machine.name}`, which has {machine.devices} devices. "
            "Use more hosts, or fewer ranks."
        )
    if len({section.gpus_per_domain for section in machine.sections}) > 1 and total > inner:
        raise InputError(
            f"flows of {total} ranks on hosts of unlike sizes (`{machine.name}`). Take a machine "
            "of equal ones."
        )
    if len(levels) == 1 and total > inner:
        if total % inner:
            raise InputError(
                f"flows of {total} ranks on hosts of {inner} devices. Use whole hosts, or up to "
                f"{inner} ranks."
            )
        return [inner, total // inner]
    return levels


def _along_nccl(
    op: str,
    topology: Topology,
    gpus: int | Sequence[int] | None,
    size: int,
    algorithm: str,
    channels: int | None,
    nodes: int | None,
    version: str,
    root: int,
) -> list[Flow]:
    if nodes is not None:  # NCCL's search is of every rank
        arguments.whole(nodes, "nodes", 1, _MOST_NODES)
    found = topology.search(nodes=nodes, version=version)
    if gpus is not None and gpus != found["nRanks"]:
        raise InputError(
            f"flows of {gpus} ranks along NCCL's channels, which join {found['nRanks']}. Leave "
            "`gpus` out, change `nodes`, or cut the topology."
        )
    if algorithm == "ring":
        rings = found["rings"][:channels]
        return _flows(_core.ring_flows(op, rings=rings, bytes=size, root=root))
    trees = [
        [(up, [d for d in down if d >= 0]) for up, down in rank[:channels]]
        for rank in found["trees_per_rank_per_channel_up_down"]
    ]
    return _flows(_core.tree_flows(op, trees=trees, bytes=size))
