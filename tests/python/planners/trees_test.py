"""Trees say what planners found: the compiled plan has the collectives that were priced."""

from __future__ import annotations

import random
from collections import Counter

import plancast as pc
import pytest
from nets import random_net, stack
from plancast.planners.costs import AlphaBeta
from plancast.planners.intra_op import strategy_of
from plancast.planners.op_graph import op_graph
from plancast.planners.split_problem import Rules, SplitProblem

SEED = 71
MACHINES = {n: pc.Machine.preset(f"dgx-a100-80g:1x{n}") for n in (2, 4)}


def priced(problem: SplitProblem, chosen: list[int]) -> Counter[str]:
    """Bytes by kind, as nccl-tests counts them, of a choice for every op."""
    out: Counter[str] = Counter()
    for index, a in enumerate(chosen):
        choice = problem.options[index][a]
        steps = [*problem.inside(index, choice)]
        steps += [step for _, step in problem.synchronise(index, choice)]
        for step in steps:
            out[step.kind] += round(step.size)
    for edge in problem.graph.edges:
        for step in problem.between(edge, chosen):
            ranks = problem.costs.mesh[step.axis] if step.kind == "all_to_all" else 1
            out[step.kind] += round(step.size / ranks)
    return out


def compiled(graph: pc.ExecutionGraph) -> Counter[str]:
    out: Counter[str] = Counter()
    for instance in graph.programs[0].instances:
        for task in instance.block.tasks:
            if task.collective and not task.label.endswith("grad_norm"):
                out[task.collective] += task.bytes
    return out


def test_bytes_are_those_of_the_compiled_plan() -> None:
    """On any choice for every op, not the best alone. A few differ where the compiler relays a
    tensor once for two readers, or once more for a gradient that reads it.
    """
    rng = random.Random(SEED)
    differing, chains = 0, 0
    for number in range(120):
        chain = number % 2 == 0
        model, batch = random_net(rng, rng.randint(1, 5), chain=chain), 2 ** rng.randint(3, 8)
        mesh = (rng.choice([2, 4]),)
        graph = op_graph(model, batch, "fp32")
        problem = SplitProblem.of(graph, AlphaBeta(mesh, scatter=True), Rules())
        chosen = [rng.randrange(len(options)) for options in problem.options]
        strategy = strategy_of(problem, chosen, batch)
        program = pc.execution_graph(
            model, MACHINES[mesh[0]], strategy, batch=batch, dtype="fp32", profile="eager"
        )
        differing += compiled(program) != priced(problem, chosen)
        chains += chain and compiled(program) == priced(problem, chosen)
    assert differing <= 12
    assert chains >= 55


def test_an_inner_axis_may_be_the_one_of_samples() -> None:
    """Axes keep their places: dp is the fastest one then."""
    rng = random.Random(SEED)
    model = random_net(rng, 3, chain=True, products=True)
    problem = SplitProblem.of(op_graph(model, 64, "fp32"), AlphaBeta((2, 2)), Rules())
    wanted = ("j", "i")
    chosen = [
        next(a for a, choice in enumerate(options) if choice.cut == wanted)
        for options in problem.options
    ]
    strategy = strategy_of(problem, chosen, 64)
    assert "order=dp-tp-pp" in strategy.short_form
    forecast = pc.predict(model, MACHINES[4], strategy, batch=64, dtype="fp32", profile="eager")
    assert forecast.fits


def test_layers_that_are_told_alike_share_a_node() -> None:
    graph = op_graph(stack(6), 64, "fp32", alike=False)
    problem = SplitProblem.of(graph, AlphaBeta((4,)), Rules())

    def cut(module: str, layer: int, name: str) -> str | None:
        if module == "data" or layer % 2:
            return "b"
        return {"mlp.fc1": "n", "mlp.fc2": "k"}[name]

    chosen = []
    for op, options in zip(graph.ops, problem.options, strict=True):
        factor = cut(op.module, op.layer, op.name)
        cuts = [choice.cut[0] for choice in options]
        chosen.append(cuts.index(factor) if factor in cuts else 0)
    nodes = strategy_of(problem, chosen, 64).to_dict()["nodes"]
    assert nodes["layers[0:5:2]"] == {"split": {"dp": ["ffn"]}}
    assert nodes["layers[1:6:2]"] == {"split": {"dp": ["batch"]}}


@pytest.mark.parametrize("name", ["gpt2-xl", "dlrm", "inception-v3", "vit-b-16", "t5-small"])
def test_every_kind_of_model_has_a_graph(name: str) -> None:
    graph = op_graph(pc.Model.preset(name), 64)
    assert all(0 <= edge.writer < len(graph.ops) for edge in graph.edges)
    problem = SplitProblem.of(graph, AlphaBeta((4,)), Rules())
    assert all(problem.options)
