"""Whose file it is."""

from __future__ import annotations

import plancast as pc
import pytest
from files_here import FIXTURES

WHOSE = {
    "accelerate_fsdp.yaml": "fsdp",
    "accelerate_fsdp2.yaml": "fsdp",
    "ds_zero2.json": "deepspeed",
    "ds_zero3.json": "deepspeed",
    "ds_zeropp.json": "deepspeed",
    "gpt3_175b.sh": "megatron-core",
    "llama3_405b.toml": "torchtitan",
    "llama3_70b_2024.toml": "torchtitan",
    "llama3_8b.toml": "torchtitan",
    "llama3_8b_fp8.sh": "megatron-core",
    "mixtral_8x7b.sh": "megatron-core",
    "mpt_7b.yaml": "composer",
}


def test_every_example_is_tried():
    assert {path.name for path in FIXTURES.iterdir()} == set(WHOSE)


@pytest.mark.parametrize("name", WHOSE)
def test_contents_show_the_framework(name):
    by_path = pc.launchers.read(FIXTURES / name)
    by_text = pc.launchers.read((FIXTURES / name).read_text())
    assert by_path.framework == by_text.framework == WHOSE[name]
    assert by_path.strategy == by_text.strategy
    assert by_path.strategy.launch is by_path


@pytest.mark.parametrize("name", WHOSE)
def test_strategy_opens_argument_files(name):
    assert pc.Strategy.open(str(FIXTURES / name)).launch.framework == WHOSE[name]


@pytest.mark.parametrize("name", WHOSE)
def test_writing_keeps_what_a_file_says(name):
    launch = pc.launchers.read(FIXTURES / name)
    again = pc.launchers.read(launch.strategy.launch_config(launch.framework))
    said = launch.strategy.short_form
    # Micro-batches of one sample, where the file leaves them to the launcher.
    wanted = pc.Strategy.parse(said if "mb=" in said else f"{said},mb=1")
    assert again.strategy == wanted
    assert again.seq == launch.seq
    if name != "accelerate_fsdp.yaml":  # groups of a size of their own take FSDP2's mesh
        assert again.profile == launch.profile
    assert launch.batch in (None, again.batch)
    # `auto` leaves the type open, and a file says one.
    assert again.dtype == (launch.dtype or "bf16")
    assert {**launch.types, **again.types} == again.types
    if launch.model is not None and launch.framework not in ("composer", "fsdp"):
        models = [said.open_model().parameters for said in (launch, again)]
        assert models[0] == models[1]


def test_trees_stay_trees(tmp_path):
    path = tmp_path / "tree.yaml"
    path.write_text("plan: dp=2,tp=2\nnodes:\n  head.logits: {split: {tp: []}}\n")
    assert pc.Strategy.open(str(path)).launch is None


@pytest.mark.parametrize(
    ("source", "framework", "words"),
    [
        ({"a": 1}, None, "not recognised"),
        ({"a": 1}, "torchtian", "Did you mean `torchtitan`"),
        (["x"], None, "no `--flag`"),
        (["--x"], "deepspeed", "reads a file"),
        ("{\n", None, "is not JSON"),
        ("a: [\n", "fsdp", "is not YAML"),
        ("[a]\nb = \n", None, "is not TOML"),
        ("no-such-file.toml", None, "there is no file"),
        ("- a\n- b\n", None, "`key: value` pairs"),
    ],
)
def test_mistakes(source, framework, words):
    with pytest.raises(pc.InputError, match=words):
        pc.launchers.read(source, framework)


def test_dates_and_empty_values_do_no_harm():
    text = "[job]\nday = 2025-01-01\n[parallelism]\n[training]\nlocal_batch_size = 1\n"
    assert pc.launchers.read(text).framework == "torchtitan"


def test_a_config_predicts():
    launch = pc.launchers.read(FIXTURES / "gpt3_175b.sh")
    forecast = launch.predict(pc.Machine.preset("dgx-a100-80g", hosts=128))
    assert forecast.global_batch == 1536
    assert forecast.devices == 1024
    assert launch.to_dict()["batch"] == 1536
