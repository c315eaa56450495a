"""Adapters in a word, `--lora`, and rankings of plans that train them."""

from __future__ import annotations

import plancast as pc
import pytest
from plancast.adapters import directive, word_of
from plancast.errors import InputError

MODEL = pc.Model.preset("llama3-8b", seq=1024)
MACHINE = pc.Machine.preset("dgx-a100-40g", hosts=1)
JOB = ("-m", "llama3-8b", "--seq", "1024", "-c", "dgx-a100-40g:1", "--batch", "16")
SPACE = "pp=1,mb=1|2,recompute=none|full,zero=0|3"


@pytest.mark.parametrize("word", ["16", "8:qkv", "4:qkv+mlp.fc1:nf4", "64:fc2:nf4:0.05", "2:.5"])
def test_a_word_is_read_again_as_it_is_written(word):
    tree = pc.Strategy.parse("dp=8").lora(**directive(word))
    assert tree.to_dict()["nodes"][""]["lora"] == directive(word)
    assert directive(word_of(tree)) == directive(word)


@pytest.mark.parametrize(
    "word", ["", "0", "-1", "1.5", "16:", "16:int8:nf4:fp4", "16:qkv:proj", "16:1.5", "qkv", "16 "]
)
def test_other_words_are_refused(word):
    with pytest.raises(InputError, match=r"is no RANK\[:OP\+OP\]"):
        directive(word)


def beside(word: str) -> pc.Strategy:
    """What all plans have."""
    return pc.Strategy.parse("").lora(**directive(word))


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"plan": "dp=8", "nodes": {}}, "plan `dp=8`"),
        ({"nodes": {"head": {"micro_batches": 2}}}, "`micro_batches`"),
        ({"nodes": {}, "load": {"experts": [2, 1]}}, "`load`"),
    ],
)
def test_other_nodes_are_refused(tree, said):
    with pytest.raises(InputError, match=said):
        pc.rank(MODEL, MACHINE, batch=16, space=SPACE, nodes=pc.Strategy.from_dict(tree))


def test_a_ranking_of_plans_that_train_adapters():
    whole = pc.rank(MODEL, MACHINE, batch=16, space=SPACE)
    lora = pc.rank(MODEL, MACHINE, batch=16, space=SPACE, nodes=beside("16"))
    four = pc.rank(MODEL, MACHINE, batch=16, space=SPACE, nodes=beside("16:nf4"))
    assert len(whole) < len(lora) <= len(four)
    best = lora[0]
    # The forecast is that of the tree, which can be asked for again.
    alone = pc.predict(MODEL, MACHINE, beside("16").with_plan(best.strategy), batch=16)
    assert (alone.iteration_time, alone.peak_memory) == (best.iteration_time, best.peak_memory)
    moved = best.explain(versus=lora[1])
    assert sum(cause.picoseconds for cause in moved.causes) == moved.picoseconds
    few = pc.rank(MODEL, MACHINE, batch=16, space=SPACE, nodes=beside("16"), top=3)
    assert [plan.strategy for plan in few] == [plan.strategy for plan in lora[:3]]


def test_a_search_that_is_kept_knows_its_adapters(tmp_path):
    store = tmp_path / "store.db"
    kept = pc.rank(MODEL, MACHINE, batch=16, space=SPACE, nodes=beside("16"), store=store)
    direct = pc.rank(MODEL, MACHINE, batch=16, space=SPACE, nodes=beside("16"))
    assert [p.iteration_time for p in kept] == [p.iteration_time for p in direct]
    again = pc.rank(
        MODEL, MACHINE, batch=16, space=SPACE, nodes=beside("16"), store=store, resume=True
    )
    assert [p.strategy for p in again] == [p.strategy for p in direct]
    with pytest.raises(InputError, match="nodes"):
        pc.rank(MODEL, MACHINE, batch=16, space=SPACE, nodes=beside("8"), store=store, resume=True)


