"""From files and modules to graphs of models, as `Model.from_graph` takes them."""

from __future__ import annotations

import os.path
from typing import Any, NamedTuple

from plancast import _core
from plancast.importers import limits
from plancast.importers.ir import Graph
from plancast.importers.lower import lower
from plancast.importers.passes import run
from plancast.importers.report import ImportReport, report
from plancast.importers.resize import resize
from plancast.importers.segments import Bodies, runs


class Imported(NamedTuple):
    """A model of the core, the graph that it was made from, and what was not recognised."""

    core: _core.Model
    graph: dict[str, Any]
    report: ImportReport


def build(graph: Graph, *, seq: int | None = None) -> Imported:
    """The model of a graph as a reader made it, with sequences of `seq` if said."""
    run(graph)
    lowered = lower(graph)
    if seq is not None:
        resize(lowered, seq)
    modules, ties = Bodies(lowered, runs(lowered.ops), graph.outputs).write()
    spec: dict[str, Any] = {
        "name": graph.name,
        "dims": list(lowered.dims.items()),
        "modules": modules,
        "ties": ties,
    }
    return Imported(_core.Model.from_graph(spec), spec, report(lowered))


def from_file(path: str, *, seq: int | None = None) -> Imported:
    """The model of a `.pt2` or `.onnx` file."""
    name = os.path.basename(path).rpartition(".")[0] or "model"
    if path.endswith(".pt2"):
        from plancast.importers.aten import pt2

        graph = pt2.read(path, name)
    else:
        from plancast.importers.onnx import reader

        graph = reader.read(path, name, seq)
    kind = "a model whose tensors fit their operators"
    with limits.reading(path, kind, "Export it again from the module it came from."):
        return build(graph, seq=seq)


def from_torch(module: Any, example_inputs: Any, *, seq: int | None, name: str | None) -> Imported:
    """The model of a module or an exported program (docs/importing.md)."""
    from plancast.importers.aten import export, fx

    torch = export.require_torch()
    if isinstance(module, torch.export.ExportedProgram):
        program, default = module, "model"
    else:
        program = export.export(module, example_inputs, seq)
        default = type(module).__name__
    return build(fx.read(program, name or default))
