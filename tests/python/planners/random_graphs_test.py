"""Splits of random graphs: the integer program finds what trying every choice finds."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from nets import random_net
from plancast.planners.assignment import solve, solve_integer_program
from plancast.planners.costs import AlphaBeta
from plancast.planners.op_graph import op_graph
from plancast.planners.split_problem import Rules, SplitProblem

SEED = 23


def best_of_all(problem: SplitProblem, limit: float) -> float:
    """Every choice of every op, priced from the collectives that it owes."""
    graph, costs = problem.graph, problem.costs
    alone = [
        [math.fsum(problem.parts(i, choice).values()) for choice in options]
        for i, options in enumerate(problem.options)
    ]
    memory = [
        [problem.memory(i, choice) for choice in options]
        for i, options in enumerate(problem.options)
    ]
    between = [
        {
            (a, b): math.fsum(s.cost(costs) for s in problem.relayout(edge, writer, reader))
            for a, writer in enumerate(problem.options[edge.writer])
            for b, reader in enumerate(problem.options[edge.reader])
        }
        for edge in graph.edges
    ]
    best = math.inf
    for chosen in itertools.product(*(range(len(options)) for options in problem.options)):
        if sum(memory[i][a] for i, a in enumerate(chosen)) > limit:
            continue
        cost = sum(alone[i][a] for i, a in enumerate(chosen))
        for edge, pairs in zip(graph.edges, between, strict=True):
            cost += pairs[chosen[edge.writer], chosen[edge.reader]]
        best = min(best, cost)
    return best


def test_of_five_hundred_graphs_the_best_is_found() -> None:
    rng = random.Random(SEED)
    with_limit = 0
    for number in range(520):
        ops = rng.randint(1, 5)
        mesh = rng.choice([(2,), (4,), (8,)]) if ops > 2 or number % 2 else (2, 2)
        alpha = tuple(rng.uniform(0, 100) for _ in mesh)
        beta = tuple(rng.uniform(0.01, 1) for _ in mesh)
        costs = AlphaBeta(mesh, alpha, beta, scatter=rng.random() < 0.5)
        graph = op_graph(random_net(rng, ops), 2 ** rng.randint(3, 8), "fp32")
        problem = SplitProblem.of(graph, costs, Rules(rng.choice([0, 0, 1, 3])))
        best = best_of_all(problem, math.inf)
        found = solve_integer_program(problem.assignment)
        assert problem.assignment.cost(found) == pytest.approx(best, rel=1e-9), (SEED, number)
        assert math.fsum(problem.parts_of(found).values()) == pytest.approx(best, rel=1e-9)
        if number % 4:
            continue
        least = sum(min(memory) for memory in problem.assignment.memory)
        problem.assignment.limit = (least + problem.assignment.memory_of(found)) / 2
        best = best_of_all(problem, problem.assignment.limit)
        if math.isfinite(best):
            found = solve(problem.assignment)
            assert problem.assignment.cost(found) == pytest.approx(best, rel=1e-9), (SEED, number)
            with_limit += 1
    assert with_limit > 100
