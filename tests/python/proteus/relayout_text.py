"""The text that the compiler's pass `relayout` leaves, read: which op reads and writes what."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

Layout = dict[str, str]  # by mesh axis: `Shard(0)`, `Partial(sum)`

_OP = re.compile(r"  ([FBW]) (\S+): \S+?\((.*)\) -> (.*)")
_MOVED = re.compile(r"  ([FBW]) relayout (.*?)\[[^\]]*\] -> .*")
_SUM = re.compile(r"  ([FBW]) sum\(")
_GRADIENT = re.compile(r"  gradient of (.*) \[(.*)\]")
_OPERAND = re.compile(r"([^,\[\]]+)\[([^\]]*)\]|-")
_IN_PARTITION = re.compile(r"in \S+ \[(.*)\]")


@dataclass(frozen=True)
class Operand:
    """A tensor by its name in the module; data of the training set have none."""

    name: str
    layout: Layout = field(compare=False, default_factory=dict)


@dataclass(frozen=True)
class Op:
    """An op of a body; `phase` is F, B or W (weight gradients)."""

    phase: str
    name: str
    reads: tuple[Operand, ...]
    writes: tuple[Operand, ...]

    def on(self) -> Layout:
        """The ranks that run it, by axis, where not all do."""
        of = [one.layout for one in (*self.writes, *self.reads)]
        return {axis: how for one in of for axis, how in one.items() if how.startswith("On(")}


@dataclass
class Body:
    """A module after the pass."""

    ops: list[Op] = field(default_factory=list)
    gradients: dict[str, Layout] = field(default_factory=dict)
    # Tensors that go in one exchange, F forward and B backward.
    joined: dict[str, list[str]] = field(default_factory=dict)


def layout(text: str) -> Layout:
    """`dp: Shard(0), tp: Partial(sum)`, read."""
    parts = re.findall(r"([\w.]+): (\w+\([^)]*\))", text)
    return dict(parts)


def _operands(text: str) -> tuple[Operand, ...]:
    found = []
    for match in _OPERAND.finditer(text):
        name, where = match.groups()
        found.append(Operand("") if name is None else Operand(name.strip(), layout(where)))
    return tuple(found)


def bodies(relayout: str, partition: str) -> dict[str, Body]:
    """Bodies by the path of their module."""
    found: dict[str, Body] = {}
    body = Body()
    data = _inputs(partition)
    for line in relayout.splitlines():
        if line.startswith("body "):
            path = line.removeprefix("body ")
            body = found[path] = Body()
        elif match := _OP.fullmatch(line):
            phase, name, reads, writes = match.groups()
            read = _operands(reads)
            if phase == "F":
                wanted = data[path, name]
                read = tuple(
                    Operand("", wanted[i]) if not one.name else one for i, one in enumerate(read)
                )
            body.ops.append(Op(phase, name, read, _operands(writes)))
        elif (match := _MOVED.fullmatch(line)) and line.endswith("with the others"):
            body.joined.setdefault("F" if match[1] == "F" else "B", []).append(match[2])
        elif match := _GRADIENT.fullmatch(line):
            body.gradients[match[1]] = layout(match[2])
    return found


def _inputs(partition: str) -> dict[tuple[str, str], list[Layout]]:
    """Layouts that each forward op reads, which the other pass does not say of data."""
    found: dict[tuple[str, str], list[Layout]] = {}
    path, rows = "", []
    for line in partition.splitlines():
        if line.startswith("body "):
            path = line.removeprefix("body ")
        elif match := _IN_PARTITION.fullmatch(line):
            rows.append(layout(match[1]))
        elif line.startswith("  ") and len(line.split()) == 2:
            rows = found.setdefault((path, line.split()[0]), [])
    return found
