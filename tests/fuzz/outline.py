"""Where the ops of a model are, as nodes of a strategy tree call them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import plancast as pc
from plancast.planning import compile_passes

_SEGMENT = re.compile(r"(?P<path>[^\[\s]+)(?:\[(?P<begin>\d+):(?P<end>\d+)\])?")


@dataclass(frozen=True)
class Module:
    """One module of a model, or a list of layers, with the ops of each in their order."""

    path: str
    layers: int  # 0: it is in no list
    ops: tuple[str, ...]
    alike: bool  # every layer has these ops

    def layer(self, index: int) -> str:
        """The path of one layer of the list, or of the module."""
        return f"{self.path}.{index}" if self.layers else self.path

    @property
    def all(self) -> str:
        """The path of the module, or of all layers of the list."""
        return f"{self.path}.*" if self.layers else self.path

    def below(self) -> list[str]:
        """What is inside: parts such as `attn`, and ops such as `attn.qkv`."""
        parts = {op.rpartition(".")[0] for op in self.ops} - {""}
        return [*sorted(parts), *self.ops]

    def begins(self, op: int) -> bool:
        """Whether a node can begin with this op: it is not below one before it (`conv1.bias`)."""
        return not any(self.ops[op].startswith(f"{above}.") for above in self.ops[:op])


@dataclass(frozen=True)
class Outline:
    """The modules of a model in their order, and its dims."""

    modules: tuple[Module, ...]
    dims: tuple[str, ...]

    @staticmethod
    def of(model: pc.Model) -> Outline:
        """Of a model, as the compiler's first pass prints it."""
        text = compile_passes(model, pc.Machine.preset("dgx-h100:1x1"), "dp=1,mb=1")["bind"]
        _, stage, *ops = text.splitlines()
        layers: dict[str, int] = {}
        alike: dict[str, bool] = {}
        for word in stage.partition(": ")[2].split():
            match = _SEGMENT.fullmatch(word)
            assert match is not None, word
            path = match["path"]
            alike[path] = path not in layers
            layers[path] = int(match["end"] or 0)
        # The longest path first: `a.layers` before `a`.
        of: dict[str, list[str]] = {path: [] for path in sorted(layers, key=len, reverse=True)}
        for line in ops:
            place = line.partition(":")[0]
            path = next((path for path in of if place.startswith(f"{path}.")), None)
            if path is not None:
                of[path].append(place[len(path) + 1 :])
        modules = [
            Module(path, count, tuple(dict.fromkeys(of[path])), alike[path])
            for path, count in layers.items()
        ]
        return Outline(tuple(modules), tuple(name for name, _ in model._core.dims))

    def places(self) -> Iterator[tuple[int, int, int]]:
        """All places where a stage may begin: a module, one of its layers, one of its ops."""
        for at, module in enumerate(self.modules):
            for layer in range(max(1, module.layers)):
                for op in range(len(module.ops) if module.alike else 1):
                    if module.begins(op):
                        yield at, layer, op

    def nodes(self, begin: tuple[int, int, int], end: tuple[int, int, int]) -> list[str]:
        """The paths of what is from one place to another, `end` excluded."""
        found: list[str] = []
        for at in range(begin[0], min(end[0] + 1, len(self.modules))):
            module = self.modules[at]
            size, count = len(module.ops), max(1, module.layers)
            first = begin[1:] if at == begin[0] else (0, 0)
            last = end[1:] if at == end[0] else (count, 0)
            layer, op = first
            while (layer, op) < last:
                whole = last[0] - layer
                if op == 0 and whole > 0:
                    if not module.layers or whole == count:
                        found.append(module.path)
                    elif whole == 1:
                        found.append(module.layer(layer))
                    else:
                        found.append(f"{module.path}[{layer}:{last[0]}]")
                    layer = last[0]
                    continue
                until = last[1] if layer == last[0] else size
                inside = [at for at in range(op, until) if module.begins(at)]
                found += [f"{module.layer(layer)}.{module.ops[at]}" for at in inside]
                layer, op = (layer, until) if layer == last[0] else (layer + 1, 0)
        return found
