"""The graph that every importer makes: values, nodes and where they come from.

A `Value` is a tensor; a `Node` computes values from values. Nodes are either
*views* (`reshape`, `permute`, `expand`: another order or grouping of the same
elements) or calls of an op rule (docs/op_rules.md), whose name is `Node.op`.
Readers of torch.export and ONNX produce the same graph, passes rewrite it, and
`lower.py` turns it into the segments of a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

VIEWS = ("reshape", "permute", "expand")


@dataclass(eq=False)
class Value:
    """One tensor.

    Kinds: `op` is computed by `node`; `parameter` is trained; `input` is real-valued
    training data; `data` is what follows from integers, constants and buffers alone
    (token ids, positions, masks): it is fed in and costs nothing, and `node` remembers
    how it came about. `forward` points to the value that took this one's place. `sparse`: a table
    whose gradient is that of the rows that were looked up.
    """

    shape: tuple[int, ...]
    dtype: str = ""
    kind: str = "op"
    name: str = ""
    node: Node | None = None
    batched: bool = False  # an input whose first dim is the batch
    forward: Value | None = None
    constant: Any = None  # the one number of a scalar constant
    sparse: bool = False

    @property
    def elements(self) -> int:
        """Number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count


@dataclass(eq=False)
class Node:
    """One op. `path` is the module it is in; `label` names it there."""

    op: str
    inputs: list[Value]
    outputs: list[Value]
    path: str = ""
    label: str = ""
    attrs: dict[str, Any] = field(default_factory=dict)
    order: int = 0  # its place in the source

    @property
    def output(self) -> Value:
        """The only result."""
        return self.outputs[0]

    @property
    def rule(self) -> str:
        """The op's name without its attributes."""
        return self.op.partition("(")[0]


def resolve(value: Value) -> Value:
    """The value that stands for this one now."""
    while value.forward is not None:
        value = value.forward
    return value


class Graph:
    """Nodes in an order in which they can run, and the results that matter."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[Node] = []
        self.outputs: list[Value] = []
        self.reading = True  # nodes are added in the order of the source
        self.has_loss = False
        # Attention is written out because the format has no other way to say it.
        self.kernels_unsaid = False

    def add(
        self,
        op: str,
        inputs: Iterable[Value],
        shapes: Iterable[tuple[int, ...]],
        *,
        like: Node | None = None,
        path: str = "",
        label: str = "",
        dtype: str = "",
        **attrs: Any,
    ) -> Node:
        """A new node at the end; `sort` puts it where it belongs."""
        node = Node(op, list(inputs), [], path or (like.path if like else ""), label, attrs)
        node.outputs = [Value(tuple(shape), dtype, node=node) for shape in shapes]
        if like is not None:
            node.order = like.order
        elif self.reading:
            node.order = len(self.nodes)
        else:
            node.order = max((v.node.order for v in node.inputs if v.node), default=0)
        self.nodes.append(node)
        return node

    def view(self, value: Value, op: str, shape: tuple[int, ...], **attrs: Any) -> Value:
        """A view of `value`; itself if nothing changes."""
        if op != "permute" and value.shape == shape:
            return value
        if op == "permute" and tuple(attrs["order"]) == tuple(range(len(shape))):
            return value
        path = value.node.path if value.node else ""
        return self.add(op, [value], [shape], path=path, dtype=value.dtype, **attrs).output

    def reshape(self, value: Value, *shape: int) -> Value:
        """The same elements in row-major order in another shape."""
        return self.view(value, "reshape", tuple(shape))

    def permute(self, value: Value, *order: int) -> Value:
        """Dims in another order."""
        shape = tuple(value.shape[d] for d in order)
        return self.view(value, "permute", shape, order=tuple(order))

    def replace(self, old: Value, new: Value) -> None:
        """Lets `new` stand wherever `old` was read."""
        new = resolve(new)
        if old is not new:
            old.forward = new

    def users(self) -> dict[int, list[Node]]:
        """By `id` of a value: the nodes that read it."""
        users: dict[int, list[Node]] = {}
        for node in self.nodes:
            for value in node.inputs:
                users.setdefault(id(resolve(value)), []).append(node)
        return users

    def tidy(self) -> None:
        """Follows replacements, drops what no result needs and sorts."""
        self.outputs = [resolve(value) for value in self.outputs]
        for node in self.nodes:
            node.inputs = [resolve(value) for value in node.inputs]
        done: dict[int, Node] = {}
        for value in self.outputs:
            if value.node is not None and value.kind == "op":
                self._require(value.node, done)
        # The order of the source; among equals, that in which passes made them.
        made = {id(node): place for place, node in enumerate(self.nodes)}
        wanted = sorted(done.values(), key=lambda node: (node.order, made.get(id(node), 0)))
        ordered: dict[int, Node] = {}
        for node in wanted:
            self._require(node, ordered)
        self.nodes = list(ordered.values())

    @staticmethod
    def _require(root: Node, done: dict[int, Node]) -> None:
        """Adds `root` behind everything it needs; iterative, for graphs are deep."""
        stack: list[tuple[Node, Iterator[Value]]] = []
        entered = set()

        def push(node: Node) -> None:
            if id(node) not in done and id(node) not in entered:
                entered.add(id(node))
                stack.append((node, iter(node.inputs)))

        push(root)
        while stack:
            node, rest = stack[-1]
            for value in rest:
                value = resolve(value)
                if value.kind == "op" and value.node is not None and id(value.node) not in done:
                    push(value.node)
                    break
            else:
                done[id(node)] = node
                stack.pop()


def source(value: Value, *, through: tuple[str, ...] = VIEWS) -> Value:
    """The value that views were taken of."""
    value = resolve(value)
    while value.kind == "op" and value.node is not None and value.node.op in through:
        value = resolve(value.node.inputs[0])
    return value


def producer(value: Value, *rules: str, through: tuple[str, ...] = ()) -> Node | None:
    """The node that computes `value`, if it is one of these ops."""
    value = source(value, through=through)
    if value.kind == "op" and value.node is not None and value.node.rule in rules:
        return value.node
    return None


def common_path(*paths: str) -> str:
    """The module that holds all of them."""
    split = [path.split(".") if path else [] for path in paths]
    shared = []
    for parts in zip(*split, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return ".".join(shared)
