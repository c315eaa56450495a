"""Recipes that frameworks ship: their table, the one that fits a machine, and `-s recipe`."""

from __future__ import annotations

import json

import plancast as pc
import pytest
from plancast.accuracy.validation import row_recipe, rows
from plancast.recipes import gpu_in, machine_for, named, profile_of, recipes
from plancast.recipes.choose import choose
from plancast.strategy import Strategy

ALL = recipes()
GB200 = pc.Machine.open("gb200-nvl72:64")
NEWEST = [one for one in ALL if "0.6.0" in one.versions]


def test_every_recipe_has_a_name_of_its_own_and_runs_on_its_machine():
    assert len({one.name for one in ALL}) == len(ALL) > 500
    profiles = set(pc.profiles())
    for one in ALL:
        assert named(one.name) == one
        machine = pc.Machine.open(machine_for(one))
        assert machine.devices == one.gpus
        assert one.runs_on(one.gpus)
        assert one.batch_on(one.gpus) == one.batch
        assert profile_of(one) in profiles
        assert gpu_in(machine_for(one).partition(":")[0]) == one.gpu


@pytest.mark.parametrize("plan", sorted({one.plan for one in ALL}))
def test_every_plan_is_said_in_full(plan):
    keys = Strategy.parse(f"dp=4,{plan}").short_form.split(",")
    assert set(plan.split(",")) <= {*keys, "zero=0"}


@pytest.mark.parametrize("model", sorted({one.model for one in NEWEST}))
def test_a_recipe_is_forecast_as_it_is_said(model):
    one = min((one for one in NEWEST if one.model == model), key=lambda one: one.gpus)
    machine = pc.Machine.open(machine_for(one))
    launch = pc.recipe(model, machine, dtype=one.dtype, words=[one.name])
    forecast = launch.predict(machine)
    dp = machine.devices // one.replica
    plan = Strategy.parse(f"dp={dp},{one.plan}")
    again = pc.predict(
        launch.open_model(),
        machine,
        plan,
        batch=one.batch,
        dtype=one.dtype,
        profile=profile_of(one),
        cuda_graphs=one.cuda_graphs,
        **launch.types,
    )
    assert forecast.iteration_time == again.iteration_time
    assert forecast.strategy == again.strategy


def test_the_newest_recipe_goes_first_and_words_choose():
    assert choose("deepseek-v3", GB200).versions[-1] == "0.6.0"
    assert choose("deepseek-v3", GB200).dtype == "bf16"
    assert choose("deepseek-v3", GB200, dtype="mxfp8").fused
    old = choose("deepseek-v3", GB200, dtype="mxfp8", words=["0.2"])
    assert set(old.versions) <= {"0.2.0", "0.2.1", "0.2.2"}
    assert choose("deepseek-v3", GB200, dtype="mxfp8", words=["v0.2.0"]) == old
    large = choose("deepseek-v3", GB200, dtype="mxfp8", words=["large-scale"])
    assert large.variant == "large-scale"
    tuned = choose("llama3-70b", pc.Machine.open("dgx-h100:4"), dtype="fp8", words=["sft"])
    assert tuned.task == "sft"
    assert choose("llama3-405b", GB200).model == "llama3.1-405b"


def test_batch_and_replicas_follow_the_number_of_gpus():
    twice = pc.recipe("deepseek-v3", pc.Machine.open("gb200-nvl72:128"), dtype="mxfp8")
    once = pc.recipe("deepseek-v3", GB200, dtype="mxfp8")
    assert twice.batch == 2 * once.batch
    assert twice.strategy.short_form.startswith("dp=128,")
    assert any("written for 256 GPUs" in note for note in twice.notes)
    assert not any("written for" in note for note in once.notes)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("-m mixtral-8x7b -c dgx-h100:8 -s recipe", "recipes are shipped for deepseek-v3, gpt-oss"),
        ("-m llama3-8b -c dgx-a100-80g:1 -s recipe", "are for b200, b300, gb200, gb300, h100, not"),
        ("-m llama3-8b -c dgx-h100:1 -s recipe --dtype mxfp8", "are in bf16, fp8, not `mxfp8`"),
        ("-m llama3-8b -c dgx-h100:1 -s recipe:huge", "has `huge`. Their words are 0.2, 0.2.0"),
        ("-m qwen3-235b-a22b -c dgx-h100:3 -s recipe", "runs on 24 GPUs"),
    ],
)
def test_where_there_is_none_the_user_reads_what_there_is(cli, words, says):
    code, out, err = cli("predict", *words.split())
    assert (code, out) == (2, "")
    assert says in " ".join(err.split())


