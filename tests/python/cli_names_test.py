"""Names that there are not, and jobs that no command has: what is said instead."""

from __future__ import annotations

import json
import re

import plancast as pc
import pytest


def test_adapters_are_of_predict(cli):
    answer = cli.error("plan", "llama3-8b", "rtx4090-pcie:1x1", "--lora", "16")
    assert "`plancast plan` looks at training of all parameters" in answer
    assert "`plancast predict -m MODEL -c MACHINE --batch N -s '{plan:" in answer


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
