"""Argument files say what a forecast takes for granted."""

from __future__ import annotations

import json

import plancast as pc
import pytest
from plancast.textual import duration


@pytest.fixture(scope="module")
def written():
    """The lines of the file of a forecast; nothing is said but the plan."""
    session = pc.Session()

    def write(framework, model, strategy="tp=8,sp,mb=1", machine="dgx-h100:2", **options):
        batch = options.pop("batch", 64)
        if isinstance(model, str):
            model = pc.Model.preset(model, seq=2048)
        forecast = pc.predict(
            model, pc.Machine.preset(machine), strategy, batch=batch, session=session, **options
        )
        return [line.strip() for line in forecast.launch_config(framework).splitlines()]

    return write


def test_megatron_gets_the_sizes_of_the_model_that_was_predicted(written):
    lines = written("megatron-core", "llama3-8b")
    assert "--num-layers 32" in lines
    assert "--hidden-size 4096" in lines
    assert "--seq-length 2048" in lines


def test_megatron_drops_nothing_where_the_profile_has_no_dropout(written):
    lines = written("megatron-core", "llama3-8b")
    assert "--attention-dropout 0" in lines
    assert "--hidden-dropout 0" in lines
    old = written("megatron-core", "gpt3-6.7b", machine="dgx-a100-80g:2", profile="megatron-2021")
    assert not any("dropout" in line for line in old)


@pytest.mark.parametrize(
    ("model", "base"),
    [("llama3-8b", 500000), ("llama2-7b", 10000), ("qwen3-8b", 1000000), ("mistral-7b", 10000)],
)
def test_megatron_gets_the_base_of_rotary_embeddings(written, model, base):
    assert f"--rotary-base {base}" in written("megatron-core", model)


def test_a_base_nobody_knows_is_said(written):
    model = pc.Model.from_config(
        name="mine", layers=4, hidden=512, heads=8, ffn=2048, vocab=1000, seq=256, position="rope"
    )
    lines = written("megatron-core", model)
    assert not any("--rotary-base" in line for line in lines)
    assert any(line.startswith("# the base of rotary embeddings is not known") for line in lines)


def test_what_of_a_model_megatron_is_not_told_is_said(written):
    assert "# of the model these are not said: window" in written("megatron-core", "mistral-7b")
    assert not any("not said" in line for line in written("megatron-core", "llama3-8b"))


def test_megatron_runs_experts_in_one_product(written):
    lines = written("megatron-core", "qwen3-30b-a3b", "tp=1,ep=8,zero=1,mb=1,recompute=full")
    assert "--moe-grouped-gemm" in lines


def test_experts_one_by_one_are_not_what_is_simulated():
    sizes = "--num-layers 8 --hidden-size 64 --num-attention-heads 4 --seq-length 32"
    text = f"{sizes} --vocab-size 100 --num-experts 4"
    assert "run one after the other" in " ".join(pc.launchers.read(text).unsupported)
    assert pc.launchers.read(f"{text} --moe-grouped-gemm").unsupported == ()


def test_dropout_of_a_script_is_not_what_is_simulated():
    launch = pc.launchers.read("--bf16 --attention-dropout 0.1 --hidden-dropout 0.0")
    assert len(launch.unsupported) == 1
    assert "`--attention-dropout` = 0.1" in launch.unsupported[0]


@pytest.mark.parametrize(
    ("model", "name", "flavor"),
    [
        ("llama3-8b", "llama3", "8B"),
        ("llama3.1-405b", "llama3", "405B"),
        ("qwen3-8b", "qwen3", "8B"),
        ("qwen3-30b-a3b", "qwen3", "30B-A3B"),
        ("deepseek-v2-lite", "deepseek_v3", "16B"),
    ],
)
def test_torchtitan_gets_its_name_of_the_model(written, model, name, flavor):
    lines = written("torchtitan", model, "zero=3,mb=1,recompute=full", profile="torchtitan")
    assert f'name = "{name}"' in lines
    assert f'flavor = "{flavor}"' in lines
    assert not any("ships no" in line for line in lines)
    # 3.1 is the same model as 3 here.
    again = pc.launchers.read("\n".join(lines), "torchtitan").model
    assert again.replace("3.1", "3") == model.replace("3.1", "3")


def test_a_model_that_torchtitan_has_not_does_not_become_its_small_one(written):
    lines = written("torchtitan", "mistral-7b", "zero=3,mb=1,recompute=full", profile="torchtitan")
    assert 'name = "mistral"' in lines
    assert 'flavor = "7B"' in lines
    assert any(line.startswith("# torchtitan ships no `mistral-7b`") for line in lines)


def test_accelerate_gets_the_number_of_machines(written):
    lines = written("fsdp", "llama3-8b", "zero=3,mb=1,recompute=full", profile="fsdp")
    assert "num_processes: 16" in lines
    assert "num_machines: 2" in lines
    assert "--machine_rank RANK --main_process_ip HOST" in lines[2]


@pytest.mark.parametrize(
    ("script", "gpus"),
    [
        ("NNODES=${NNODES:-8}\nrun --nnodes $NNODES --nproc-per-node 8 --bf16", 64),
        ('NNODES="${NNODES:-8}"\nrun --nnodes ${NNODES} --nproc-per-node 8 --bf16', 64),
        ("NNODES=4\nNNODES=${NNODES:-8}\nrun --nnodes $NNODES --nproc-per-node 8 --bf16", 32),
        ('A="--nnodes 2"\nA="$A --nproc-per-node 8"\nrun $A --bf16', 16),
        ("A=(--nnodes 2)\nA=(${A[@]} --nproc-per-node 8)\nrun ${A[@]} --bf16", 16),
    ],
)
def test_a_variable_may_be_set_from_itself(script, gpus):
    assert pc.launchers.read(script, "megatron-core").gpus == gpus


@pytest.mark.parametrize(
    ("framework", "command"),
    [
        ("megatron-core", "torchrun --nnodes 2 --nproc-per-node 8 "),
        ("torchtitan", "torchrun --nnodes 2 --nproc-per-node 8 "),
        ("fsdp", "accelerate launch "),
        ("composer", "composer -n 8 --world_size 16 "),
        ("deepspeed", "deepspeed --num_nodes 2 --hostfile HOSTS --num_gpus 8 "),
    ],
)
def test_a_file_begins_with_its_forecast_and_its_command(framework, command):
    forecast = pc.predict(
        pc.Model.preset("llama3-8b", seq=2048),
        pc.Machine.preset("dgx-h100:2"),
        "zero=1,mb=1" if framework == "megatron-core" else "zero=3,mb=1,recompute=full",
        batch=32,
        profile=framework,
    )
    text = forecast.launch_config(framework)
    if framework == "deepspeed":
        head = json.loads(text)["_comment"]
    else:
        head = [line.removeprefix("# ") for line in text.splitlines()[:3]]
    assert head[0].startswith("llama3-8b on 16 GPUs of dgx-h100, ")
    assert head[1].startswith(f"forecast: {duration(forecast.iteration_time)} a step")
    assert head[2].startswith(command)
    # What is said above changes nothing of what is read below.
    launch = pc.launchers.read(text, framework)
    assert (launch.batch or 32, launch.gpus or 16) == (32, 16)
    assert not any("_comment" in note for note in launch.notes)


def test_a_name_writes_no_lines_of_its_own(written):
    model = pc.Model.from_config(
        name="a\nrm -rf b", layers=4, hidden=512, heads=8, ffn=2048, vocab=1000, seq=256
    )
    assert "rm -rf b" not in written("megatron-core", model)
