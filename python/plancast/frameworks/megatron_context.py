"""How Megatron's ranks of context parallelism exchange keys and values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.frameworks import table
    from plancast.frameworks.plan import Plan

# `--cp-comm-type` by the plan's word.
_COMM_TYPES = {"ring_zigzag": "p2p", "allgather": "all_gather", "ulysses": "a2a"}
_HYBRID = "a2a+p2p"


def read(facts: table.Facts, what: str) -> str | None:
    """The plan's `cp_type`; None where the file says nothing."""
    if "cp_comm" not in facts:
        return None
    said = facts["cp_comm"]
    words = said.split() if isinstance(said, str) else [str(word) for word in said or ["p2p"]]
    if len(set(words)) > 1:
        facts.cannot_say(
            f"{facts.key('cp_comm')} differs from layer to layer; all are read as the first."
        )
    if words[0] == _HYBRID:
        return f"hybrid:{_head_ranks(facts, what)}"
    for cp_type, word in _COMM_TYPES.items():
        if word == words[0]:
            return cp_type
    from plancast.arguments import offer

    raise InputError(
        f"{what}: {facts.key('cp_comm')} is `{words[0]}`."
        f"{offer(words[0], [*_COMM_TYPES.values(), _HYBRID])}"
    )


def _head_ranks(facts: table.Facts, what: str) -> int:
    """Ranks among which a2a+p2p exchanges heads: the first of the two sizes."""
    try:
        first, second = (int(word) for word in facts["cp_levels"] or ())
    except ValueError:
        raise InputError(
            f"{what}: {facts.key('cp_comm')} is `{_HYBRID}`, which needs two numbers in "
            f"{facts.key('cp_levels')}: the ranks of the all-to-all and of the ring."
        ) from None
    if first < 1 or first * second != facts["cp"]:
        raise InputError(
            f"{what}: {facts.key('cp_levels')} are {first} and {second}, whose product is not "
            f"{facts.key('cp')}, {facts['cp']}."
        )
    return first


def write(plan: Plan, cp: int) -> dict[str, Any]:
    """The settings of the plan's `cp_type`."""
    cp_type = plan.take("cp_type")
    if cp_type is None or cp == 1:
        return {}
    kind, _, head_ranks = cp_type.partition(":")
    if kind == "hybrid":
        return {"cp_comm": _HYBRID, "cp_levels": [head_ranks, str(cp // int(head_ranks))]}
    if kind not in _COMM_TYPES:
        why = "its ring gives each rank a piece of both halves of the sequence."
        plan.refuse(f"cp_type={cp_type}", why, "cp_type=ring_zigzag")
    return {"cp_comm": _COMM_TYPES[kind]}
