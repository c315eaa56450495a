"""Shipped transformers under plans: all of them run, and windows cost what they hold."""

import plancast as pc
import pytest
from plancast.models import presets

MACHINE = pc.Machine.preset("dgx-h100", hosts=4)
PLANS = ["dp=32,zero=1", "tp=2,sp,pp=2", "tp=2,pp=2,recompute=full", "tp=4,sp,attn=unfused"]
OF_EXPERTS = ["ep=8,zero=1", "tp=2,sp,ep=4,etp=1,pp=2"]
# Heads that 2 or 4 ranks cannot share.
ODD_HEADS = {"gpt2-xl": (2, 4), "phi3-medium": (4,), "qwen2.5-0.5b": (4,)}


@pytest.mark.parametrize("name", presets.transformers())
def test_every_transformer_runs_under_every_kind_of_plan(name):
    model = pc.Model.preset(name, seq=256)
    session = pc.Session()
    routed = model.active_parameters < model.parameters
    for plan in PLANS + (OF_EXPERTS if routed else []):
        if any(f"tp={tp}" in plan for tp in ODD_HEADS.get(name, ())):
            continue
        forecast = pc.predict(model, MACHINE, plan, batch=64, session=session)
        assert forecast.iteration_time > 0
        assert 0 < forecast.mfu < 1


def gemma(layers, **changes):
    fields = {**presets.config("gemma2-2b"), "seq": 4096, "window": 1024, "layers": layers}
    return pc.Model.from_config(**{**fields, **changes})


def counters(model):
    return pc.predict(model, MACHINE, "tp=2,sp,pp=2", batch=64).to_dict()["counters"]


def test_blocks_do_not_grow_with_the_runs_of_layers():
    few, many = counters(gemma(4)), counters(gemma(40))
    assert few["blocks"] == many["blocks"]
    assert few["materialised_tasks"] == many["materialised_tasks"]
    alike = counters(gemma(40, window_pattern="w"))
    assert alike["instances"] < many["instances"]


def seconds(**changes):
    return pc.predict(gemma(4, **changes), MACHINE, "tp=2", batch=64).iteration_time


def test_a_window_that_holds_the_sequence_is_none():
    assert seconds(window=4096) == seconds(window=None, window_pattern=None)


def test_smaller_windows_are_faster():
    times = [seconds(window=window) for window in (256, 1024, 2048, 4096)]
    assert times == sorted(times)
    assert len(set(times)) == 4


def test_the_order_of_equal_layers_changes_nothing_on_one_stage():
    # As many layers of each kind: without a pipeline the passes add up to the same.
    assert seconds(window_pattern="wf") == pytest.approx(seconds(window_pattern="wwff"), rel=1e-6)
