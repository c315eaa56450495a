"""Splits of ops as a strategy tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from plancast.planners.op_choices import Cut
from plancast.planners.op_graph import Op, OpGraph
from plancast.strategy import Strategy

# Directives of one axis: a list of dims, or of levels.
Words = tuple[str, ...]


def word(op: Op, factor: str) -> str:
    """How a strategy names a factor: by its model dim, or `.factor` where two have the same."""
    dim = op.dims[factor]
    alone = sum(other == dim for other in op.dims.values()) == 1
    return dim if alone else f".{factor}"


def axis_names(graph: OpGraph, cuts: Sequence[Cut], mesh: tuple[int, ...]) -> tuple[str, ...]:
    """`dp` for the axis along which most ops cut the batch, `tp` for the other.

    Of one axis with ranks the batch alone decides; of two the outer one is `dp` unless the inner
    one cuts it more.
    """
    counts = [
        sum(
            op.count
            for op, cut in zip(graph.ops, cuts, strict=True)
            if cut[axis] is not None and op.dims[cut[axis] or ""] == "batch"
        )
        for axis in range(len(mesh))
    ]
    real = [axis for axis, ranks in enumerate(mesh) if ranks > 1]
    if len(mesh) == 1 or len(real) == 1:
        axis = real[0] if real else 0
        by_samples = 2 * counts[axis] > sum(op.count for op in graph.ops)
        names = ("dp", "tp") if by_samples == (axis == 0) else ("tp", "dp")
        return names[: len(mesh)]
    return ("tp", "dp") if counts[1] > counts[0] else ("dp", "tp")


def tree(
    graph: OpGraph,
    words: Sequence[Mapping[str, Words]],
    root: str,
    order: Sequence[str],
    homes: Mapping[str, Mapping[str, str]] | None = None,
) -> Strategy:
    """A tree that cuts every op as said.

    Args:
      graph: the ops.
      words: per op and axis of the mesh the dims, or levels, that it cuts.
      root: the plan in the short form.
      order: axes as nodes list them.
      homes: by module, where the plan's `zero` does not say it.
    """
    if all(_by_samples(op, said.get("dp")) for op, said in zip(graph.ops, words, strict=True)):
        order = [axis for axis in order if axis != "dp"]  # what the root says anyway
    nodes: dict[str, dict[str, object]] = {}
    for path, ops in _alike(graph, words, order).items() if order else ():
        trie = _Node()
        for name, way in ops.items():
            trie.at(name.split(".")).way = way
        trie.say(path, None, nodes)
    for module, home in (homes or {}).items():
        path = f"{module}.*" if module in graph.lists else module
        nodes[path] = {**nodes.get(path, {}), "home": dict(home)}
    return Strategy.from_dict({"plan": root, "nodes": nodes} if nodes else {"plan": root})


# What one op is told, in the order of the axes.
Way = tuple[tuple[str, Words], ...]


def _alike(
    graph: OpGraph, words: Sequence[Mapping[str, Words]], order: Sequence[str]
) -> dict[str, dict[str, Way]]:
    """By path of a module, or of layers whose ops are all told the same, what ops are told."""
    layers: dict[tuple[str, int], dict[str, Way]] = {}
    for op, said in zip(graph.ops, words, strict=True):
        way = tuple((axis, said[axis]) for axis in order)
        layers.setdefault((op.module, op.layer), {})[op.name] = way
    same: dict[tuple[str, tuple[tuple[str, Way], ...]], list[int]] = {}
    for (module, layer), ops in layers.items():
        same.setdefault((module, tuple(ops.items())), []).append(layer)
    kinds = Counter(module for module, _ in same)
    return {
        _path(module, numbers, graph, kinds[module]): dict(ops)
        for (module, ops), numbers in same.items()
    }


class _Node:
    """A place in the tree of names; `way` if an op is there."""

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.way: Way | None = None

    def at(self, parts: Sequence[str]) -> _Node:
        """The node below, made if it is not there."""
        if not parts:
            return self
        return self.children.setdefault(parts[0], _Node()).at(parts[1:])

    def ways(self) -> Counter[Way]:
        """How many ops below, and here, are told what."""
        out = Counter([] if self.way is None else [self.way])
        for child in self.children.values():
            out.update(child.ways())
        return out

    def say(self, path: str, inherited: Way | None, nodes: dict[str, dict[str, object]]) -> None:
        """Adds nodes: what most ops below are told is said here, the others themselves."""
        way = self.way if self.way is not None else self.ways().most_common(1)[0][0]
        if way != inherited:
            nodes[path] = {"split": {axis: list(dims) for axis, dims in way}}
        for name, child in self.children.items():
            child.say(f"{path}.{name}", way, nodes)


def _by_samples(op: Op, words: Words | None) -> bool:
    return words is None or words == ("batch",) or "batch" not in op.dims.values()


def _path(module: str, layers: list[int], graph: OpGraph, kinds: int) -> str:
    if module not in graph.lists:
        return module
    if kinds == 1:
        return f"{module}.*"
    if len(layers) == 1:
        return f"{module}.{layers[0]}"
    step = layers[1] - layers[0]
    if layers == list(range(layers[0], layers[-1] + 1, step)):
        return f"{module}[{layers[0]}:{layers[-1] + 1}{f':{step}' if step > 1 else ''}]"
    return f"{module}[{','.join(map(str, layers))}]"
