"""Fails when Python modules import each other in a circle at run time (see CONTRIBUTING.md).

Imports inside functions count, those under `if TYPE_CHECKING:` do not. Whoever imports a module
of a package from outside imports the package too. A module whose name is computed
(`importlib.import_module`) is not seen.
"""

from __future__ import annotations

import ast
import pathlib
import sys
from collections import deque
from collections.abc import Iterator

_ROOTS = ("python",)

Graph = dict[str, set[str]]


def _modules(root: pathlib.Path) -> dict[str, pathlib.Path]:
    """Files by the names of their modules; packages by theirs."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _at_run_time(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Import statements at any depth, without those for the sake of types."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node
    only_types = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
    children = node.orelse if only_types else ast.iter_child_nodes(node)
    for child in children:
        yield from _at_run_time(child)


def _named(statement: ast.Import | ast.ImportFrom, package: str) -> Iterator[str]:
    """What a statement in a package may mean; `from a import b` is `a.b` or something of `a`."""
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names)
        return
    above = package.split(".")[: len(package.split(".")) - statement.level + 1]
    base = above if statement.level else []
    whole = ".".join([*base, *filter(None, [statement.module])])
    yield from (f"{whole}.{alias.name}" for alias in statement.names)


def _with_packages(name: str, importer: str, known: dict[str, pathlib.Path]) -> set[str]:
    """The module that a name lies in, and the packages that are entered on the way to it."""
    parts = name.split(".")
    prefixes = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
    inside = [prefix for prefix in prefixes if prefix in known]
    if not inside:
        return set()
    entered = {prefix for prefix in inside if not f"{importer}.".startswith(f"{prefix}.")}
    return (entered | {inside[-1]}) - {importer}


def import_graph(root: pathlib.Path) -> Graph:
    """Which modules below a folder each of them imports."""
    known = _modules(root)
    graph: Graph = {}
    for module, path in known.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        graph[module] = set()
        for statement in _at_run_time(tree):
            for name in _named(statement, package):
                graph[module] |= _with_packages(name, module, known)
    return graph


def _circle_through(module: str, graph: Graph) -> list[str]:
    """The shortest way from a module back to itself, or nothing."""
    came_from: dict[str, str] = {}
    queue = deque([module])
    while queue:
        here = queue.popleft()
        for to in sorted(graph[here]):
            if to == module:
                way = [here]
                while way[-1] != module:
                    way.append(came_from[way[-1]])
                return [*reversed(way), module]
            if to not in came_from:
                came_from[to] = here
                queue.append(to)
    return []


def circles(graph: Graph) -> list[list[str]]:
    """For every module on a circle the shortest that it is on, each circle once."""
    found = {}
    for module in sorted(graph):
        way = _circle_through(module, graph)
        if way:
            found.setdefault(frozenset(way), way)
    return sorted(found.values(), key=len)


def main(roots: list[str]) -> int:
    """Names the circles on standard error; 1 if there are any."""
    complaints = [
        f"import circle: {' -> '.join(way)}"
        for root in roots
        for way in circles(import_graph(pathlib.Path(root)))
    ]
    if complaints:
        remedy = "Move what both need into a module below (CONTRIBUTING.md, Style)."
        print("\n".join([*complaints, remedy]), file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(_ROOTS)))
