"""SimCCL's table of flows: the messages of a collective as SimAI simulates them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from plancast.communication.flow_list import Flow
from plancast.errors import InputError

# Of SimCCL 2.30's table: its names of collectives, and NCCL's numbers of algorithms.
_OPS = {
    "all_reduce": "AllReduce", "all_gather": "AllGather", "reduce_scatter": "ReduceScatter",
    "all_to_all": "AlltoAll", "broadcast": "Broadcast",
}  # fmt: skip
_ALGORITHMS = {"tree": 0, "ring": 1, "nvls": 4, "nvls_tree": 5, "pat": 6}
# How it labels their messages, inside of hosts and between them; of PAT an assumption.
_LABELS = {"tree": "TREE_INIT", "nvls": "NVLS", "nvls_tree": "NVLS_TREE", "pat": "PAT"}
_COLUMNS = (
    "collective", "op", "data_size", "algorithm", "protocol", "channel_id", "flow_id", "src",
    "dest", "flow_size", "chunk_id", "chunk_count", "conn_type", "parent_flow_ids",
    "prev_flow_ids",
)  # fmt: skip
# In how many pieces a buffer goes through a switch (`genAllreduceNVLSFlowModels` of SimAI's mock
# of NCCL, in the parent of commit 632e1469).
_SWITCH_PIECES = 4


class _Message(NamedTuple):
    """A flow as the table has it: with its piece, and what was sent where it leaves before."""

    channel: int
    src: int
    dst: int
    bytes: int
    piece: int
    parents: tuple[int, ...]
    earlier: tuple[int, ...]


def to_simccl(of: Sequence[Flow], *, op: str, bytes: int, algorithm: str = "ring") -> str:
    """The table `ncclFlowModel_detailed_flows.csv` of SimCCL's standalone program, version 2.30.

    A message waits for what arrived where it leaves (`parent_flow_ids`). `prev_flow_ids` has
    ranks, whatever its name: those that sent that, or of a first message all that send there on
    its channel. `op` is 0, a sum; `protocol` -1, for flows have none; `chunk_id` is the step, of
    `chunk_count` steps; `conn_type` goes by the algorithm.

    An all-reduce through a switch (`nvls`) has the messages that SimAI simulates, not NCCL's:
    each rank sends all of its buffer to the switch and has it back, in four pieces.

    >>> from plancast.communication.flow_list import flows
    >>> print(to_simccl(flows("all_gather", gpus=2, bytes=8), op="all_gather", bytes=8), end="")
    ... # doctest: +ELLIPSIS
    collective,op,data_size,algorithm,protocol,channel_id,flow_id,src,dest,flow_size,...
    AllGather,0,8,1,-1,0,0,0,1,4,0,1,RING,,1
    AllGather,0,8,1,-1,0,1,1,0,4,0,1,RING,,0

    Raises:
      InputError: SimCCL has no such collective or algorithm.
    """
    if op not in _OPS:
        known = ", ".join(f"`{name}`" for name in _OPS)
        raise InputError(f"SimCCL's table has no `{op}`; it has {known}.")
    if algorithm not in _ALGORITHMS and op != "all_to_all":
        known = ", ".join(f"`{name}`" for name in _ALGORITHMS)
        raise InputError(f"SimCCL's table has no number for `{algorithm}`; it has {known}.")
    number = _ALGORITHMS.get(algorithm, _ALGORITHMS["ring"])
    label = _LABELS.get(algorithm, "RING")
    through_switch = algorithm == "nvls" and op == "all_reduce"
    messages = _through_switch(of, bytes) if through_switch else _as_sent(of)
    pieces = 1 + max((message.piece for message in messages), default=-1)
    lines = [",".join(_COLUMNS)]
    for at, message in enumerate(messages):
        lines.append(
            f"{_OPS[op]},0,{bytes},{number},-1,{message.channel},{at},{message.src},"
            f"{message.dst},{message.bytes},{message.piece},{pieces},{label},"
            f"{' '.join(map(str, message.parents))},{' '.join(map(str, message.earlier))}"
        )
    return "\n".join(lines) + "\n"


def _as_sent(of: Sequence[Flow]) -> list[_Message]:
    senders: dict[tuple[int, int], set[int]] = {}
    for flow in of:
        senders.setdefault((flow.channel, flow.dst), set()).add(flow.src)
    messages = []
    for flow in of:
        parents = tuple(dep for dep in flow.deps if of[dep].dst == flow.src)
        ranks = {of[dep].src for dep in parents} or senders.get((flow.channel, flow.src), set())
        earlier = tuple(sorted(ranks))
        messages.append(
            _Message(flow.channel, flow.src, flow.dst, flow.bytes, flow.step, parents, earlier)
        )
    return messages


def _through_switch(of: Sequence[Flow], bytes: int) -> list[_Message]:
    """Of the ranks of `of`, whose last is the switch. The last piece has the bytes left over."""
    switch = max((max(flow.src, flow.dst) for flow in of), default=0)
    ranks = range(switch)
    messages: list[_Message] = []
    for piece in range(_SWITCH_PIECES):
        size = bytes // _SWITCH_PIECES
        if piece == _SWITCH_PIECES - 1:
            size = bytes - piece * size
        up = tuple(range(len(messages), len(messages) + len(ranks)))
        messages += [_Message(0, rank, switch, size, piece, (), (switch,)) for rank in ranks]
        messages += [_Message(0, switch, rank, size, piece, up, tuple(ranks)) for rank in ranks]
    return messages
