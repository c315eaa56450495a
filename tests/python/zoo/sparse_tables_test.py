"""Tables with sparse gradients: what is written, exchanged, kept and updated."""

from __future__ import annotations

import plancast as pc
import pytest
from plancast.builder import GraphBuilder
from plancast.errors import InputError

ROWS, WIDTH, HOT, TABLES, BATCH = 1_000_000, 64, 4, 8, 4096
MACHINE = pc.Machine.preset("dgx-a100-80g:1x4")


def dlrm(*, sparse: bool, rows: int = ROWS) -> pc.Model:
    from plancast.zoo.dlrm import dlrm as net

    graph = net(
        "dlrm", vocabularies=[rows] * TABLES, embedding_dim=WIDTH, dense=13,
        bottom=[512, 256, WIDTH], top=[512, 256, 1], hot=HOT, sparse=sparse,
    )  # fmt: skip
    return pc.Model.from_graph(graph.graph())


def run(model: pc.Model, plan: str | pc.Strategy = "dp=4,mb=1024", **job: object) -> pc.Forecast:
    return pc.predict(
        model, MACHINE, plan, batch=BATCH, dtype="fp32", profile="eager",
        **{"optimizer_type": "sgd", **job},
    )  # fmt: skip


def tasks(model: pc.Model, plan: str | pc.Strategy = "dp=4,mb=1024") -> list[dict[str, object]]:
    graph = pc.execution_graph(
        model, MACHINE, plan, batch=BATCH, dtype="fp32", profile="eager", optimizer_type="sgd"
    )
    return [
        task
        for program in graph["programs"][:1]
        for block in program["blocks"]
        for task in block["tasks"]
    ]


def test_rows_are_gathered_instead_of_tables_reduced() -> None:
    dense, sparse = run(dlrm(sparse=False)), run(dlrm(sparse=True))
    table = ROWS * WIDTH * 4
    layers = dense.memory[0].gradients - TABLES * table
    # The rows of a table are there until they are updated.
    rows = 1024 * HOT * (WIDTH * 4 + 8)
    assert layers <= sparse.memory[0].gradients <= layers + TABLES * 4 * rows
    assert sparse.memory[0].parameters == dense.memory[0].parameters
    # 1 MB of rows for 2 GB of tables; what the host takes stays.
    assert sparse.breakdown()["exposed_dp"] < dense.breakdown()["exposed_dp"] / 5
    assert sparse.breakdown()["optimizer"] < dense.breakdown()["optimizer"] / 5


def test_optimizers_keep_the_state_of_whole_tables() -> None:
    sgd = run(dlrm(sparse=True)).memory[0].optimizer
    for name, numbers in (("adagrad", 1), ("adam", 2)):
        kept = run(dlrm(sparse=True), optimizer_type=name).memory[0].optimizer - sgd
        assert kept >= numbers * TABLES * ROWS * WIDTH * 4


def test_a_table_on_one_device_exchanges_nothing() -> None:
    alone = pc.Machine.preset("dgx-a100-80g:1x1")
    forecast = pc.predict(
        dlrm(sparse=True), alone, "mb=1024", batch=1024, dtype="fp32", profile="eager",
        optimizer_type="sgd", timeline=True,
    )  # fmt: skip
    assert not any("all_gather" in span.name for span in forecast.timeline())
    assert any(span.name.endswith("table0.update") for span in forecast.timeline())


def test_no_more_rows_than_there_are_are_updated() -> None:
    few = run(dlrm(sparse=True, rows=10)).breakdown()["optimizer"]
    many = run(dlrm(sparse=True)).breakdown()["optimizer"]
    assert few < many


@pytest.mark.parametrize("plan", ["dp=4,mb=256", "dp=4,mb=1024,zero=1", "dp=4,mb=1024,zero=3"])
def test_shortcuts_change_nothing(plan: str) -> None:
    model = dlrm(sparse=True)
    fast, slow = run(model, plan), run(model, plan, shortcuts=False)
    assert fast.iteration_time == slow.iteration_time
    assert fast.memory[0] == slow.memory[0]
    # Shards of everything but tables, which stay whole.
    assert fast.memory[0].parameters >= TABLES * ROWS * WIDTH * 4


def test_tables_cut_by_hand_find_their_share() -> None:
    tree = pc.Strategy.from_yaml(
        "plan: dp=4,mb=1024\nnodes:\n"
        + "".join(f"  embedding.table{i}: {{split: {{dp: [vocab_{i}]}}}}\n" for i in range(TABLES))
    )
    cut, whole = run(dlrm(sparse=True), tree), run(dlrm(sparse=True))
    assert cut.memory[0].parameters < whole.memory[0].parameters / 3
    assert cut.memory[0].gradients <= whole.memory[0].gradients


def test_homes_share_out_no_table() -> None:
    for kind in ("weights", "state"):
        tree = pc.Strategy.from_yaml(
            f"plan: dp=4,mb=1024\nnodes:\n  embedding.table0: {{home: {{{kind}: shard(dp)}}}}\n"
        )
        with pytest.raises(InputError, match="tables with sparse gradients stay whole"):
            run(dlrm(sparse=True), tree)
    on = {f"embedding.table{i}": {"on": {"dp": i % 4}} for i in range(TABLES)}
    dealt = run(dlrm(sparse=True), pc.Strategy.from_dict({"plan": "dp=4,mb=1024", "nodes": on}))
    whole = run(dlrm(sparse=True))
    assert dealt.memory[0].parameters < whole.memory[0].parameters / 3


def test_only_what_looks_rows_up_has_sparse_gradients() -> None:
    net = GraphBuilder("net", hidden=8, wide=16)
    module = net.module("first")
    x = module.data("x", "batch", "hidden")
    w = module.parameter("w", "wide", "hidden", sparse=True)
    module.op(
        "linear", "by(x, param w) -> (y) {\n  y[b,n] += x[b,h] * w[n,h]\n  save x, w\n}", x, w
    )
    with pytest.raises(InputError, match=r"`w` is `sparse`, and .* looks up no rows"):
        pc.Model.from_graph(net.graph())


def test_recommenders_run_large_batches_and_are_told_to_cut_tables() -> None:
    model, host = pc.Model.preset("dlrm"), pc.Machine.preset("dgx-b200", hosts=1)
    found = pc.plan(model, host, batch=65536, optimizer_type="sgd")
    assert found.best is not None and "mb=8192" in str(found.best.strategy)
    told = pc.plan(model, host, batch=65536)
    assert told.best is None and "intra-op" in told.would_fit[0]
    # A sample reads a row of each table.
    assert model.active_parameters < 1e-3 * model.parameters
    assert pc.Model.preset("dlrm", sparse=False).active_parameters == model.parameters