def test_the_command_line(cli):
    code, out, err = cli("rank", *JOB, "--lora", "16:qkv", "--space", SPACE, "--top", "2")
    assert code == 0, err
    assert "lora 16:qkv" in out
    ranked = cli.json("rank", *JOB, "--lora", "16:qkv", "--space", SPACE, "--top", "1")
    strategy = ranked["plans"][0]["strategy"]
    one = cli.json("predict", *JOB, "-s", strategy, "--lora", "16:qkv")
    assert one["iteration_time_s"] == ranked["plans"][0]["iteration_time_s"]
    assert "is no RANK" in cli.error("predict", *JOB, "-s", "dp=8", "--lora", "r16")
    assert "names no op with `q_proj`" in cli.error(
        "predict", *JOB, "-s", "dp=8", "--lora", "8:q_proj"
    )
    tree = "{plan: dp=8, nodes: {'': {lora: {rank: 4, on: qkv}}}}"
    assert "has adapters at its root" in cli.error("predict", *JOB, "-s", tree, "--lora", "8")
    fsdp = cli.json("rank", *JOB, "--lora", "16", "--for", "fsdp", "--space", SPACE)
    assert fsdp["plans"] and all(plan["chosen"]["profile"] == "fsdp" for plan in fsdp["plans"])
    assert "is no RANK" in cli.error("rank", *JOB, "--lora", "")


def test_the_one_question(cli, tmp_path):
    job = ("llama3-8b", "dgx-a100-40g:1", "--seq", "1024", "--batch", "16")
    out, launch = str(tmp_path / "best.yaml"), tmp_path / "run"
    asked = ("--lora", "8:qkv+proj", "--for", "torchtitan")
    found = cli.json("plan", *job, *asked, "--out", out, "--launch", f"{launch}/")
    assert found["fits"]
    tree = pc.Strategy.open(out)
    assert tree.to_dict()["nodes"][""]["lora"] == directive("8:qkv+proj")
    again = cli.json("predict", *JOB, "-s", out, "--profile", "torchtitan")
    assert again["iteration_time_s"] == found["forecast"]["iteration_time_s"]
    # The argument file has the plan; adapters are the training script's.
    [file] = list(launch.iterdir())
    first, *rest = file.read_text().splitlines()
    assert first == "# the forecast is of training adapters alone, lora 8:qkv+proj"
    assert "lora" not in "".join(rest)
    alone = cli.json("predict", *JOB, "--lora", "8:qkv+proj", "--profile", "torchtitan")
    assert alone["iteration_time_s"] == again["iteration_time_s"]
    assert "--lora is of `plancast plan` without --method" in cli.error(
        "plan", *job, "--lora", "8", "--method", "grid"
    )


def test_the_other_commands(cli):
    plans = ("-s", "dp=8,mb=1", "-s", "tp=8,sp,mb=1")
    compared = cli.json("compare", *JOB, *plans, "--lora", "16")
    alone = cli.json("predict", *JOB, "-s", "tp=8,sp,mb=1", "--lora", "16")
    assert str(alone["iteration_time_s"]) in str(compared)
    found = cli.json("explain", *JOB, *plans[:2], "--versus", "tp=8,sp,mb=1", "--lora", "16")
    assert found
    code, out, _ = cli("compile", *JOB, *plans[:2], "--lora", "16", "--dump-after", "bind")
    assert code == 0 and "lora_a" in out
    # Beside no adapters: a tree says them.
    tree = "{plan: 'dp=8,mb=1', nodes: {'': {lora: {rank: 16, on: [qkv]}}}}"
    assert cli.json("explain", *JOB, "-s", "dp=8,mb=1", "--versus", tree)


def test_a_whole_run_is_one_of_the_adapters(cli):
    job = ("llama3-8b", "dgx-a100-40g:1", "--seq", "1024", "--batch", "16", "--tokens", "1B")
    lora, whole = (cli.json("plan", *job, *more) for more in (("--lora", "8:qkv"), ()))
    assert lora["run"]["days"] < whole["run"]["days"]
    assert whole["strategy"] is not None
