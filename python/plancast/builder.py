"""Graphs of models, described op by op."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from plancast import _core, arguments
from plancast.checked import checked
from plancast.errors import InputError

# Element types by the names of the rule language, and the other way round.
_OF_RULES = {"f32": "fp32", "i64": "int64", "u8": "uint8"}
_ELEMENTS = {"": "", **{name: short for short, name in _OF_RULES.items()}}


@dataclass(frozen=True)
class Tensor:
    """A tensor of a module body: its name and the model dims it runs over."""

    name: str
    dims: tuple[str, ...]
    _index: int = field(repr=False)
    _body: ModuleBuilder = field(repr=False, compare=False)


@checked
class GraphBuilder:
    """Builds the graph of a model from named dims, module bodies and op rules."""

    def __init__(self, name: str, **dims: int) -> None:
        self._name = arguments.word(name, "name")
        self._dims: dict[str, int] = {"batch": 0}
        self._modules: list[ModuleBuilder] = []
        self._ties: list[tuple[str, str]] = []
        for dim, size in dims.items():
            self.dim(dim, size)

    def dim(self, name: str, size: int) -> str:
        """Adds a named dim, unless it is there with the same size, and gives its name.

        >>> builder = GraphBuilder("net")
        >>> builder.dim("channels64", 64), builder.size("channels64")
        ('channels64', 64)
        """
        if not arguments.is_whole(size) or not 0 < int(size) < 2**40:
            raise InputError(
                f"dim `{name}` of `{self._name}` has size {size}. Sizes are whole and positive."
            )
        if self._dims.setdefault(name, size) != size:
            raise InputError(
                f"dim `{name}` of `{self._name}` has size {self._dims[name]} already and cannot "
                f"have {size}. Give the other size a name of its own."
            )
        return name

    def size(self, dim: str) -> int:
        """Size of a dim, elements; 0 for those that a plan sets, such as `batch`."""
        self.check_dim(dim)
        return self._dims[dim]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name}: {len(self._modules)} modules>"

    def same(self, first: str, second: str) -> bool:
        """Whether one dim may stand for the other: two names of one size, `seq` and `kv_seq`."""
        return first == second or 0 < self.size(first) == self.size(second)

    def module(self, path: str, *, repeat: int = 1, in_list: bool = False) -> ModuleBuilder:
        """A new module at the end of the chain, run `repeat` times in sequence.

        Args:
          path: dotted name; strategies address a module in a list as `path.*`.
          repeat: copies; more than one make a list.
          in_list: one of a list of modules that pipeline stages share out, even if it
            is the only one of its kind. Without any list all modules are shared out.
        """
        if any(module.path == path for module in self._modules):
            raise InputError(f"`{self._name}` has two modules called `{path}`.")
        module = ModuleBuilder(self, path, repeat, in_list)
        self._modules.append(module)
        return module

    def tie(self, first: str, second: str) -> None:
        """Makes two parameters, written `module.name`, one (tied embeddings)."""
        self._ties.append((first, second))

    def check_dim(self, dim: str) -> None:
        """Raises InputError unless the model has this dim."""
        if dim in ("replicas", "replica_batch"):
            self._dims.setdefault(dim, 0)
        if dim not in self._dims:
            offer = arguments.offer(dim, self._dims)
            raise InputError(f"no dim `{dim}` in `{self._name}`.{offer}")

    def graph(self) -> dict[str, Any]:
        """The finished graph, as `Model.from_graph` takes it."""
        specs = [module.spec() for module in self._modules]
        if specs and specs[0]["in_ports"]:
            specs.insert(0, data_module(specs[0]))
        return {
            "name": self._name,
            "dims": list(self._dims.items()),
            "modules": specs,
            "ties": [(self._place(first), self._place(second)) for first, second in self._ties],
        }

    def _place(self, parameter: str) -> tuple[int, int]:
        path, _, name = parameter.rpartition(".")
        for index, module in enumerate(self._modules):
            if module.path == path:
                return index + bool(self._modules[0].spec()["in_ports"]), module.find(name)
        raise InputError(f"no module `{path}` in `{self._name}`; write `module.parameter`.")


@checked
class ModuleBuilder:
    """The body of one module: tensors and ops in execution order."""

    def __init__(self, model: GraphBuilder, path: str, repeat: int, in_list: bool) -> None:
        self.path = path
        self._model = model
        self._repeat = repeat
        self._in_list = in_list
        self._tensors: list[dict[str, Any]] = []
        self._ops: list[dict[str, Any]] = []
        self._in_ports: list[int] = []
        self._out_ports: list[int] = []

    def input(self, name: str, *dims: str, dtype: str = "") -> Tensor:
        """A tensor that enters from the previous module; the first module's come from the data.

        `dtype` is `f32`, `i64` or `u8`; the model's own by default.
        """
        tensor = self._tensor(name, dims, "activation", dtype)
        self._in_ports.append(tensor._index)
        return tensor

    def parameter(self, name: str, *dims: str, dtype: str = "", sparse: bool = False) -> Tensor:
        """A trained parameter.

        `sparse`: a table whose gradient is that of the rows that an op looks up, as with
        `sparse=True` of PyTorch's embeddings (docs/builder.md).
        """
        tensor = self._tensor(name, dims, "parameter", dtype)
        if sparse:
            self._tensors[-1]["sparse"] = True
        return tensor

    def data(self, name: str, *dims: str, dtype: str = "") -> Tensor:
        """A tensor of the training data that this module reads, such as labels."""
        return self._tensor(name, dims, "input", dtype)

    def op(
        self,
        name: str,
        rule: str,
        *inputs: Tensor,
        dims: Mapping[str, str] | None = None,
        recompute_group: str = "",
        fusion: str = "",
    ) -> Any:
        """Applies a rule; gives its output tensor, or a tuple of them.

        Args:
          name: dotted name of the op in the module, `attn.qkv`.
          rule: name of a shipped rule (`plancast.rules()`), with attributes in brackets
            (`conv2d(stride=2, pad=1)`), or the text of one.
          inputs: the rule's arguments in order.
          dims: model dims of factors that no argument has, such as the positions of a
            convolution's result: `{"i": "height", "j": "width"}`.
          recompute_group: ops with one label are recomputed together.
          fusion: ops with one label run as one kernel if the profile fuses it.
        """
        if "{" in rule:
            parsed = _core.OpRule.parse(rule)
        else:
            parsed = _core.OpRule.find(rule, [len(tensor.dims) for tensor in inputs])
        if len(inputs) != len(parsed.inputs):
            wanted = ", ".join(argument.name for argument in parsed.inputs)
            raise InputError(
                f"`{self.path}.{name}`: rule `{parsed.name}` takes {len(parsed.inputs)} tensors "
                f"({wanted}) and got {len(inputs)}."
            )
        bound = self._bind(name, parsed, inputs, dims or {})
        outputs = [
            self._tensor(
                f"{name}.{output.name}",
                tuple(bound[f] for f in output.factors),
                "activation",
                output.dtype,
            )
            for output in parsed.outputs
        ]
        self._ops.append(
            {
                "name": name,
                "rule": parsed,
                "inputs": [tensor._index for tensor in inputs],
                "outputs": [tensor._index for tensor in outputs],
                "factor_dims": [bound[factor] for factor in parsed.factors],
                "fusion": fusion,
                "recompute_group": recompute_group,
            }
        )
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def output(self, *tensors: Tensor) -> None:
        """The tensors that leave for the next module."""
        self._out_ports.extend(tensor._index for tensor in tensors)

    def find(self, name: str) -> int:
        """Index of the tensor called `name`."""
        for index, tensor in enumerate(self._tensors):
            if tensor["name"] == name:
                return index
        raise InputError(f"no tensor `{name}` in module `{self.path}`.")

    def spec(self) -> dict[str, Any]:
        """The body as the core takes it."""
        return {
            "path": self.path,
            "repeat": self._repeat,
            "list": self._in_list,
            "tensors": self._tensors,
            "ops": self._ops,
            "in_ports": self._in_ports,
            "out_ports": self._out_ports,
        }

    def _tensor(self, name: str, dims: tuple[str, ...], kind: str, dtype: str) -> Tensor:
        for dim in dims:
            self._model.check_dim(dim)
        dtype = _OF_RULES.get(dtype, dtype)
        if dtype not in _ELEMENTS:
            known = ", ".join(f"`{known}`" for known in _OF_RULES)
            raise InputError(
                f"`{self.path}.{name}` has no element type `{dtype}`; a tensor has the model's "
                f"type if nothing is said, or {known}."
            )
        self._tensors.append({"name": name, "kind": kind, "dims": list(dims), "dtype": dtype})
        return Tensor(name, tuple(dims), len(self._tensors) - 1, self)

    def _bind(
        self,
        name: str,
        rule: _core.OpRule,
        inputs: tuple[Tensor, ...],
        dims: Mapping[str, str],
    ) -> dict[str, str]:
        bound: dict[str, str] = {}
        for factor, dim in dims.items():
            if factor not in rule.factors:
                raise InputError(
                    f"`{self.path}.{name}`: no factor `{factor}` in `{rule.name}`."
                    f"{arguments.offer(factor, rule.factors)}"
                )
            self._model.check_dim(dim)
            bound[factor] = dim
        for argument, tensor in zip(rule.inputs, inputs, strict=True):
            place = f"`{self.path}.{name}`: `{tensor.name}` as `{argument.name}` of `{rule.name}`"
            if tensor._body is not self:
                raise InputError(f"{place} belongs to another module; pass it through a port.")
            if len(tensor.dims) != len(argument.factors):
                raise InputError(
                    f"{place} has dims ({', '.join(tensor.dims)}); "
                    f"the rule wants {len(argument.factors)} ({', '.join(argument.factors)})."
                )
            for factor, dim in zip(argument.factors, tensor.dims, strict=True):
                if not self._model.same(bound.setdefault(factor, dim), dim):
                    raise InputError(
                        f"{place} has `{dim}` where an earlier argument has `{bound[factor]}` "
                        f"(factor `{factor}`)."
                    )
        for factor in rule.factors:
            if factor not in bound:
                raise InputError(
                    f"`{self.path}.{name}`: the arguments do not say the size of factor "
                    f'`{factor}` of `{rule.name}`. Name its dim: `dims={{"{factor}": ...}}`.'
                )
        return bound


def data_module(first: dict[str, Any]) -> dict[str, Any]:
    """A module that scales the training data for the ports of the first one.

    Data must pass through a kernel to reach a port; a plain copy would be none.
    """
    tensors: list[dict[str, Any]] = []
    ops: list[dict[str, Any]] = []
    for port in first["in_ports"]:
        tensor = first["tensors"][port]
        factors = [f"i{number}" for number in range(len(tensor["dims"]))]
        index = ",".join(factors)
        short = _ELEMENTS[tensor["dtype"]]
        dtype = f":{short}" if short else ""
        rule = f"load(x{dtype}) -> (y{dtype}) {{ y[{index}] = scale * x[{index}] }}"
        begin = len(tensors)
        tensors.append({**tensor, "name": f"{tensor['name']}.data", "kind": "input"})
        tensors.append({**tensor, "kind": "activation"})
        ops.append(
            {
                "name": f"load_{tensor['name']}",
                "rule": _core.OpRule.parse(rule),
                "inputs": [begin],
                "outputs": [begin + 1],
                "factor_dims": tensor["dims"],
                "fusion": "",
                "recompute_group": "",
            }
        )
    return {
        "path": "data",
        "repeat": 1,
        "list": False,
        "tensors": tensors,
        "ops": ops,
        "in_ports": [],
        "out_ports": list(range(1, len(tensors), 2)),
    }
