"""Convolutions by samples and a classifier by features: what is exchanged, in closed form."""

from __future__ import annotations

import plancast as pc
from cases import CASES, graph
from plancast.zoo import catalogue

BATCH, FEATURES, HIDDEN = 32, 9216, 4096


def exchanged(model: pc.Model, strategy: pc.Strategy) -> list[tuple[str, str, str, int]]:
    """Block, collective, tensor and bytes of each but the reductions of gradients."""
    machine = pc.Machine.preset("dgx-a100-80g:1x4")
    compiled = pc.execution_graph(
        model, machine, strategy, batch=BATCH, dtype="fp32", profile="eager"
    )
    return [
        (instance.block.name, task.collective, task.label.partition(" ")[2], task.bytes)
        for instance in compiled.programs[0].instances
        for task in instance.block.tasks
        if task.stream == "model_comm" and task.purpose == "dp"
    ]


def test_what_enters_is_gathered_and_what_leaves_is_scattered():
    strategy = pc.Strategy.from_yaml(CASES["alexnet_owt4"].strategy)
    assert exchanged(pc.Model.from_graph(graph("alexnet")), strategy) == [
        ("head.F", "all_gather", "dropout1.y", 4 * BATCH * FEATURES),
        ("head.F", "reduce_scatter", "fc2.a", 4 * BATCH * HIDDEN),
        ("head.B", "all_gather", "d fc2.a", 4 * BATCH * HIDDEN),
        ("head.B", "reduce_scatter", "d dropout1.y", 4 * BATCH * FEATURES),
    ]


def test_a_bias_inside_the_product_needs_the_whole_sum():
    """The zoo's AlexNet as it is: fc2 is one op, whose sum is all-reduced before the bias."""
    tree = pc.Strategy.from_yaml(CASES["alexnet_owt4"].strategy).to_dict()
    del tree["nodes"]["head.fc2.bias"]
    whole = pc.Model.from_graph(catalogue.builder("alexnet").graph())
    assert exchanged(whole, pc.Strategy.from_dict(tree))[1] == (
        "head.F",
        "all_reduce",
        "fc2/a",
        4 * BATCH * HIDDEN,
    )
