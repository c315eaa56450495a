"""One choice for every node at least cost: the problem that planners solve, and exact solvers.

Nodes have costs and memory by choice, edges a cost by pair of choices; infinite costs forbid.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plancast.errors import InputError

Matrix = NDArray[np.float64]

# Numbers in a table of variable elimination; beyond it the integer program is asked.
_LARGEST_TABLE = 1 << 22
_SECONDS = 120.0


@dataclass
class Assignment:
    """A problem. `costs[i][a]` and `memory[i][a]` are of choice a of node i, `edges[i, j][a, b]`
    of the choices of two nodes, i < j; `limit` bounds the sum of memory.
    """

    costs: list[Matrix] = field(default_factory=list)
    memory: list[Matrix] = field(default_factory=list)
    edges: dict[tuple[int, int], Matrix] = field(default_factory=dict)
    limit: float = math.inf

    def node(self, costs: Sequence[float], memory: Sequence[float] | None = None) -> int:
        """Adds a node; gives its number."""
        self.costs.append(np.array(costs, dtype=float))
        self.memory.append(np.array(memory if memory is not None else [0.0] * len(costs)))
        return len(self.costs) - 1

    def edge(self, first: int, second: int, matrix: Matrix) -> None:
        """Adds the costs of pairs; of several edges between two nodes the sum counts."""
        if first == second:
            self.costs[first] = self.costs[first] + np.diagonal(matrix)
            return
        if first > second:
            first, second, matrix = second, first, matrix.T
        here = self.edges.get((first, second))
        self.edges[first, second] = matrix if here is None else here + matrix

    def cost(self, chosen: Sequence[int]) -> float:
        """What an assignment costs."""
        total = sum(float(self.costs[i][a]) for i, a in enumerate(chosen))
        return total + sum(float(m[chosen[i], chosen[j]]) for (i, j), m in self.edges.items())

    def memory_of(self, chosen: Sequence[int]) -> float:
        """Memory of an assignment."""
        return sum(float(self.memory[i][a]) for i, a in enumerate(chosen))


def solve(problem: Assignment, *, seconds: float = _SECONDS) -> list[int]:
    """The best choice of every node, exactly: by elimination where no memory binds and tables
    stay small, else as an integer program.

    Raises:
      InputError: no assignment is within the limit, or time ran out.
    """
    free = eliminate(problem)
    if free is not None and problem.memory_of(free) <= problem.limit:
        return free
    return solve_integer_program(problem, seconds=seconds)


def eliminate(problem: Assignment) -> list[int] | None:
    """Without the limit, by variable elimination; None where tables would grow too large.

    Nodes with the fewest neighbours first. Chains and trees take one pass.
    """
    tables: list[tuple[tuple[int, ...], Matrix]] = [
        ((i,), costs) for i, costs in enumerate(problem.costs)
    ]
    tables += list(problem.edges.items())
    left = set(range(len(problem.costs)))
    near: dict[int, set[int]] = {i: set() for i in left}
    for i, j in problem.edges:
        near[i].add(j)
        near[j].add(i)
    steps: list[tuple[int, tuple[int, ...], NDArray[np.intp]]] = []
    while left:
        node = min(left, key=lambda i: (len(near[i]), i))
        around = tuple(sorted(near[node]))
        scope = (*around, node)
        sizes = [len(problem.costs[i]) for i in scope]
        if math.prod(sizes) > _LARGEST_TABLE:
            return None
        joined = np.zeros(sizes)
        rest = []
        for names, table in tables:
            if node in names:
                joined += _spread(names, table, scope, sizes)
            else:
                rest.append((names, table))
        steps.append((node, around, np.argmin(joined, axis=-1)))
        tables = [*rest, (around, np.min(joined, axis=-1))]
        left.remove(node)
        for i in around:
            near[i] = (near[i] | set(around)) - {i, node}
    chosen = [0] * len(problem.costs)
    for node, around, best in reversed(steps):
        chosen[node] = int(best[tuple(chosen[i] for i in around)])
    return chosen if math.isfinite(problem.cost(chosen)) else None


def _spread(
    names: tuple[int, ...], table: Matrix, scope: tuple[int, ...], sizes: list[int]
) -> Matrix:
    """A table over some of the scope's nodes, with the others as axes of length one."""
    order = sorted(range(len(names)), key=lambda k: scope.index(names[k]))
    shape = [size if node in names else 1 for node, size in zip(scope, sizes, strict=True)]
    return np.transpose(table, order).reshape(shape)


