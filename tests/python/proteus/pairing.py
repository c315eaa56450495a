"""Which op of ours is which of Proteus's.

Both create ops in the same order, so they are paired one by one; a product and the
addition of its bias are one op there. Names of tensors and parameters follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

# Ours that compute nothing there, and the rules that stand for a type of op.
VIEWS = ("flatten", "merge_last_dims", "split_heads")
RULES = {
    "Activation": ("gelu_nd",),
    "AdaptivePool2d": ("global_avg_pool",),
    "Add": ("add",),
    "AttentionMask": ("attention_mask",),
    "BatchNorm2d": ("batch_norm_local",),
    "Concat": ("concat2", "concat3", "concat4", "stack"),
    "Conv2d": ("conv2d",),
    "CrossEntropy": ("binary_loss", "classification_loss", "cross_entropy"),
    "Dropout": ("dropout_nd",),
    "Embedding": ("embedding", "embedding_bag"),
    "LayerNorm": ("layer_norm",),
    "Linear": ("dense", "linear_bias_nd", "linear_nd", "qkv"),
    "Matmul": ("context", "pairwise_products", "scores"),
    "Pool2d": ("avg_pool2d", "max_pool2d"),
    "ReLU": ("relu_nd",),
    "SliceFW": ("pairs",),
    "Softmax": ("softmax_nd",),
}
_BIASES = (".bias", ".add_bias")


def base(op: str) -> str:
    """An op, or the product that a bias is added to."""
    for ending in _BIASES:
        op = op.removesuffix(ending)
    return op


@dataclass
class Copy:
    """One run of a module: a layer, a block. `ops` are names there by base name."""

    path: str
    number: int
    spec: dict[str, Any]
    ops: dict[str, str] = field(default_factory=dict)

    def tensor(self, name: str) -> dict[str, Any] | None:
        """A tensor of the module as the builder describes it; gradients are like theirs."""
        wanted = name.removeprefix("d ")
        return next((one for one in self.spec["tensors"] if one["name"] == wanted), None)

    def read_by(self, op: str) -> list[str]:
        """Names of what an op reads."""
        spec = next(one for one in self.spec["ops"] if one["name"] == op)
        return [self.spec["tensors"][at]["name"] for at in spec["inputs"]]


class Pairing:
    """The names there of a graph of ours, as a builder gives it."""

    def __init__(self, graph: dict[str, Any], ops: list[tuple[str, str]]) -> None:
        self._graph = graph
        self.copies = [
            Copy(spec["path"], number, spec)
            for spec in graph["modules"]
            for number in range(spec["repeat"])
        ]
        theirs = iter(ops)
        for copy in self.copies:
            for op, rule in _computing(copy):
                name, of_type = next(theirs)
                assert rule in RULES[of_type], (copy.path, op, rule, name, of_type)
                copy.ops[op] = name
        assert next(theirs, None) is None, "ops of theirs without one of ours"

    @cached_property
    def names(self) -> list[dict[str, str]]:
        """Of each copy: names there of its tensors; what enters has its maker's name."""
        found: list[dict[str, str]] = []
        leaving: list[str] = []
        tied = {other: first for first, other in self.ties}
        for copy in self.copies:
            ports = [copy.spec["tensors"][at]["name"] for at in copy.spec["in_ports"]]
            names = dict(zip(ports, leaving, strict=True))
            self._name_tensors(copy, names)
            found.append({ours: tied.get(there, there) for ours, there in names.items()})
            leaving = [names[copy.spec["tensors"][at]["name"]] for at in copy.spec["out_ports"]]
        return found

    @cached_property
    def ties(self) -> list[tuple[str, str]]:
        """Names of parameters that are one: the first, the other."""
        modules = self._graph["modules"]
        return [
            (self._parameter(modules[first], one), self._parameter(modules[second], other))
            for (first, one), (second, other) in self._graph["ties"]
        ]

    def _parameter(self, module: dict[str, Any], at: int) -> str:
        copy = next(one for one in self.copies if one.spec is module)
        return dict(_parameters(copy))[module["tensors"][at]["name"]]

    def _name_tensors(self, copy: Copy, names: dict[str, str]) -> None:
        names.update(_parameters(copy))
        for op in copy.spec["ops"]:
            view = op["rule"].name in VIEWS
            there = (
                names[copy.read_by(op["name"])[0]] if view else f"{copy.ops[base(op['name'])]}.out"
            )
            names.update((copy.spec["tensors"][at]["name"], there) for at in op["outputs"])


def _computing(copy: Copy) -> list[tuple[str, str]]:
    """Names and rules of a module's ops that compute, in order of creation there."""
    found: dict[str, str] = {}
    for op in copy.spec["ops"]:
        if op["rule"].name not in VIEWS:
            found.setdefault(base(op["name"]), op["rule"].name)
    # Residual blocks: the branch that only changes the shape is created last there.
    late = [name for name in found if name.startswith("downsample")]
    names = [name for name in found if name not in late]
    if late:
        at = names.index("add")
        names[at:at] = late
    return [(name, found[name]) for name in names]


def _parameters(copy: Copy) -> Iterator[tuple[str, str]]:
    """Names here and there of a module's parameters."""
    found: dict[str, list[str]] = {}
    for op in copy.spec["ops"]:
        found.setdefault(base(op["name"]), []).extend(
            name
            for name in copy.read_by(op["name"])
            if (copy.tensor(name) or {})["kind"] == "parameter"
        )
    for op, names in found.items():
        for name, which in zip(names, ("weight", "bias"), strict=False):
            yield name, f"{copy.ops[op]}.{which}"
