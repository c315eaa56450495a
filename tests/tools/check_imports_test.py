"""Circles of imports are found, in functions too; imports for types are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.check_imports import circles, import_graph, main


@pytest.fixture
def found(tmp_path):
    def look(modules: dict[str, str]) -> list[list[str]]:
        """The circles among files of these names and contents."""
        write(tmp_path, modules)
        return circles(import_graph(tmp_path))

    return look


def write(folder: Path, modules: dict[str, str]) -> None:
    for name, text in {"p/__init__.py": "", **modules}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_one_direction_is_no_circle(found):
    assert found({"p/a.py": "from p import b\nfrom p.b import x", "p/b.py": "import os"}) == []


def test_a_circle_is_named_in_order(found):
    modules = {"p/a.py": "from p import b", "p/b.py": "import p.c", "p/c.py": "from p.a import x"}
    assert found(modules) == [["p.a", "p.b", "p.c", "p.a"]]


def test_imports_inside_functions_count(found):
    lazy = "class A:\n  def f(self):\n    try:\n      from p.b import x\n    finally:\n      pass"
    assert found({"p/a.py": lazy, "p/b.py": "from . import a"}) == [["p.a", "p.b", "p.a"]]


def test_imports_for_types_do_not(found):
    typed = "import typing\nif typing.TYPE_CHECKING:\n  from p import b\nelse:\n  import os"
    assert found({"p/a.py": typed, "p/b.py": "from p.a import x"}) == []


def test_whoever_imports_a_module_imports_its_package(found):
    modules = {"p/q/__init__.py": "from p import a", "p/q/b.py": "", "p/a.py": "import p.q.b"}
    assert found(modules) == [["p.a", "p.q", "p.a"]]


def test_modules_of_one_package_may_use_each_other(found):
    package = {"p/q/__init__.py": "from p.q import b", "p/q/b.py": "import p.q.c", "p/q/c.py": ""}
    assert found(package) == []


def test_lint_fails_with_the_names(tmp_path, capsys):
    write(tmp_path, {"p/a.py": "import p.b", "p/b.py": "import p.a"})
    assert main([str(tmp_path)]) == 1
    assert "import circle: p.a -> p.b -> p.a" in capsys.readouterr().err
    write(tmp_path, {"p/a.py": ""})
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().err == ""