def solve_integer_program(problem: Assignment, *, seconds: float = _SECONDS) -> list[int]:
    """The best choice of every node as an integer program, solved by HiGHS.

    Variables s[i,a] are 0 or 1 and sum to 1 for each node. e[i,j,a,b] >= 0 stand for pairs: over b
    they sum to s[i,a], over a to s[j,b], so they are whole where s is.

    Raises:
      InputError: no assignment is within the limit, or time ran out.
    """
    highspy = import_highs()
    starts = np.cumsum([0, *map(len, problem.costs)])
    pairs = {key: matrix for key, matrix in problem.edges.items() if np.any(matrix)}
    columns = [np.concatenate(problem.costs), *(m.ravel() for m in pairs.values())]
    cost = np.concatenate(columns)
    known = cost[np.isfinite(cost)]
    scale = float(np.max(np.abs(known))) if known.size else 1.0
    rows, entries = _rows(problem, pairs, starts)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(cost), len(rows)
    lp.col_cost_ = np.where(np.isfinite(cost), cost, 0.0) * (1e3 / scale if scale > 0 else 1.0)
    lp.col_lower_ = np.zeros(len(cost))
    lp.col_upper_ = np.where(np.isfinite(cost), 1.0, 0.0)
    lp.row_lower_ = np.array([low for low, _ in rows])
    lp.row_upper_ = np.array([high for _, high in rows])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0, *(len(row) for row in entries)])
    lp.a_matrix_.index_ = np.array([column for row in entries for column, _ in row])
    lp.a_matrix_.value_ = np.array([value for row in entries for _, value in row])
    whole, free = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
    lp.integrality_ = [whole] * int(starts[-1]) + [free] * (len(cost) - int(starts[-1]))
    with without_banner():
        solver = highspy.Highs()
    for option, value in (
        ("output_flag", False),
        ("log_to_console", False),
        ("threads", 1),
        ("mip_heuristic_run_feasibility_jump", False),
        ("time_limit", seconds),
        ("mip_rel_gap", 0.0),
        ("mip_abs_gap", 1e-9),
    ):
        solver.setOptionValue(option, value)
    solver.passModel(lp)
    solver.run()
    status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kTimeLimit:
        raise InputError(
            f"the integer program was not solved within {seconds:g} s. Cut fewer ops or axes: a "
            "mesh of one axis, or layers that are planned alike."
        )
    if status != highspy.HighsModelStatus.kOptimal:
        least = sum(float(np.min(memory)) for memory in problem.memory)
        raise InputError(
            f"no choice of splits is within the memory limit of {problem.limit / 2**30:.3g} GiB; "
            f"the least that all ops together need is {least / 2**30:.3g} GiB. Take more devices, "
            "more micro-batches (accum) or a higher zero."
        )
    values = np.array(solver.getSolution().col_value)
    return [int(np.argmax(values[begin:end])) for begin, end in itertools.pairwise(starts)]


def import_highs() -> Any:
    """The solver's package, or an InputError that says how to get it."""
    try:
        import highspy
    except ImportError:
        raise InputError(
            "integer programs need the package `highspy`. Install it with `pip install highspy`."
        ) from None
    return highspy


@contextlib.contextmanager
def without_banner() -> Iterator[None]:
    """HiGHS says its name on standard output when it is made, which no option stops."""
    sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # there is no standard output
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


Row = list[tuple[int, float]]


def _rows(
    problem: Assignment, pairs: dict[tuple[int, int], Matrix], starts: NDArray[np.intp]
) -> tuple[list[tuple[float, float]], list[Row]]:
    """Bounds and entries of the rows."""
    bounds: list[tuple[float, float]] = []
    entries: list[Row] = []
    for begin, end in itertools.pairwise(starts):
        bounds.append((1.0, 1.0))
        entries.append([(column, 1.0) for column in range(begin, end)])
    at = int(starts[-1])
    for (i, j), matrix in pairs.items():
        first, second = matrix.shape
        for a in range(first):
            bounds.append((0.0, 0.0))
            row = [(at + a * second + b, 1.0) for b in range(second)]
            entries.append([(int(starts[i]) + a, -1.0), *row])
        for b in range(second):
            bounds.append((0.0, 0.0))
            row = [(at + a * second + b, 1.0) for a in range(first)]
            entries.append([(int(starts[j]) + b, -1.0), *row])
        at += matrix.size
    if math.isfinite(problem.limit):
        # In units of the limit, so that tolerances are shares of it.
        unit = problem.limit or 1.0
        memory = np.concatenate(problem.memory)
        bounds.append((-math.inf, problem.limit / unit))
        entries.append([(c, float(m) / unit) for c, m in enumerate(memory) if m])
    return bounds, entries
