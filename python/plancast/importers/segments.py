"""From a list of ops to a chain of segments: layers that are equal become one body."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from plancast.importers.body import BodyWriter, plain
from plancast.importers.ir import Value
from plancast.importers.lower import Lowered, Op

_LISTED = re.compile(r"(?:\A|\.)(\d+)(?:\.|\Z)")


@dataclass
class Run:
    """Ops that follow one another in one module: copy `index` of the list at `path`, or
    what stands between lists (index -1)."""

    path: str
    index: int
    ops: list[Op] = field(default_factory=list)


def runs(ops: list[Op]) -> list[Run]:
    """Cuts the ops where the outermost list of modules, or the copy in it, changes."""
    result: list[Run] = []
    # A container of single layers is no list of modules.
    lists = {path for path, index, deep in map(_deep_place, ops) if index >= 0 and deep}
    for op in ops:
        path, index = place(op.node.path)
        if path not in lists:
            path, index = "", -1
        if not result or (result[-1].path, result[-1].index) != (path, index):
            result.append(Run(path, index))
        result[-1].ops.append(op)
    return _joined(result)


def place(path: str) -> tuple[str, int]:
    """The outermost list and the position in it: `model.layers.3.mlp` is (`model.layers`, 3)."""
    match = _LISTED.search(path)
    if match is None:
        return "", -1
    return path[: match.start()].strip("."), int(match.group(1))


def _deep_place(op: Op) -> tuple[str, int, bool]:
    """The list an op is in, and whether it is in a module below the list's."""
    path, index = place(op.node.path)
    return path, index, len(op.node.path) > len(f"{path}.{index}".strip("."))


def _joined(given: list[Run]) -> list[Run]:
    """What a parent does between two copies of a list belongs to the copy before."""
    result: list[Run] = []
    for position, run in enumerate(given):
        before = result[-1] if result else None
        after = given[position + 1] if position + 1 < len(given) else None
        between = (
            run.index < 0
            and before is not None
            and after is not None
            and before.index >= 0
            and before.path == after.path
        )
        same = before is not None and (before.path, before.index) == (run.path, run.index)
        if before is not None and (between or same):
            before.ops.extend(run.ops)
        else:
            result.append(run)
    return result


class Bodies:
    """Writes the bodies of runs, and finds which are equal."""

    def __init__(self, lowered: Lowered, given: list[Run], results: list[Value]) -> None:
        self._lowered = lowered
        self._runs = given
        self._last: dict[int, int] = {}  # by value: the last run that reads it
        self._results = results
        self._homes: dict[int, set[int]] = {}  # by parameter: the runs that read it
        for number, run in enumerate(given):
            for op in run.ops:
                for value in op.inputs:
                    self._last[id(value)] = number
                    if value.kind == "parameter":
                        self._homes.setdefault(id(value), set()).add(number)
        self._modules: dict[int, tuple[int, int]] = {}  # by run: the module it became, its copy
        self._written: dict[int, list[tuple[Value, str]]] = {}
        self._ties: list[tuple[tuple[int, str], tuple[int, str]]] = []
        self._home: dict[int, tuple[int, str]] = {}

    def write(self) -> tuple[list[dict[str, Any]], list[Any]]:
        """The modules of the model, and its ties."""
        modules: list[dict[str, Any]] = []
        last: tuple[Any, list[bool]] | None = None  # of the copy before, and what it passed on
        ports: list[Value] = []
        paths: set[str] = set()
        for number, run in enumerate(self._runs):
            listed = run.index >= 0
            same_list = listed and number > 0 and self._runs[number - 1].path == run.path
            if last is not None and same_list:
                body, out, signature = self._body(number, run, ports, last[1])
                if (run.path, signature) == last[0]:
                    modules[-1]["repeat"] += 1
                    self._note(number, len(modules) - 1, modules[-1]["repeat"] - 1)
                    ports = out
                    continue
            body, out, signature = self._body(number, run, ports, [])
            body["path"] = self._path(run, number, paths)
            modules.append(body)
            self._note(number, len(modules) - 1, 0)
            passed = [place < len(out) and out[place] is v for place, v in enumerate(ports)]
            last = ((run.path, signature), passed) if listed else None
            ports = out
        return modules, self._tied(modules)

    def _path(self, run: Run, number: int, paths: set[str]) -> str:
        if run.index >= 0:
            name = plain(run.path.rpartition(".")[2]) or "layers"
        elif not number:
            name = "embedding"
        else:
            name = "head" if number + 1 == len(self._runs) else "middle"
        stem, count = name, 1
        while name in paths:
            count += 1
            name = f"{stem}_{count}"
        paths.add(name)
        return name

    def _body(
        self, number: int, run: Run, ports: list[Value], keep: list[bool]
    ) -> tuple[dict[str, Any], list[Value], Any]:
        """The body of a run, what leaves it, and what equal bodies have in common.

        `keep` says which ports pass on what nobody reads any more, as other copies do.
        """
        writer = BodyWriter(self._lowered, run.path, run.index)
        for value in ports:
            writer.port(value)
        for op in run.ops:
            writer.op(op)
        made = [value for op in run.ops for value in op.outputs]
        fresh = [value for value in made if self._last.get(id(value), -1) > number]
        out: list[Value] = []
        for place, value in enumerate(ports):  # what ends gives its place to what begins
            if self._last.get(id(value), -1) > number or (place < len(keep) and keep[place]):
                out.append(value)
            elif fresh:
                out.append(fresh.pop(0))
        out.extend(fresh)
        if number + 1 == len(self._runs):
            out.extend(value for value in self._results if value in made)
        shared = tuple(
            (place, id(value))
            for place, (value, _) in enumerate(writer.parameters)
            if len(self._homes[id(value)]) > 1
        )
        self._written[number] = writer.parameters
        return writer.spec(out), out, (writer.signature(out), shared)

    def _note(self, number: int, module: int, copy: int) -> None:
        """Ties of the parameters that a run shares with those before."""
        self._modules[number] = (module, copy)
        for value, name in self._written[number]:
            first = self._home.setdefault(id(value), (number, name))
            if first[0] != number:
                self._ties.append((first, (number, name)))

    def _tied(self, modules: list[dict[str, Any]]) -> list[Any]:
        def find(end: tuple[int, str]) -> tuple[int, int, int]:
            module, copy = self._modules[end[0]]
            names = [tensor["name"] for tensor in modules[module]["tensors"]]
            return module, names.index(end[1]), copy

        return [(find(first), find(second)) for first, second in self._ties]
