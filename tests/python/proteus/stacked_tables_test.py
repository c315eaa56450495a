"""Whole tables on devices, as far as the tree can say it: tables of one size in one tensor."""

from __future__ import annotations

import plancast as pc
from plancast.builder import GraphBuilder

BATCH, TABLES, ROWS, WIDTH, DEVICES = 256, 8, 1_000_000, 64, 4

_LOOK_UP = """
look_up(id:i64, param w) -> (y) {
  y[b,t,h] += w[t,v,h] * [v == id[b,t,l]]
  save id
}
"""


def tables() -> pc.Model:
    """Look-ups in every table and the products of all pairs, as in DLRM's examples."""
    net = GraphBuilder("tables", tables=TABLES, others=TABLES, rows=ROWS, width=WIDTH, hot=1)
    module = net.module("embedding")
    ids = module.data("ids", "batch", "tables", "hot", dtype="int64")
    y = module.op("tables", _LOOK_UP, ids, module.parameter("w", "tables", "rows", "width"))
    module.op("products", "pairwise_products", y, y, dims={"j": "others"})
    return pc.Model.from_graph(net.graph())


def test_look_ups_are_exchanged_as_proteus_exchanges_them():
    """dlrm_mp4: 32,768 bytes from each device to each other, forward and backward."""
    strategy = pc.Strategy.from_yaml(
        """
        plan: dp=4,mb=64
        nodes:
          embedding.tables: {split: {dp: [tables]}}
        """
    )
    machine = pc.Machine.preset("dgx-a100-80g:1x4")
    graph = pc.execution_graph(
        tables(), machine, strategy, batch=BATCH, dtype="fp32", profile="eager"
    )
    (program,) = graph.programs
    made = [
        (instance.phase, task.collective, task.bytes // DEVICES)
        for instance in program.instances
        for task in instance.block.tasks
        if task.collective and task.purpose == "dp"
    ]
    to_each = BATCH // DEVICES * TABLES // DEVICES * WIDTH * 4
    assert to_each == 32_768
    assert made == [("F", "all_to_all", to_each), ("B", "all_to_all", to_each)]
    assert program.bytes["parameters"] == TABLES // DEVICES * ROWS * WIDTH * 4
