"""One body of a model: the ops of a module over its own tensors."""

from __future__ import annotations

from typing import Any

from plancast.importers.ir import Value
from plancast.importers.lower import Lowered, Op
from plancast.importers.rule_text import parsed


def plain(name: str) -> str:
    """A name without halves of surrogate pairs, which files may hold and text may not."""
    return name.encode("utf-8", "replace").decode("utf-8")


class BodyWriter:
    """One body: tensors get local numbers and names, ops the names of their modules."""

    def __init__(self, lowered: Lowered, path: str, index: int) -> None:
        self._lowered = lowered
        self._prefix = f"{path}.{index}".strip(".") if index >= 0 else ""
        self._tensors: list[dict[str, Any]] = []
        self._ops: list[dict[str, Any]] = []
        self._index: dict[int, int] = {}
        self._tensor_names: set[str] = set()
        self._op_names: set[str] = set()
        self._in_ports: list[int] = []
        self.parameters: list[tuple[Value, str]] = []

    def _tensor(self, value: Value, name: str, kind: str, dtype: str) -> int:
        index = self._index[id(value)] = len(self._tensors)
        self._tensors.append(
            {
                "name": self._unique(name, self._tensor_names),
                "kind": kind,
                "dims": self._lowered.dims_of(value),
                "dtype": dtype,
            }
        )
        if kind == "parameter" and value.sparse:
            self._tensors[-1]["sparse"] = True
        return index

    @staticmethod
    def _unique(name: str, taken: set[str]) -> str:
        name = plain(name)
        chosen, count = name, 1
        while chosen in taken:
            count += 1
            chosen = f"{name}_{count}"
        taken.add(chosen)
        return chosen

    def _made(self, value: Value, name: str, dtype: str) -> int:
        value.dtype = dtype
        return self._tensor(value, name, "activation", dtype)

    def port(self, value: Value) -> None:
        """A tensor that enters from the segment before."""
        self._in_ports.append(self._tensor(value, "x", "activation", value.dtype))

    def op(self, op: Op) -> None:
        """One op, and what it reads from outside."""
        name = self._op_name(op)
        inputs = []
        rule = parsed(op.text)
        for value, dtype, argument in zip(op.inputs, op.input_dtypes, rule.inputs, strict=True):
            if id(value) not in self._index:
                if value.kind == "parameter":
                    title = self._parameter_name(value.name, f"{name}.{argument.name}")
                    index = self._tensor(value, title, "parameter", "")
                    self.parameters.append((value, self._tensors[index]["name"]))
                else:
                    self._tensor(value, f"{name}.{value.name or 'data'}", "input", dtype)
            inputs.append(self._index[id(value)])
        outputs = [
            self._made(value, f"{name}.{argument.name}", argument.dtype)
            for value, argument in zip(op.outputs, rule.outputs, strict=True)
        ]
        self._ops.append(
            {
                "name": name,
                "rule": rule,
                "inputs": inputs,
                "outputs": outputs,
                "factor_dims": [op.factor_dims[factor] for factor in rule.factors],
                "fusion": op.node.attrs.get("fusion", ""),
                "recompute_group": op.node.attrs.get("recompute_group", ""),
            }
        )

    def _relative(self, path: str) -> str:
        if self._prefix and path.startswith(self._prefix + "."):
            return path[len(self._prefix) + 1 :]
        return path

    def _parameter_name(self, name: str, otherwise: str) -> str:
        """The name in its module; exporters make up others, which differ from copy to copy."""
        if name and (not self._prefix or name.startswith(self._prefix + ".")):
            return self._relative(name)
        return otherwise

    def _op_name(self, op: Op) -> str:
        module = self._relative(op.node.path) if op.node.path != self._prefix else ""
        label = op.node.label
        name = ".".join(part for part in (module, label) if part) or op.node.rule
        return self._unique(name, self._op_names)

    def spec(self, out: list[Value]) -> dict[str, Any]:
        """The body as the core takes it."""
        return {
            "path": "",
            "repeat": 1,
            "list": bool(self._prefix),
            "tensors": self._tensors,
            "ops": self._ops,
            "in_ports": self._in_ports,
            "out_ports": [self._index[id(value)] for value in out],
        }

    def signature(self, out: list[Value]) -> Any:
        """Equal for bodies that are equal but for names of dims of one size."""
        tensors = tuple(
            (tensor["name"], tensor["kind"], self._sizes(tensor["dims"]), tensor["dtype"])
            for tensor in self._tensors
        )
        ops = tuple(
            (
                op["name"],
                id(op["rule"]),
                tuple(op["inputs"]),
                tuple(op["outputs"]),
                self._sizes(op["factor_dims"]),
                op["fusion"],
                op["recompute_group"],
            )
            for op in self._ops
        )
        return tensors, ops, tuple(self._in_ports), tuple(self._index[id(value)] for value in out)

    def _sizes(self, dims: list[str]) -> tuple[int | str, ...]:
        sizes = self._lowered.dims
        return tuple(sizes.get(dim) or dim for dim in dims)
