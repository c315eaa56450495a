"""Spaces of all that a plan can say: the best is that of simulating all, refusals are counted."""

from __future__ import annotations

import io

import plancast as pc
import pytest
from rich.console import Console

MODEL = pc.Model.from_config(
    name="small", layers=6, hidden=2048, heads=16, ffn=8192, vocab=32000, seq=2048
)
H100, A100 = (pc.Machine.preset(name, hosts=1) for name in ("dgx-h100", "dgx-a100-80g"))
NARROW = "tp=1|2,pp=2,vpp=1,mb=1,zero=0|1"


def said(ranking: pc.Ranking) -> list[tuple[str, str, float]]:
    return [(plan.dtype, plan.strategy, plan.iteration_time) for plan in ranking]


@pytest.mark.parametrize(
    "space",
    [
        "layout=*,order=*", "recompute=none|selective:*", "recompute=full:*|every:*|uniform:*",
        "offload=*", "zero=3,reshard=*,prefetch=1|2,sync=*", "schedule=*", "optimizer=*,overlap=*",
    ],
)  # fmt: skip
def test_by_bounds_the_best_are_those_of_all(space: str) -> None:
    rest = NARROW.replace(",zero=0|1", "") if "zero=" in space else NARROW
    asked = {"batch": 32, "space": f"{rest},{space}"}
    best, every = pc.rank(MODEL, H100, top=3, **asked), pc.rank(MODEL, H100, **asked)
    assert said(best) == said(every)[:3]
    assert best.evaluated + best.bounded == every.evaluated == len(every)
    assert len({plan.strategy for plan in every}) == len(every)
    assert best.excluded == every.excluded


def test_what_contradicts_itself_is_left_out_in_the_words_of_predict() -> None:
    ranking = pc.rank(MODEL, H100, batch=32, top=1, space=f"{NARROW},offload=param")
    with pytest.raises(pc.InputError) as refused:
        pc.predict(MODEL, H100, "dp=4,pp=2,mb=1,offload=param", batch=32)
    assert ranking.excluded[str(refused.value)] == 12  # three of tp, four of recompute


def test_several_types_are_ranked_together() -> None:
    asked = {"batch": 32, "top": 5}
    both = pc.rank(MODEL, H100, space=f"{NARROW},dtype=bf16|fp8", **asked)
    apart = [
        entry
        for dtype in ("bf16", "fp8")
        for entry in said(pc.rank(MODEL, H100, space=NARROW, dtype=dtype, exhaustive=True, **asked))
    ]
    assert said(both) == sorted(apart, key=lambda entry: entry[2])[:5]
    assert both.space.startswith("dtype=bf16|fp8,tp=1|2,")
    first = both[0]
    again = pc.predict(MODEL, H100, first.strategy, batch=32, dtype=first.dtype)
    assert again.iteration_time == first.iteration_time


def test_a_table_of_several_types_says_whose_each_plan_is() -> None:
    def table(space: str) -> str:
        ranking = pc.rank(MODEL, H100, batch=32, space=f"tp=1,pp=1,mb=1,zero=0,{space}")
        console = Console(width=200, file=io.StringIO(), record=True)
        console.print(ranking)
        return console.export_text()

    assert "type bf16" in table("dtype=bf16").splitlines()[1]
    both = table("recompute=none,dtype=bf16|fp8")
    assert "type" not in both.splitlines()[1]
    assert {"bf16", "fp8"} <= set(both.split())


def test_types_that_a_gpu_has_no_units_for_are_left_out() -> None:
    ranking = pc.rank(MODEL, A100, batch=32, top=2, space=f"{NARROW},dtype=fp8|bf16|nvfp4")
    assert {plan.dtype for plan in ranking} == {"bf16"}
    for dtype in ("fp8", "nvfp4"):
        assert ranking.excluded[f"A100-SXM-80GB has no units for dtype={dtype}"] == 24


