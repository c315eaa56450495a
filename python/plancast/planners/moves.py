"""Small changes of a strategy tree: what a local search tries."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plancast.planners.op_choices import facts
from plancast.planners.op_graph import op_graph
from plancast.planners.trees import word

if TYPE_CHECKING:
    from plancast.model import Model

_RECOMPUTE = ("none", "selective", "full")
_AXES = ("dp", "tp")


@dataclass
class Moves:
    """Changes of trees of one model.

    A change sets what one node splits over an axis, to a dim that an op below can be cut along or
    to none; takes a node back; sets the recomputation of some layers; or changes `mb`,
    `recompute` or `zero` of the plan.
    """

    model: Model
    rng: random.Random
    # Dims by path of an op, or of a module with several.
    _dims: dict[str, list[str]] = field(default_factory=dict)
    _lists: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        graph = op_graph(self.model, 1 << 20)
        self._lists = graph.lists
        dims: dict[str, set[str]] = {}
        for op in graph.ops:
            cuttable = {word(op, factor) for factor in facts(str(op.rule)).factors}
            parts = [op.module + (".*" if op.module in graph.lists else ""), *op.name.split(".")]
            for end in range(1, len(parts) + 1):
                path = ".".join(parts[:end])
                # A factor of one rule means nothing to a whole module.
                whole = cuttable if end == len(parts) else {d for d in cuttable if d[0] != "."}
                dims.setdefault(path, set()).update(whole)
        self._dims = {path: sorted(words) for path, words in sorted(dims.items())}

    def change(self, tree: Mapping[str, Any]) -> dict[str, Any]:
        """A tree that differs in one thing."""
        plan = _parsed(tree["plan"])
        nodes = {path: dict(node) for path, node in (tree.get("nodes") or {}).items()}
        kinds = ["split"] * 5 + ["plan"] * 2 + ["back"] * bool(nodes)
        kinds += ["recompute"] * bool(self._lists)
        kind = self.rng.choice(kinds)
        if kind == "back":
            nodes.pop(self.rng.choice(sorted(nodes)))
        elif kind == "plan":
            self._change_plan(plan)
        elif kind == "recompute":
            name, count = self.rng.choice(sorted(self._lists.items()))
            begin, end = sorted(self.rng.sample(range(count + 1), 2))
            node = nodes.setdefault(f"{name}[{begin}:{end}]", {})
            node["recompute"] = self.rng.choice(_RECOMPUTE)
        else:
            path = self.rng.choice(list(self._dims))
            axes = [axis for axis in _AXES if int(plan.get(axis, 1)) > 1] or ["dp"]
            axis = self.rng.choice(axes)
            dim = self.rng.choice([None, *self._dims[path]])
            node = nodes.setdefault(path, {})
            node["split"] = {**node.get("split", {}), axis: [] if dim is None else [dim]}
        text = ",".join(f"{key}={value}" if value else key for key, value in plan.items())
        return {**tree, "plan": text, "nodes": nodes}

    def _change_plan(self, plan: dict[str, str]) -> None:
        key = self.rng.choice(["mb", "recompute", "zero"])
        if key == "mb":
            now = int(plan.get("mb", 1))
            plan["mb"] = str(self.rng.choice([max(1, now // 2), now * 2]))
        elif key == "zero":
            plan["zero"] = str(self.rng.randrange(4))
        else:
            plan["recompute"] = self.rng.choice(_RECOMPUTE)


def _parsed(plan: str) -> dict[str, str]:
    return {key: value for key, _, value in (item.partition("=") for item in plan.split(","))}
