"""A model's ops with sizes, joined by the tensors between them: what planners choose splits of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plancast import _core
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.model import Model

# Bytes of an element by the names of tensors' own types; others have the compute type.
_BYTES = {"fp32": 4.0, "int64": 8.0, "uint8": 1.0, "f32": 4.0, "i64": 8.0, "u8": 1.0}
_COMPUTE = {"fp32": 4.0, "tf32": 4.0}


def element_bytes(dtype: str) -> float:
    """Bytes in which tensors of a matmul precision are kept: 2, or 4 of fp32 and tf32."""
    return _COMPUTE.get(dtype, 2.0)


@dataclass(frozen=True)
class Value:
    """A tensor: dims in elements, bytes of an element, `activation`, `parameter` or `input`.

    `sparse`: a table whose gradient is that of the rows that are looked up.
    """

    name: str
    sizes: tuple[int, ...]
    element: float
    kind: str
    sparse: bool = False

    @property
    def size(self) -> float:
        """Bytes of the whole tensor."""
        return math.prod(self.sizes) * self.element


@dataclass(frozen=True)
class Op:
    """One op: its node in the strategy tree, its rule, and the extent and model dim of each factor.

    `layer` is its place in a list of modules, -1 of ops outside; `count` the layers that are
    planned alike as this one. `shared` are arguments that are parameters of an op before.
    """

    module: str
    name: str
    layer: int
    count: int
    rule: _core.OpRule
    sizes: dict[str, int]
    dims: dict[str, str]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    shared: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Edge:
    """Result `out` of op `writer` is argument `into` of op `reader`, `count` times."""

    writer: int
    out: int
    reader: int
    into: int
    count: int


@dataclass(frozen=True)
class Tie:
    """Two ops that read one parameter: as arguments `first_into` and `second_into`."""

    first: int
    first_into: int
    second: int
    second_into: int


@dataclass(frozen=True)
class OpGraph:
    """Ops in execution order and the edges between them; layers of each list.

    `results` are those that the model leaves, as (op, result).
    """

    ops: tuple[Op, ...]
    edges: tuple[Edge, ...]
    ties: tuple[Tie, ...]
    lists: dict[str, int]
    results: frozenset[tuple[int, int]] = frozenset()


def op_graph(
    model: Model, batch: int, dtype: str = "bf16", *, replicas: int = 1, alike: bool = True
) -> OpGraph:
    """The ops of a model.

    Args:
      model: what is trained.
      batch: samples that are worked on at once, on all devices.
      dtype: precision of the products.
      replicas: groups of samples with statistics of their own (local batch norm).
      alike: layers of a list are one op each with a count; else every layer has its own.
    """
    spec = _core.model_graph(model._core)
    bound = {"batch": batch, "replicas": replicas, "replica_batch": max(1, batch // replicas)}
    return _Maker(spec, bound, element_bytes(dtype), alike).graph()


class _Maker:
    def __init__(
        self, spec: dict[str, Any], bound: dict[str, int], element: float, alike: bool
    ) -> None:
        self._spec = spec
        self._dims = {name: size or bound[name] for name, size in spec["dims"]}
        self._element = element
        self._alike = alike
        self._ops: list[Op] = []
        self._edges: list[Edge] = []
        # Of each module, layer and parameter the first op that reads it.
        self._users: dict[tuple[int, int, int], tuple[int, int]] = {}
        self._tied = {(second[0], second[1]) for _, second in spec["ties"]}
        self._ties: list[Tie] = []

    def graph(self) -> OpGraph:
        # What is at each port: results of ops, and how often.
        ports: list[list[tuple[int, int, int]]] = []
        lists = {}
        for number, module in enumerate(self._spec["modules"]):
            repeat = module["repeat"]
            in_list = module["list"] or repeat > 1
            if in_list:
                lists[module["path"]] = repeat
            if self._alike or repeat == 1:
                ports = self._body(number, module, 0 if in_list else -1, repeat, ports)
                continue
            for layer in range(repeat):
                ports = self._body(number, module, layer, 1, ports)
        if not self._ops:
            raise InputError(f"`{self._spec['name']}` has no ops to plan.")
        for first, second in self._spec["ties"]:
            one, other = (self._first_user(place[0], place[1]) for place in (first, second))
            if one is not None and other is not None:
                self._ties.append(Tie(*one, *other))
        results = frozenset((op, out) for port in ports for op, out, _ in port)
        ops, edges, ties = tuple(self._ops), tuple(self._edges), tuple(self._ties)
        return OpGraph(ops, edges, ties, lists, results)

    def _first_user(self, number: int, tensor: int) -> tuple[int, int] | None:
        keys = [key for key in self._users if key[0] == number and key[2] == tensor]
        return self._users[min(keys)] if keys else None

    def _body(
        self,
        number: int,
        module: dict[str, Any],
        layer: int,
        count: int,
        ports: list[list[tuple[int, int, int]]],
    ) -> list[list[tuple[int, int, int]]]:
        values = [self._value(tensor) for tensor in module["tensors"]]
        made: dict[int, list[tuple[int, int, int]]] = dict(
            zip(module["in_ports"], ports, strict=False)
        )
        entered = set(module["in_ports"])
        reads: list[tuple[int, int, int]] = []
        for op in module["ops"]:
            index = len(self._ops)
            shared = set()
            for into, tensor in enumerate(op["inputs"]):
                if values[tensor].kind == "parameter":
                    user = self._users.setdefault((number, layer, tensor), (index, into))
                    if user != (index, into):
                        self._ties.append(Tie(*user, index, into))
                    if user != (index, into) or (number, tensor) in self._tied:
                        shared.add(into)
                if tensor in entered:
                    reads.append((tensor, index, into))
                for writer, out, times in made.get(tensor, []):
                    # Within the body every copy has the edge, from outside only the first.
                    often = times if tensor in entered else count
                    self._edges.append(Edge(writer, out, index, into, often))
            for out, tensor in enumerate(op["outputs"]):
                made[tensor] = [(index, out, 1)]
            self._ops.append(self._op(module["path"], op, layer, count, values, frozenset(shared)))
        left = [made.get(tensor, []) for tensor in module["out_ports"]]
        if count > 1:
            for tensor, reader, into in reads:
                port = module["in_ports"].index(tensor)
                for writer, out, _ in left[port] if port < len(left) else []:
                    self._edges.append(Edge(writer, out, reader, into, count - 1))
        return left

    def _value(self, tensor: dict[str, Any]) -> Value:
        sizes = tuple(self._dims[dim] for dim in tensor["dims"])
        element = _BYTES.get(tensor["dtype"], self._element)
        return Value(tensor["name"], sizes, element, tensor["kind"], tensor.get("sparse", False))

    def _op(
        self,
        path: str,
        op: dict[str, Any],
        layer: int,
        count: int,
        values: list[Value],
        shared: frozenset[int],
    ) -> Op:
        rule = op["rule"]
        dims = dict(zip(rule.factors, op["factor_dims"], strict=True))
        return Op(
            path,
            op["name"],
            layer,
            count,
            rule,
            {factor: self._dims[dim] for factor, dim in dims.items()},
            dims,
            tuple(values[tensor] for tensor in op["inputs"]),
            tuple(values[tensor] for tensor in op["outputs"]),
            shared,
        )


def trained_arguments(graph: OpGraph) -> list[frozenset[int]]:
    """Per op the arguments through which a gradient leaves: parameters, and results behind which
    there are parameters.
    """
    into: dict[int, list[Edge]] = {}
    for edge in graph.edges:
        into.setdefault(edge.reader, []).append(edge)
    behind = [False] * len(graph.ops)
    out: list[frozenset[int]] = []
    # Twice, since layers that are planned alike also follow themselves.
    for _ in range(2):
        out = []
        for index, op in enumerate(graph.ops):
            here = {i for i, value in enumerate(op.inputs) if value.kind == "parameter"}
            here |= {edge.into for edge in into.get(index, []) if behind[edge.writer]}
            behind[index] = bool(here)
            out.append(frozenset(here))
    return out