def test_the_command_line_takes_batch_type_and_graphs_from_it(cli):
    words = ["predict", "-m", "qwen3-30b-a3b", "-c", "gb200-nvl72:2", "-s", "recipe"]
    code, out, err = cli(*words, "--dtype", "mxfp8")
    assert code == 0
    one = named("qwen3-30b-a3b/gb200/mxfp8/8@0.6.0")
    assert f"batch {one.batch}" in out
    assert "megatron-bridge-fused" in out
    assert f"recipe {one.name} of Megatron-Bridge" in " ".join(err.split())
    code, out, _ = cli(*words, "--dtype", "mxfp8", "--batch", "64", "--json")
    assert code == 0
    assert json.loads(out)["chosen"]["accum"] == str(64 // 8 // one.degree("mb"))


def test_a_name_is_understood_in_full(cli):
    name = "llama3-70b/gb200/nvfp4/64@0.6.0"
    code, out, _ = cli("show", name)
    assert code == 0
    command = " ".join(out.split()).partition("next: plancast ")[2].split()
    assert command[:2] == ["predict", "-m"]
    code, out, _ = cli(*command, "--dtype", "nvfp4")
    assert code == 0
    code, _, err = cli("show", name.replace("nvfp4", "nvfp5"))
    assert code == 2
    assert name in err


ROW = {
    "row_id": "a",
    "source": "here",
    "model": "llama3-70b",
    "layers": "80",
    "hidden": "8192",
    "heads": "64",
    "seq_len": "8192",
    "machine": "gb200-nvl72:16",
    "global_batch": "256",
    "dtype": "nvfp4",
    "software": "Megatron-Bridge 26.02.01 NeMo Container",
    "iter_time_s": "7",
}


@pytest.mark.parametrize(
    ("strategy", "assumptions", "exact", "lacks"),
    [
        ("dp=8,tp=2,sp,pp=4,vpp=5,zero=1,mb=1,overlap=grad+param+tp", "", True, ["tp"]),
        ("dp=8,tp=2,sp,pp=4,zero=1,mb=1", "vpp=not_printed", True, []),
        ("dp=8,tp=2,sp,pp=4,zero=1,mb=1", "", False, []),
        ("dp=32,tp=2,sp,zero=1,mb=1", "", False, []),
    ],
)
def test_a_row_that_ran_a_recipe_is_found(tmp_path, strategy, assumptions, exact, lacks):
    path = tmp_path / "rows.csv"
    cells = {**ROW, "strategy": f'"{strategy}"', "assumptions": assumptions}
    path.write_text(",".join(cells) + "\n" + ",".join(cells.values()) + "\n")
    (row,), _ = rows.read_rows([path])
    found = row_recipe.recipe_of(row)
    assert found is not None
    assert found.exact == exact
    assert found.recipe.model == "llama3-70b"
    said = row.strategy_keys().get("overlap", "").split("+")
    assert found.lacks(said) == lacks


def test_a_plan_that_was_found_is_told_beside_the_recipes():
    machine = pc.Machine.open("gb200-nvl72:2")
    model = pc.Model.preset("qwen3-30b-a3b")
    choice = pc.plan(model, machine, batch=512, dtype="mxfp8", space="ep=8,mb=4,pp=1,tp=1")
    told = [line for line in choice.said if "Megatron-Bridge's recipe" in line]
    assert len(told) == 1
    assert "dp=8,ep=8,zero=1,mb=4" in told[0]
    other = pc.plan(pc.Model.preset("gpt2"), machine, batch=64, space="tp=1,pp=1,mb=8")
    assert not any("recipe" in line for line in other.said)
