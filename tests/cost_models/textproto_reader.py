"""Reads the text protos of cost_models/data into nested dicts, for tests."""

from __future__ import annotations

import re

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]|[^\s{}:"]+')


def parse(text: str) -> dict:
    """Each field as a list of its values."""
    tokens = _TOKEN.findall(re.sub(r"(?m)^#.*$", "", text))

    def message(at: int) -> tuple[dict, int]:
        fields: dict[str, list] = {}
        while at < len(tokens) and tokens[at] != "}":
            name, at = tokens[at], at + 1
            if tokens[at] == "{":
                value, at = message(at + 1)
            elif tokens[at].startswith('"'):
                value = tokens[at][1:-1]
            else:
                value = float(tokens[at])
            fields.setdefault(name, []).append(value)
            at += 1
        return fields, at

    return message(0)[0]


def scalars(message: dict) -> dict[str, float]:
    """The single numeric fields of a message."""
    return {k: v[0] for k, v in message.items() if len(v) == 1 and isinstance(v[0], float)}
