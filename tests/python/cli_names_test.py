"""Names that there are not, and jobs that no command has: what is said instead."""

from __future__ import annotations

import json
import re

import plancast as pc
import pytest


@pytest.mark.parametrize(("option", "lora"), [("--lora", "16"), ("--qlora", "16:nf4")])
def test_adapters_are_of_plan_rank_and_predict(cli, option, lora):
    words = ("-m", "llama3-8b", "-c", "dgx-h100:1", "--availability", "hosts.csv")
    answer = cli.error("spot", *words, option, "16")
    assert "`plancast spot` looks at training of all parameters" in answer
    assert f"`plancast rank -m MODEL -c MACHINE --batch N --lora {lora}`" in answer
    for command in ("rank", "train"):
        answer = cli.error(command, "-m", "gpt2", "-c", "dgx-a100-80g:1", "--qlora")
        assert "Write `--lora 16:nf4`" in answer


def test_where_nothing_fits_adapters_may(cli):
    job = ("llama3-8b-l24", "t4-pcie:1x1", "--batch", "4", "--seq", "512")
    code, out, _ = cli("plan", *job)
    assert code == 3
    said = " ".join(out.split())
    tree = re.search("fine-tuning with LoRA of rank 16: .* with `-s '(.*?)'`", said)[1]
    model, machine, *more = job
    found = cli.json("predict", "-m", model, "-c", machine, *more, "-s", tree)
    assert found["fits"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("llama4-maverick", "Like it are `llama"),
        ("plan9", "There are `gpt2`"),
        ("llama3-8", "Did you mean `llama3-8b`?"),
    ],
)
def test_names_of_models_that_there_are_not(cli, name, said):
    answer = cli.error("plan", name, "dgx-h100:1")
    assert said in answer
    assert ("`plancast list models` has all" in answer) != ("Did you mean" in answer)
    assert len(answer) < 300


def test_an_architecture_that_is_not_known_gets_a_draft(cli, tmp_path):
    config = tmp_path / "config.json"
    sizes = {
        "hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 8, "vocab_size": 1024,
        "max_position_embeddings": 256, "intermediate_size": 1024, "num_local_experts": 4,
        "num_experts_per_tok": 2,
    }  # fmt: skip
    config.write_text(json.dumps({"model_type": "novel", **sizes}))
    answer = cli.error("plan", str(config), "dgx-h100:1")
    drafted = tmp_path / "model.yaml"
    drafted.write_text(re.search("model.yaml with `(.*)`", answer)[1])
    model = pc.Model.open(str(drafted))
    assert (model.layers, model.seq) == (2, 256)
    del sizes["vocab_size"]
    config.write_text(json.dumps({"model_type": "novel", **sizes}))
    assert "plain transformer" not in cli.error("plan", str(config), "dgx-h100:1")


def test_compare_without_a_strategy_takes_the_plan_for_each_machine(cli, small_file):
    machines = ("dgx-a100-80g:1", "dgx-h100:1")
    plans = [cli.json("plan", small_file, machine, "--batch", "8") for machine in machines]
    both = ("compare", "-m", small_file, "-c", machines[0], "-c", machines[1], "--batch", "8")
    code, out, err = cli(*both, "--json")
    assert code == 0
    said = [one["strategy"] for one in json.loads(out)["plans"]]
    assert said == [one["strategy"] for one in plans]
    assert "it is the plan that `plancast plan` chooses for each machine" in err
    assert "add another `-c`" in cli.error(*both[:5])


def test_compare_says_where_nothing_fits(cli, monkeypatch):
    monkeypatch.setattr("plancast.plan_search.Search.would_fit", lambda self, nearest: [])
    job = ("-m", "gpt3-175b", "--seq", "512", "--batch", "64")
    error = cli.error("compare", *job, "-c", "dgx-h100:1", "-c", "dgx-h100:16")
    assert error == (
        "no plan of `gpt3-175b` fits on dgx-h100:1x8; `plancast plan` says what would."
    )


def test_a_batch_that_does_not_divide_over_the_gpus(cli, small_file):
    answer = cli.json("plan", small_file, "dgx-h100:3", "--batch", "64", "--space", "mb=1|2")
    assert answer["said"][0] == (
        "a batch of 64 does not divide over all 24 GPUs, which leaves out plans; 72 does"
    )
    even = cli.json("plan", small_file, "dgx-h100:1", "--batch", "64", "--space", "mb=1|2")
    assert not any("divide" in text for text in even["said"])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("predict llama3-8b dgx-h100:2", "Write `plancast predict -m llama3-8b -c dgx-h100:2`."),
        ("rank dgx-h100:2 --batch 8", "Write `plancast rank -c dgx-h100:2`."),
        ("predict -m gpt2 -c dgx-h100:1 -s tp=8 mb=1 sp", "Write `-s tp=8,mb=1,sp`."),
        ("predict -m gpt2 -c dgx-h100:1 -s tp=8, mb=1", "Write `-s tp=8,mb=1`."),
        ("predict -m gpt2 -c dgx-h100:1 -s tp=8 out.html", "`out.html` is not understood."),
        ("plan gpt2 dgx-h100:1 --dtype bfloat16", "Did you mean `bf16`?"),
        ("plan", "needs a model, such as `llama3-8b`, and a machine, such as `dgx-h100:2`. Write"),
    ],
)
def test_lines_that_nearly_are_commands(cli, line, said):
    assert said in cli.error(*line.split())


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        ("import hf x/y", ("no format `hf`. Models are not imported but named: `-m meta",)),
        ("import megatron run.sh", ("no format `megatron`. `plancast import launch FILE`",)),
        ("export deepspeed", ("`plancast export launch deepspeed -m MODEL ...`",)),
        ("import chakr", ("no format `chakr`. There are `astra`, `chrome`",)),
        ("export chakr", ("no format `chakr`. Did you mean `chakra`?",)),
        ("import", ("`plancast import` needs its format: `astra`, `chrome`",)),
        ("records", ("`plancast records` needs its action: `ingest`, `show`.",)),
        ("predict -m gpt2 -c t4-pcie --fidelity chunk", ("--fidelity is not `chunk`. Did",)),
    ],
)
def test_formats_and_words_that_are_none(cli, words, answers):
    said = cli.error(*words.split())
    assert "invalid choice" not in said
    for answer in answers:
        assert answer in said
