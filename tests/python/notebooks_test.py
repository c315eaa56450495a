"""The notebooks run from above to below, and what each cell shows can be shown."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parents[2] / "examples" / "notebooks"
# What Jupyter asks a result for, best first.
SHOWN = ("_repr_html_", "_repr_markdown_", "__repr__")


def run(source: str, names: dict[str, object]) -> object:
    """Runs a cell; gives the value of a last line that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebook(path, capsys):
    cells = json.loads(path.read_text())["cells"]
    assert cells[0]["cell_type"] == "markdown"
    assert cells[0]["source"][0].startswith("# ")
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == []
        result = run("".join(cell["source"]), names)
        if result is not None:
            show = next(name for name in SHOWN if hasattr(result, name))
            assert getattr(result, show)()
    capsys.readouterr()


def test_there_are_three():
    assert len(list(NOTEBOOKS.glob("*.ipynb"))) == 3
