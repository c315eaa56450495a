"""_core.pyi says what the extension has, and no more."""

from __future__ import annotations

import ast
from pathlib import Path

from plancast import _core

STUB = Path(_core.__file__).with_name("_core.pyi")


def declared():
    """Names of functions, and of classes with their members, in the stub."""
    functions, classes = {}, {}
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            functions[node.name] = [a.arg for a in node.args.args + node.args.kwonlyargs]
        elif isinstance(node, ast.ClassDef):
            classes[node.name] = {f.name for f in node.body if isinstance(f, ast.FunctionDef)}
    return functions, classes


def present():
    functions, classes = {}, {}
    for name, value in vars(_core).items():
        if name.startswith("_"):
            continue
        if isinstance(value, type):
            members = {m for m in vars(value) if not m.startswith("_")}
            classes[name] = members
        else:
            functions[name] = value
    return functions, classes


def test_functions():
    stub, real = declared()[0], present()[0]
    assert set(stub) == set(real)
    for name, arguments in stub.items():
        first_line = real[name].__doc__.splitlines()[0]
        for argument in arguments:
            assert f"{argument}:" in first_line or f"{argument}=" in first_line, first_line


def test_classes():
    stub = {
        name: {m for m in members if not m.startswith("_")}
        for name, members in declared()[1].items()
    }
    assert stub == present()[1]
