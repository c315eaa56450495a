"""What Proteus's compiler made of a case: the files of data/oracles/proteus, as facts.

A fact is a tuple; both sides of a comparison are multisets of them. Views (reshape,
permute, split) are left out, and a view's result counts as what it is a view of.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any

VIEWS = ("Permute", "Reshape", "Split")
Shape = tuple[int, ...]
Groups = frozenset[frozenset[int]]
Fact = tuple[Any, ...]
Facts = Counter[Any]


def shape_of(sizes: list[int] | Shape) -> Shape:
    """A shape up to the order of its dims, which is the model's own."""
    return tuple(sorted(size for size in sizes if size != 1))


def groups_of(groups: list[list[int]]) -> Groups:
    """Groups of devices, which have no order."""
    return frozenset(frozenset(group) for group in groups)


class Theirs:
    """One file."""

    def __init__(self, path: Path) -> None:
        self.file: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        self.counts: dict[str, int] = self.file["counts"]
        self._stages = {stage["stage"]: stage for stage in self.file["stages"]}

    def stage_names(self, phase: str) -> list[str]:
        """`forward0`, `forward1`, ..., in order of the pipeline."""
        return sorted(name for name in self._stages if name.startswith(phase))

    @cached_property
    def ops(self) -> list[tuple[str, str]]:
        """Name and type of each forward op that computes, in order of creation."""
        rows = [
            row for name in self.stage_names("forward") for row in self._stages[name]["compute"]
        ]
        return [(row["op"], row["type"]) for row in rows if row["type"] not in VIEWS]

    @cached_property
    def created(self) -> list[str]:
        """Parameters in order of creation; the optimizer has an op for each."""
        rows = self._stages["optimizer"]["compute"]
        names = [row["op"].removeprefix("optimizer(").removesuffix(")") for row in rows]
        return [name.partition("@")[0] for name in names]

    @cached_property
    def _viewed(self) -> dict[str, str]:
        """Result of each view, or pool that changes nothing: what it is a view of."""
        found: dict[str, str] = {}
        last = ""
        for name in self.stage_names("forward"):
            for row in self._stages[name]["compute"]:
                identity = row["type"] == "AdaptivePool2d" and row["in"] == row["out"]
                if row["type"] in VIEWS or identity:
                    found[f"{row['op']}.out"] = last
                else:
                    last = f"{row['op']}.out"
        return found

    def tensor(self, name: str) -> str:
        """A tensor by the name of what it is a view or a copy (`@`) of."""
        inner = name.removeprefix("grad(").removesuffix(")").partition("@")[0]
        inner = self._viewed.get(inner, inner)
        return f"grad({inner})" if name.startswith("grad(") else inner

    def compute(self, phase: str) -> Facts:
        """(op, shapes of the parts read, of those written, devices) of each op that computes.

        Of backward, only gradients count among what is read. `recompute` are the ops that
        run again.
        """
        computing = dict(self.ops)
        found: Facts = Counter()
        for name in self.stage_names("forward" if phase == "forward" else "backward"):
            stage = self._stages[name]
            for row in stage["compute"]:
                if row["op"] not in computing or (phase == "recompute") != ("recomputation" in row):
                    continue
                of_type = computing[row["op"]]
                reads = row["in"]
                if phase == "backward":
                    reads = [] if of_type == "CrossEntropy" else reads[:1]
                found[self._op_fact(row, of_type, reads, stage)] += 1
        return found

    def _op_fact(
        self, row: dict[str, Any], of_type: str, reads: list[list[int]], stage: dict[str, Any]
    ) -> tuple[Any, ...]:
        shapes = [
            tuple(sorted(shape_of(_batches_joined(shape, of_type)) for shape in side))
            for side in (reads, row["out"])
        ]
        return (row["op"], *shapes, frozenset(row.get("devices", stage["devices"])))

    def collectives(self) -> Facts:
        """(phase, kind, groups, bytes, tensor) of each but the reductions of gradients."""
        found: Facts = Counter()
        for name, stage in self._stages.items():
            of_stage = name.rstrip("0123456789")
            for row in stage["collectives"]:
                phase = "recompute" if row.get("recomputation") else of_stage
                groups, tensor = groups_of(row["groups"]), self.tensor(row["tensor"])
                found[(phase, row["kind"], groups, row["bytes"], tensor)] += 1
            for row in stage.get("fused", []):
                groups, size = groups_of([row["group"]]), row["bytes"]
                if row["kind"] == "all_to_all":
                    for tensor in row["tensors"]:
                        found[(of_stage, row["kind"], groups, size, self.tensor(tensor))] += 1
                else:
                    found[(of_stage, row["kind"], groups, size, "parameters")] += 1
        return found

    def messages(self) -> Facts:
        """(phase, from, to, bytes) of each message of one micro-batch."""
        return Counter(
            (name.rstrip("0123456789"), *message)
            for name, stage in self._stages.items()
            for row in stage["p2p"]
            for message in row["messages"]
        )

    def buckets(self) -> Facts:
        """As buckets.in_buckets."""
        found: Facts = Counter()
        for stage, name in enumerate(self.stage_names("backward")):
            made: Counter[tuple[str, frozenset[int]]] = Counter()
            for row in self._stages[name]["gradient_communication"]["buckets"]:
                kind, group = row["kind"], frozenset(row["group"])
                names = tuple(self._member(member) for member in row["members"])
                found[(stage, group, made[kind, group], kind, row["bytes"], names)] += 1
                made[kind, group] += 1
        return found

    @property
    def limits(self) -> list[int]:
        """Limits of buckets, bytes: of the first, of the others."""
        schedule = self.file["schedule"]
        limit = int(schedule["bucket_MB"] * 10**6)
        return [10**6, limit] if schedule["first_bucket_1MB"] else [limit]

    def _member(self, member: str | list[Any]) -> str:
        name = member if isinstance(member, str) else member[0]
        return self.tensor(name).removeprefix("grad(").removesuffix(")")

    def state(self) -> Facts:
        """(what, device, bytes) of parameters, gradients and optimizer state."""
        found: Facts = Counter()
        places = {"forward": "parameter", "backward": "gradient", "optimizer": "buffer"}
        for place, kind in places.items():
            for name in self.stage_names(place):
                for row in self._stages[name]["memory_by_kind"]:
                    if size := row["bytes"].get(kind):
                        found.update((kind, device, size) for device in row["devices"])
        return found

    def layouts(self) -> Facts:
        """(parameter, bytes of a part, groups of devices that hold the same part)."""
        found: Facts = Counter()
        for row in self.file["tensors"]:
            if row["kind"] != "parameter":
                continue
            places = [one if isinstance(one, list) else [one] for one in row["devices"]]
            name = row["tensor"].partition("@")[0]
            found[(name, row["part_bytes"], groups_of(places))] += 1
        return found

    def order(self) -> Facts:
        """(stage, `F0`, `B0`, ...) as its simulator dispatched them, if its simulation ended."""
        stages = self.file["run_with_unit_costs"].get("order_by_stage", {})
        names = sorted(name for name in stages if name.startswith("stage"))
        return Counter((at, tuple(stages[name])) for at, name in enumerate(names))


def _batches_joined(shape: list[int], of_type: str) -> list[int]:
    """The factors of a batched product that only number the products are one."""
    if of_type != "Matmul" or len(shape) < 4:
        return shape
    joined = 1
    for size in shape[:-2]:
        joined *= size
    return [joined, *shape[-2:]]
