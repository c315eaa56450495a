"""Which constants of an ONNX file are trained: the format does not say."""

from __future__ import annotations

from typing import Any

# Operators whose second or later inputs are statistics, not weights.
_STATISTICS = {"BatchNormalization": (3, 4)}
_DATA = {
    "Where": (0, 1, 2),
    "Gather": (1,),
    "Slice": (1, 2, 3, 4),
    "Resize": (1, 2, 3),
    "Clip": (1, 2),
}


def is_trained(
    tensor: Any, dtype: str, readers: list[tuple[Any, int]], after: dict[str, list[str]]
) -> bool:
    """Whether an initializer is a parameter.

    Real-valued tensors are, but for single numbers, running statistics, and tables that
    exporters made constants: masks, which are added before a softmax, and rotations,
    which are multiplied by and have leading dims of size one.

    Args:
      tensor: the initializer.
      dtype: its element type, "" for real numbers.
      readers: nodes that read it, each with the place among its inputs.
      after: by tensor, the operators that read it.
    """
    shape = tuple(tensor.dims)
    if dtype or not readers:
        return False
    elements = 1
    for size in shape:
        elements *= size
    if elements <= 1:
        return False
    node, place = readers[0]
    if place in _STATISTICS.get(node.op_type, ()) or place in _DATA.get(node.op_type, ()):
        return False
    if node.op_type == "Add" and len(shape) > 1 and "Softmax" in after.get(node.output[0], []):
        return False
    generated = not tensor.name.endswith(("weight", "bias", "gamma", "beta"))
    rotation = len(shape) >= 3 and shape[0] == 1 and node.op_type in ("Mul", "Cos", "Sin")
    return not (generated and rotation)