@pytest.mark.parametrize(("space", "sizes"), [("", "mb=1..64"), ("mb=2|4", "mb=2|4")])
def test_small_models_are_tried_with_large_micro_batches(space: str, sizes: str) -> None:
    ranking = pc.rank(MODEL, H100, batch=64, top=1, space=f"tp=1,pp=1,{space}".strip(","))
    assert sizes in ranking.space.split(",")
    large = pc.rank(pc.Model.preset("llama3-8b"), H100, batch=64, top=1, space="tp=8,pp=1")
    assert "mb=1|2|4|8" in large.space.split(",")


def test_the_default_space_deals_layers_around_embedding_and_head() -> None:
    model, machine = pc.Model.preset("llama3-8b"), pc.Machine.preset("dgx-a100-80g", hosts=4)
    asked = {"batch": 512, "top": 1, "where": "pp>1"}
    even = pc.rank(model, machine, space="layout=even", **asked)[0]
    best = pc.rank(model, machine, **asked)[0]
    assert "layout=" in best.strategy
    assert best.iteration_time < 0.99 * even.iteration_time
    assert "--pipeline-model-parallel-layout" in best.launch_config("megatron-core")


def test_copies_of_shards_over_several_domains_are_a_space_besides() -> None:
    model, machine = pc.Model.preset("llama3-8b"), pc.Machine.preset("dgx-h100", hosts=8)
    asked = {"batch": 256, "exhaustive": True}
    ranking = pc.rank(model, machine, space="tp=1|2|8,mb=1", where="tp<8", **asked)
    first, _, besides = ranking.space.partition(" and besides ")
    assert "layout=even|balanced" in first
    assert "hsdp=16|32" in besides
    copies = [plan for plan in ranking if "hsdp=16" in plan.strategy or "hsdp=32" in plan.strategy]
    assert {plan.chosen["tp"] for plan in copies} == {"1", "2"}
    assert all("pp=1," in plan.strategy and "zero=3" in plan.strategy for plan in copies)
    plans = [plan.strategy for plan in ranking]
    assert len(plans) == len(set(plans)) == ranking.evaluated
    # What makes them a space of their own is no reason to leave plans out.
    assert not any("hsdp>1" in why for why in ranking.excluded)
    best = pc.rank(model, machine, space="tp=1|2|8,mb=1", where="tp<8", batch=256, top=5)
    assert said(best) == said(ranking)[:5]


def test_a_store_keeps_both_spaces(tmp_path) -> None:
    model, machine = pc.Model.preset("llama3-8b"), pc.Machine.preset("dgx-h100", hosts=4)
    asked = {"batch": 128, "space": "tp=1,mb=1,recompute=none", "top": 5}
    kept = pc.rank(model, machine, store=tmp_path / "search.db", **asked)
    assert said(kept) == said(pc.rank(model, machine, **asked))
    assert " and besides " in kept.space
    again = pc.rank(model, machine, store=tmp_path / "search.db", resume=True, **asked)
    assert said(again) == said(kept)


def test_plan_and_rank_look_at_one_default_space() -> None:
    model = pc.Model.from_config(
        name="small", layers=2, hidden=512, heads=8, ffn=2048, vocab=1000, seq=256
    )
    ranking = pc.rank(model, H100, batch=64, top=1)
    best = pc.plan(model, H100, batch=64).best
    assert best is not None
    # A simpler plan within half a percent goes before it.
    assert ranking[0].iteration_time <= best.iteration_time <= 1.005 * ranking[0].iteration_time


@pytest.mark.parametrize(
    ("space", "options", "message"),
    [
        ("dtype=bf17", {}, "no dtype `bf17`"),
        ("dtype=bf16,dtype=fp8", {}, "takes types once"),
        ("dtype=bf16|fp8", {"store": "never.db"}, "plans of one type"),
        ("layout=odd", {}, "layout"),
        ("order=dp", {}, "leaves out `tp`"),
        ("recompute=some:*", {}, "each also with `\\*`"),
        ("accum=2", {}, "no key `accum`"),
    ],
)
def test_errors_say_what_would_be_right(space: str, options: dict, message: str) -> None:
    with pytest.raises(pc.InputError, match=message):
        pc.rank(MODEL, H100, batch=32, space=space, **options)
