"""Writes coefficients as protobuf text (proto/kernel_cost.proto)."""

from __future__ import annotations

import math
from typing import Any

# Fields by name; nested dicts are messages, lists repeated fields.
Message = dict[str, Any]


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def format_message(fields: Message, indent: str = "") -> str:
    """A message's text; None and NaN are left out."""
    lines = []
    for name, value in fields.items():
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if item is None or (isinstance(item, float) and math.isnan(item)):
                continue
            if isinstance(item, dict):
                body = format_message(item, indent + "  ")
                lines.append(f"{indent}{name} {{\n{body}{indent}}}\n")
            else:
                lines.append(f"{indent}{name}: {_scalar(item)}\n")
    return "".join(lines)


def format_file(fields: Message, comment: str) -> str:
    head = "# proto-file: proto/kernel_cost.proto\n"
    head += "# proto-message: plancast.proto.KernelCostCoefficients\n#\n"
    head += "".join(f"# {line}\n" for line in comment.splitlines())
    return head + "\n" + format_message(fields)


def file_name(gpu: str) -> str:
    return gpu.lower().replace("-", "_") + ".textproto"
