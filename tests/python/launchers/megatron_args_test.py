"""Arguments in scripts, words and namespaces."""

from __future__ import annotations

from argparse import Namespace

import plancast as pc
import pytest
from plancast.frameworks import table
from plancast.frameworks.megatron_args import flags_of, flags_of_namespace, split_script

TABLE = table.load("megatron")


def flags(text):
    return flags_of(split_script(text, "the script"), TABLE, "the script")[0]


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ("--lr 1 --bf16", {"--lr": "1", "--bf16": True}),
        ("--lr=1", {"--lr": "1"}),
        ("A=8\nrun --lr $A", {"--lr": "8"}),
        ("A=8\nB=${A}\nrun --lr ${B}", {"--lr": "8"}),
        ("run --lr ${A:-4}", {"--lr": "4"}),
        ("run --lr ${A}", {"--lr": "${A}"}),
        ("A=2\nB=$((A*4+1))\nrun --lr $B", {"--lr": "9"}),
        ("A=16\nrun --lr $(($A/4))", {"--lr": "4"}),
        ("ARGS=(\n --lr 1 # not --this\n # --nor-this\n --bf16\n)\nrun ${ARGS[@]}",
         {"--lr": "1", "--bf16": True}),
        ('ARGS="\n --lr 1 \\\n --bf16"\nrun $ARGS', {"--lr": "1", "--bf16": True}),
        ('A=(--lr 1)\nA+=("--bf16")\nrun "${A[@]}"', {"--lr": "1", "--bf16": True}),
        ('A=("--lr 1" "--split \'9,1\'")\nrun ${A[@]}', {"--lr": "1", "--split": "'9,1'"}),
        ("ARGS=(--lr 1)", {"--lr": "1"}),
        ("torchrun --nproc_per_node 8 x.py \\\n  --lr 1", {"--nproc-per-node": "8", "--lr": "1"}),
        ("--recompute-modules mlp moe --lr 1",
         {"--recompute-modules": ["mlp", "moe"], "--lr": "1"}),
        ("--bf16 pretrain_gpt.py", {"--bf16": True}),
        ("WORLD_SIZE=16\nA=(--lr 1)", {"--lr": "1", "--world-size": "16"}),
    ],
)  # fmt: skip
def test_scripts(script, wanted):
    assert flags(script) == wanted


def test_a_flag_given_twice_counts_once():
    found, notes = flags_of(["--lr", "1", "--lr", "2"], TABLE, "words")
    assert found == {"--lr": "2"}
    assert "given twice" in notes[0]


@pytest.mark.parametrize(
    ("script", "words"),
    [("run --a 'b", "No closing quotation"), ("A=(--lr 1\nrun ${A[@]}", "never closed"),
     ("A=$B\nB=$A\nrun $A", None), ("A=($B)\nB=($A)\nrun ${A[@]}", "in a circle")],
)  # fmt: skip
def test_broken_scripts(script, words):
    with pytest.raises(pc.InputError, match=words):
        pc.Strategy.from_megatron(script)


def test_namespaces_have_other_names():
    args = Namespace(
        tensor_model_parallel_size=8, sequence_parallel=True, add_bias_linear=False,
        fp8="hybrid", num_layers_in_first_pipeline_stage=3, lr=None, recompute_modules=["mlp"],
        share_embeddings_and_output_weights=True, params_dtype="torch.bfloat16", finetune=False,
    )  # fmt: skip
    found = flags_of_namespace(vars(args), TABLE)
    assert found["--disable-bias-linear"] is True
    assert found["--untie-embeddings-and-output-weights"] is False
    assert found["--fp8-format"] == "hybrid"
    assert found["--decoder-first-pipeline-num-layers"] == 3
    assert found["--recompute-modules"] == ["mlp"]
    assert "--lr" not in found
    assert "--finetune" not in found


def test_a_namespace_is_read_as_its_flags_are():
    args = Namespace(
        tensor_model_parallel_size=2, pipeline_model_parallel_size=4, sequence_parallel=True,
        virtual_pipeline_model_parallel_size=2, microbatch_group_size_per_vp_stage=4,
        micro_batch_size=1, global_batch_size=64, world_size=16, use_distributed_optimizer=True,
        bf16=True, fp16=False, cp_comm_type=["p2p"], moe_token_dispatcher_type="allgather",
        masked_softmax_fusion=False, optimizer="adam", num_experts=None, rank=0,
    )  # fmt: skip
    launch = pc.launchers.read(args)
    assert launch.strategy.short_form == "dp=2,tp=2,sp,pp=4,vpp=2,zero=1,mb=1,accum=32"
    assert launch.unsupported == (
        "`--no-masked-softmax-fusion` = `True`: plain attention scales, masks and normalises in "
        "passes.",
    )


def test_sections_of_yaml_do_not_matter():
    found = flags_of_namespace({"model_parallel": {"tensor_model_parallel_size": 2}}, TABLE)
    assert found == {"--tensor-model-parallel-size": 2}
