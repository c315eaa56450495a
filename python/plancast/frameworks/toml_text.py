"""TOML of sections with plain values, which the standard library only reads."""

from __future__ import annotations

import json
from typing import Any


def to_toml(document: dict[str, Any]) -> str:
    """A document of one or two levels of sections.

    >>> print(to_toml({"training": {"seq_len": 8192, "compile": True}}), end="")
    [training]
    seq_len = 8192
    compile = true
    """
    blocks = []
    for section, values in document.items():
        lines = [f"[{section}]"]
        nested = {key: value for key, value in values.items() if isinstance(value, dict)}
        lines += [f"{key} = {_value(value)}" for key, value in values.items() if key not in nested]
        if len(lines) > 1 or not nested:
            blocks.append("\n".join(lines))
        blocks += [to_toml({f"{section}.{key}": value}).rstrip() for key, value in nested.items()]
    return "\n\n".join(blocks) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, list):
        inner = [_value(part) for part in value]
        text = f"[{', '.join(inner)}]"
        return text if len(text) < 90 else "[\n" + "".join(f"  {part},\n" for part in inner) + "]"
    return json.dumps(value)
