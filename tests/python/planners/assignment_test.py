"""One choice for every node at least cost: each solver finds what trying all finds."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import plancast as pc
import pytest
from plancast.planners.assignment import Assignment, eliminate, solve, solve_integer_program

SEED = 20261127


def random_problem(rng: random.Random) -> Assignment:
    problem = Assignment()
    nodes = rng.randint(1, 5)
    for _ in range(nodes):
        choices = rng.randint(1, 4)
        problem.node(
            [rng.uniform(0, 10) for _ in range(choices)],
            [rng.uniform(0, 10) for _ in range(choices)],
        )
    for i, j in itertools.combinations(range(nodes), 2):
        if rng.random() < 0.6:
            shape = len(problem.costs[i]), len(problem.costs[j])
            matrix = np.array(
                [[rng.uniform(0, 10) for _ in range(shape[1])] for _ in range(shape[0])]
            )
            if rng.random() < 0.2:
                matrix[rng.randrange(shape[0]), rng.randrange(shape[1])] = math.inf
            # Either way round, as edges come.
            problem.edge(*((i, j, matrix) if rng.random() < 0.5 else (j, i, matrix.T)))
    return problem


def best_of_all(problem: Assignment) -> float:
    every = itertools.product(*(range(len(costs)) for costs in problem.costs))
    within = (a for a in every if problem.memory_of(a) <= problem.limit)
    return min((problem.cost(a) for a in within), default=math.inf)


def test_all_solvers_find_the_best() -> None:
    rng = random.Random(SEED)
    for number in range(300):
        problem = random_problem(rng)
        best = best_of_all(problem)
        found = eliminate(problem)
        assert (found is None) == math.isinf(best), (SEED, number)
        if found is not None:
            assert problem.cost(found) == pytest.approx(best), (SEED, number)
            assert problem.cost(solve_integer_program(problem)) == pytest.approx(best)


def test_memory_binds() -> None:
    rng = random.Random(SEED + 1)
    bound = unfit = 0
    for number in range(200):
        problem = random_problem(rng)
        free = best_of_all(problem)
        problem.limit = rng.uniform(2, 6) * len(problem.costs)
        best = best_of_all(problem)
        if math.isinf(best):
            unfit += 1
            with pytest.raises(pc.InputError, match="no choice of splits"):
                solve_integer_program(problem)
            continue
        found = solve(problem)
        assert problem.memory_of(found) <= problem.limit * (1 + 1e-6), (SEED + 1, number)
        assert problem.cost(found) == pytest.approx(best), (SEED + 1, number)
        bound += best > free
    assert bound > 20
    assert unfit > 5


def test_an_edge_of_a_node_with_itself_is_a_cost_of_it() -> None:
    problem = Assignment()
    problem.node([1.0, 2.0])
    problem.edge(0, 0, np.array([[5.0, 9.0], [9.0, 1.0]]))
    assert solve(problem) == [1]
    assert problem.cost([1]) == 3.0
