"""SimAI's workloads as Chakra traces, and run as such."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plancast import _core
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.communication.simai import SimAiWork, SimAiWorkload
    from plancast.machine import Machine

# Of Chakra's protobuf (proto/chakra.proto): types of nodes and of collectives.
_COMPUTE, _COLLECTIVE = 4, 7
_TYPES = {"all_reduce": 0, "all_gather": 2, "all_to_all": 6, "reduce_scatter": 7}
# Of a set of traces, as they are read.
_MOST_RANKS, _MOST_NODES = 65_536, 16_000_000
_GROUPS = ("tp", "dp", "ep", "dp_ep")


@dataclass(frozen=True)
class SimAiRun:
    """A step of a workload, seconds.

    `stage_s` is that of one pipeline stage with all of its micro-batches, `kernels_s` the kernels
    of a rank in it; `bubble_s` what the pipeline adds, and `messages_s` its messages.
    """

    time_s: float
    stage_s: float
    kernels_s: float
    bubble_s: float
    messages_s: float
    ranks: int


def run(workload: SimAiWorkload, machine: Machine) -> SimAiRun:
    """A stage on the first devices of a machine, and what the pipeline adds to it."""
    if workload.gpus > machine.devices:
        raise InputError(
            f"the workload is of {workload.gpus:,} GPUs and `{machine.name}` has "
            f"{machine.devices:,}. Give more hosts."
        )
    read = _core.ChakraTraces.read((f"rank {rank}", text) for rank, text in traces(workload))
    result = _core.run_traces(read, machine._core, (groups_json(workload), "the groups"))
    stage = result.time_s
    bubble = stage * (workload.pp - 1) / (workload.ga * workload.vpp)
    messages = 0.0
    if workload.pp > 1 and workload.pp_bytes:
        from plancast.communication.collective_table import collective_seconds

        ends = [0, workload.ranks]
        each = collective_seconds(machine, "send_recv", ends, workload.pp_bytes)
        messages = 2 * workload.vpp * workload.ga * each
    return SimAiRun(
        time_s=stage + bubble + messages,
        stage_s=stage,
        kernels_s=max(kernels for _, kernels, _, _ in result.ranks),
        bubble_s=bubble,
        messages_s=messages,
        ranks=workload.ranks,
    )


def groups_json(workload: SimAiWorkload) -> str:
    """The groups of a stage as `--comm-groups` takes them; those of one rank are left out."""
    found = {}
    for kind in _GROUPS:
        if workload.size_of(kind) > 1:
            for rank in range(workload.ranks):
                if workload.first_of(rank, kind) == rank:
                    members = workload.group_of(rank, kind)
                    found[str(_number(workload, rank, kind))] = list(members)
    return json.dumps(found)


def _number(workload: SimAiWorkload, rank: int, kind: str) -> int:
    """Of a group: its kind and its first rank."""
    return 1 + _GROUPS.index(kind) * workload.ranks + workload.first_of(rank, kind)


def traces(workload: SimAiWorkload) -> Iterator[tuple[int, bytes]]:
    """The Chakra trace of each rank of a stage.

    Forward layer after layer, each collective before the next layer; back from the last one:
    input gradient, its collective, weight gradient, whose collective goes beside what follows.
    """
    plan = _plan(workload)
    if workload.ranks > _MOST_RANKS or len(plan) * workload.ranks > _MOST_NODES:
        raise InputError(
            f"a stage of {workload.ranks:,} ranks with {len(plan):,} nodes each is more than is "
            f"run: at most {_MOST_RANKS:,} ranks and {_MOST_NODES:,} nodes together. Cut layers or "
            "micro-batches."
        )
    for rank in range(workload.ranks):
        groups = {
            kind: str(_number(workload, rank, kind)).encode()
            for kind in _GROUPS
            if workload.size_of(kind) > 1
        }
        messages = [_framed(_text(1, b"0.0.4"))]
        for head, group in plan:
            of = b"" if group is None else _attribute(b"pg_name", _text(29, groups[group]))
            messages.append(_framed(head + of))
        yield rank, b"".join(messages)


def _plan(workload: SimAiWorkload) -> list[tuple[bytes, str | None]]:
    """Nodes without the group that differs from rank to rank, and its kind."""
    nodes: list[tuple[bytes, str | None]] = []
    after: int | None = None
    owed_ns = 0

    def add(kind: int, name: str, deps: int | None, rest: bytes, group: str | None) -> int:
        number = len(nodes) + 1
        head = _whole(1, number) + _text(2, name.encode()) + _whole(3, kind)
        if deps is not None:
            head += _whole(5, deps)
        nodes.append((head + rest, group))
        return number

    def work(name: str, what: SimAiWork, *, beside: bool = False) -> None:
        nonlocal after, owed_ns
        # Whole microseconds; what is cut off is paid by a later kernel.
        microseconds, owed_ns = divmod(what.ns + owed_ns, 1000)
        if microseconds:
            after = add(_COMPUTE, name, after, _whole(7, microseconds), None)
        members = workload.size_of(what.group) if what.op else 1
        if members < 2:
            return
        # Chakra counts what one rank gives to an all-gather.
        size = -(-what.bytes // members) if what.op == "all_gather" else what.bytes
        facts = _attribute(b"comm_type", _whole(9, _TYPES[what.op]))
        facts += _attribute(b"comm_size", _whole(9, size))
        sent = add(_COLLECTIVE, f"{name} {what.op}", after, facts, what.group)
        if not beside:
            after = sent

    for layer in workload.layers:
        work(f"{layer.name} forward", layer.forward)
    for layer in reversed(workload.layers):
        work(f"{layer.name} input gradient", layer.input_gradient)
        work(f"{layer.name} weight gradient", layer.weight_gradient, beside=True)
    if not nodes:
        add(_COMPUTE, "nothing", None, b"", None)
    return nodes


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _whole(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _attribute(name: bytes, value: bytes) -> bytes:
    return _text(10, _text(1, name) + value)


def _framed(message: bytes) -> bytes:
    return _varint(len(message)) + message
