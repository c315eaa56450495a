"""Which module a node of an ONNX file comes from."""

from __future__ import annotations

from typing import Any


def module_path(node: Any) -> str:
    """`model.layers.0.mlp`, from the names that exporters give nodes."""
    for entry in node.metadata_props:
        if entry.key == "namespace":  # ": Model/model.layers.0: Layer/add: aten.add.Tensor"
            names = [part.partition(":")[0].strip() for part in entry.value.split("/")]
            return names[-2] if len(names) > 1 else ""
    parts = [part for part in node.name.split("/") if part]
    return ".".join(parts[:-1])  # "/model/layers.0/mlp/MatMul"
