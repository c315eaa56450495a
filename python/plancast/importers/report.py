"""What an import recognised, and what it did not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from plancast.importers.ir import Node
from plancast.importers.lower import Lowered


@dataclass(frozen=True)
class Unknown:
    """Ops of one kind that no rule is known for: `count` of them, first met in module `path`.

    `bytes_share` is their part of the bytes that all ops read and write.
    """

    name: str
    path: str
    count: int
    bytes_share: float


@dataclass(frozen=True)
class ImportReport:
    """`ops` of the model in all, and those that are opaque: cut over the batch only, without
    FLOPs, priced by the bytes they read and write."""

    ops: int
    unknown: tuple[Unknown, ...]

    @property
    def ops_share(self) -> float:
        """Part of the ops that are opaque."""
        return sum(entry.count for entry in self.unknown) / max(1, self.ops)

    @property
    def bytes_share(self) -> float:
        """Part of all bytes that opaque ops read and write."""
        return sum(entry.bytes_share for entry in self.unknown)

    def warnings(self) -> list[str]:
        """One line for each kind of unknown op."""
        return [
            f"`{entry.name}` (x {entry.count}, first in `{entry.path or 'the model'}`) is not "
            f"known: it counts with its bytes ({entry.bytes_share:.1%} of all), without FLOPs, "
            "and is cut over the batch only"
            for entry in self.unknown
        ]

    def __str__(self) -> str:
        lines = [f"{self.ops} ops, {sum(entry.count for entry in self.unknown)} of them unknown"]
        return "\n".join([*lines, *self.warnings()])


def report(lowered: Lowered) -> ImportReport:
    """The report of a lowered graph."""
    total = sum(_bytes(op.node) for op in lowered.ops) or 1
    opaque = {id(node) for node in lowered.failures}
    entries: dict[str, list[Node]] = {}
    for op in lowered.ops:
        if op.node.op == "opaque" or id(op.node) in opaque:
            entries.setdefault(str(op.node.attrs.get("source", op.node.rule)), []).append(op.node)
    unknown = tuple(
        Unknown(name, nodes[0].path, len(nodes), sum(map(_bytes, nodes)) / total)
        for name, nodes in entries.items()
    )
    return ImportReport(len(lowered.ops), unknown)


def _bytes(node: Node) -> int:
    """Elements read and written, as a measure of bytes."""
    return _sum(node.inputs) + _sum(node.outputs)


def _sum(values: Iterable[object]) -> int:
    return sum(getattr(value, "elements", 0) for value in values)
