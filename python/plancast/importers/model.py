"""From the importers' graph to a model."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any

from plancast.importers import limits
from plancast.importers.ir import Graph
from plancast.importers.lower import lower
from plancast.importers.passes import run
from plancast.importers.report import report
from plancast.importers.resize import resize
from plancast.importers.segments import Bodies, runs

if TYPE_CHECKING:
    from plancast.model import Model


def build(graph: Graph, *, seq: int | None = None) -> Model:
    """The model of a graph as a reader made it, with sequences of `seq` if said."""
    from plancast.model import Model

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
    return Model.from_graph(spec, report(lowered))


def from_file(path: str, *, seq: int | None = None) -> Model:
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


def from_torch(module: Any, example_inputs: Any, *, seq: int | None, name: str | None) -> Model:
    """The model of a module or an exported program (docs/importing.md)."""
    from plancast.importers.aten import export, fx

    torch = export.require_torch()
    if isinstance(module, torch.export.ExportedProgram):
        program, default = module, "model"
    else:
        program = export.export(module, example_inputs, seq)
        default = type(module).__name__
    return build(fx.read(program, name or default))
