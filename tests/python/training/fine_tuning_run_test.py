"""Whole runs that train adapters alone."""

import plancast as pc
import pytest

MODEL = pc.Model.preset("llama3-8b")
MACHINE = pc.Machine.preset("dgx-h100:1")
NODES = pc.Strategy.parse("").lora(rank=16, on=["qkv"])
ADAPTERS = 32 * 16 * (4096 + 6144)
SHORT = {"tokens": "100M", "batch": 64}


def test_a_plan_in_short_form_has_the_nodes():
    tree = NODES.with_plan("zero=1,mb=1")
    said, alone = (
        pc.train(MODEL, MACHINE, plan, nodes=nodes, **SHORT)
        for plan, nodes in (("zero=1,mb=1", NODES), (tree, None))
    )
    assert said.to_dict() == alone.to_dict()
    assert said.phases[0].forecast.plan.to_dict() == tree.to_dict()


def test_checkpoints_hold_what_is_trained():
    whole, adapters = (
        pc.train(MODEL, MACHINE, "zero=1,mb=1", nodes=nodes, **SHORT) for nodes in (None, NODES)
    )
    assert adapters.reliability.cost.bytes == 14 * ADAPTERS
    assert whole.reliability.cost.bytes == 14 * MODEL.parameters


def test_the_best_plan_is_one_of_adapters():
    run = pc.train(MODEL, MACHINE, nodes=NODES, **SHORT)
    forecast = run.phases[0].forecast
    assert forecast.plan.to_dict()["nodes"] == NODES.to_dict()["nodes"]
    whole = pc.train(MODEL, MACHINE, **SHORT)
    assert run.seconds < whole.seconds


def test_every_phase_trains_them():
    phases = [
        pc.Phase(tokens="50M", strategy="zero=1,mb=1"),
        pc.Phase(seq=4096, batch=128, strategy=NODES.with_plan("zero=2,mb=1")),
    ]
    run = pc.train(MODEL, MACHINE, phases=phases, nodes=NODES, **SHORT)
    for phase in run.phases:
        assert any(f"{ADAPTERS} of" in note for note in phase.forecast.notes)


def test_fewer_hosts_do():
    how = {"tokens": "200B", "days": 25, "batch": 512, "curve": False}
    whole = pc.size(MODEL, ["dgx-h100"], **how)
    adapters = pc.size(MODEL, ["dgx-h100"], nodes=NODES, **how)
    assert adapters.best.hosts < whole.best.hosts


def test_nodes_say_no_plan():
    with pytest.raises(pc.InputError, match="say what is trained"):
        pc.train(MODEL, MACHINE, nodes=NODES.with_plan("tp=2"), **SHORT)
