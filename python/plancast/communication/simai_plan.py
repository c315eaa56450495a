"""A plan as a workload of SimAI: what rank 0 of its Chakra traces does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from plancast import _core, arguments
from plancast.checked import checked
from plancast.communication.simai import SimAiLayer, SimAiWork, SimAiWorkload
from plancast.errors import InputError
from plancast.planning import predict
from plancast.session import Session
from plancast.strategy import Strategy

if TYPE_CHECKING:
    from plancast.machine import Machine
    from plancast.model import Model

_COMPUTE, _SEND, _RECEIVE, _COLLECTIVE = 4, 5, 6, 7
_OPS = {0: "all_reduce", 2: "all_gather", 6: "all_to_all", 7: "reduce_scatter"}
_NOTHING = SimAiWork(0, "", "", 0)
_HOW = ("batch", "dtype", "profile", "session")
# Scalars such as the norm of all gradients, whose groups SimAI has no word for, bytes.
_SCALAR = 64


class _Node(NamedTuple):
    """A node of a Chakra trace, as far as SimAI has words for it."""

    kind: int
    name: str
    microseconds: int
    facts: dict[str, Any]


@checked
def simai_workload(
    model: Model, machine: Machine, strategy: Strategy | str, **how: Any
) -> SimAiWorkload:
    """A plan as a workload of SimAI: what its rank 0 does, in the order of issue.

    SimAI knows no collective that waits for none but the gradients': those of tp and ep stand in
    the way of what follows. What crosses between stages is one figure, `pp_comm`. Scalars over
    other ranks, such as the norm of all gradients, are left out.

    Args:
      model: what is trained.
      machine: where.
      strategy: a tree, or its short form.
      how: `batch`, `dtype`, `profile` and `session`, as for `predict`.

    Raises:
      InputError: the plan has groups of ranks that SimAI has not.

    >>> from plancast import Machine, Model
    >>> simai_workload(Model.preset("gpt2"), Machine.preset("dgx-h100"), "tp=2,sp,zero=1,mb=4",
    ...     batch=16)
    <SimAiWorkload on tp=2, dp=4, pp=1, ep=1: 132 layers>
    """
    for key in how:
        if key not in _HOW:
            raise InputError(f"no option `{key}`.{arguments.offer(key, _HOW)}")
    session = how.pop("session", None) or Session()
    chosen = predict(model, machine, strategy, session=session, **how).chosen
    tree = Strategy.parse(strategy) if isinstance(strategy, str) else strategy
    traces = _core.plan_traces(
        model._core,
        machine._core,
        tree._core,
        session._core,
        batch=how.get("batch"),
        dtype=how.get("dtype", "bf16"),
        profile=how.get("profile", "megatron-core"),
    )
    missing = [key for key in ("tp", "pp", "vpp", "accum") if not chosen.get(key, "").isdecimal()]
    if missing:
        raise InputError("stages with meshes of their own have no workload of SimAI.")
    header = SimAiWorkload(
        tp=int(chosen["tp"]),
        ep=int(chosen.get("ep", "1")),
        pp=int(chosen["pp"]),
        vpp=int(chosen["vpp"]),
        ga=int(chosen["accum"]),
        gpus=traces.ranks,
        pp_bytes=0,
        layers=(),
    )
    nodes = list(_nodes(traces.trace(0)))
    messages = [node.facts["comm_size"] for node in nodes if node.kind in (_SEND, _RECEIVE)]
    groups = json.loads(traces.groups() or "{}")
    layers = _layers(nodes, header, {key: tuple(ranks) for key, ranks in groups.items()})
    sizes = {**vars(header), "pp_bytes": max(messages, default=0), "layers": tuple(layers)}
    return SimAiWorkload(**sizes)


def _layers(
    nodes: list[_Node], header: SimAiWorkload, groups: dict[str, tuple[int, ...]]
) -> list[SimAiLayer]:
    """Up to the first collective that stands in nobody's way forward, the rest backward.

    SimAI goes through lines from first to last and back again, so lines of the second part are in
    reverse order and have nothing forward.
    """
    forward: list[SimAiLayer] = []
    backward: list[SimAiLayer] = []
    spent = 0
    for node in nodes:
        spent += node.microseconds * 1000 if node.kind == _COMPUTE else 0
        if node.kind != _COLLECTIVE:
            continue
        group = _group(node, header, groups)
        if group is None:
            continue
        size = int(node.facts["comm_size"])
        op = _OPS.get(node.facts["comm_type"], "")
        if not op:
            raise InputError(f"`{node.name}` is a collective that SimAI has not.")
        # Chakra counts what one rank gives to an all-gather, SimAI what comes out.
        total = size * header.size_of(group) if op == "all_gather" else size
        name = "_".join(node.name.split()) or op
        work = SimAiWork(spent, op, group, total)
        if group in ("dp", "dp_ep"):
            compute = SimAiWork(spent, "", "", 0)
            behind = SimAiWork(0, op, group, total)
            backward.append(SimAiLayer(name, _NOTHING, compute, behind, 0))
        elif backward:
            backward.append(SimAiLayer(name, _NOTHING, work, _NOTHING, 0))
        else:
            forward.append(SimAiLayer(name, work, _NOTHING, _NOTHING, 0))
        spent = 0
    rest = SimAiWork(spent, "", "", 0)
    if backward:
        backward.append(SimAiLayer("rest", _NOTHING, rest, _NOTHING, 0))
    elif spent or not forward:
        forward.append(SimAiLayer("rest", rest, _NOTHING, _NOTHING, 0))
    return [*forward, *reversed(backward)]


def _group(node: _Node, header: SimAiWorkload, groups: dict[str, tuple[int, ...]]) -> str | None:
    """SimAI's word for the ranks of a collective; None: it is of one rank, or a scalar."""
    key = node.facts.get("pg_name", "")
    members = groups.get(key, tuple(range(header.gpus)))
    if len(members) < 2:
        return None
    for kind in ("tp", "ep", "dp_ep", "dp"):
        if header.group_of(0, kind) == tuple(sorted(members)):
            # Where experts are not spread, all of dp is meant.
            return "dp" if kind == "dp_ep" and header.ep == 1 else kind
    if node.facts["comm_size"] <= _SCALAR:
        return None
    shown = ", ".join(map(str, members[:6]))
    raise InputError(
        f"`{node.name}` is over ranks {shown}{', ...' if len(members) > 6 else ''}, and SimAI has "
        "only groups of tp, dp, ep and what is left of dp beside ep."
    )


def _nodes(trace: bytes) -> Iterator[_Node]:
    """Nodes of a Chakra trace that we wrote (proto/chakra.proto)."""
    at, number = 0, 0
    while at < len(trace):
        size, at = _varint(trace, at)
        if number > 0:  # the first message is about the file
            kind = microseconds = 0
            name, facts = "", {}
            for field, value in _fields(trace[at : at + size]):
                if field == 2:
                    name = value.decode()
                elif field == 3:
                    kind = value
                elif field == 7:
                    microseconds = value
                elif field == 10:
                    parts = dict(_fields(value))
                    fact = parts.get(29, parts.get(9))
                    facts[parts[1].decode()] = fact.decode() if isinstance(fact, bytes) else fact
            yield _Node(kind, name, microseconds, facts)
        at += size
        number += 1


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        value, at = _varint(message, at)
        if tag & 7 == 2:
            yield tag >> 3, message[at : at + value]
            at += value
        else:
            yield tag >> 3, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
