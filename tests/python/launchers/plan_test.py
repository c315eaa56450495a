"""Plans as keys."""

from __future__ import annotations

import plancast as pc
import pytest
from plancast.frameworks.plan import Plan, default_layout, layout_of, layout_text, normal, size_of


def test_what_makes_no_difference_goes():
    said = "dp=8,tp=1,sp,pp=1,vpp=2,hsdp=8,zero=3,reshard=on,prefetch=1,mb=1,recompute=none"
    assert normal(said) == "dp=8,zero=3,mb=1"


@pytest.mark.parametrize(
    "said",
    [
        "dp=8,zero=3,hsdp=4,mb=1",
        "pp=4,zero=3,reshard=on,mb=1",  # profiles may keep parameters with pp
        "zero=3,prefetch=0,mb=1",
        "tp=8,etp=1,ep=8,mb=1",
        "pp=4,schedule=gpipe,mb=1",
        "pp=2,order=tp-cp-ep-pp-dp,mb=1",
        "zero=3,sync=last,mb=1,accum=2",
    ],
)
def test_what_makes_one_stays(said):
    assert normal(said) == pc.Strategy.parse(said).short_form


def test_what_nobody_takes_is_refused():
    plan = Plan.of(pc.Strategy.parse("tp=2,vocab_parallel=vocab1"), "some")
    plan.number("tp")
    with pytest.raises(pc.InputError, match="some cannot run `vocab_parallel=vocab1`"):
        plan.finish()


@pytest.mark.parametrize("layers", range(1, 40))
@pytest.mark.parametrize("stages", [1, 2, 3, 4, 8])
def test_default_layout_has_all_layers(layers, stages):
    if layers >= stages:
        assert sum(default_layout(layers, stages)) == layers


def test_default_layout_is_the_one_that_is_chosen():
    model = pc.Model.from_config(
        name="m", layers=10, hidden=64, heads=4, ffn=128, vocab=100, seq=32
    )
    for stages in (2, 4, 8):
        forecast = pc.predict(model, pc.Machine.preset("dgx-h100:1"), f"pp={stages},mb=1,accum=8")
        assert forecast.chosen["layout"] == layout_text(default_layout(10, stages))


def test_layouts_and_sizes():
    assert layout_of(layout_text([0, 3, 3, 2])) == [0, 3, 3, 2]
    assert size_of(pc.Strategy.parse("bucket=33554432").short_form.partition("=")[2]) == 1 << 25
