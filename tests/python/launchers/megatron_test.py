"""Megatron-core's arguments."""

from __future__ import annotations

import plancast as pc
import pytest
from files_here import FIXTURES
from plancast.frameworks.megatron_stages import layout_of_string, string_of_layout

read = pc.launchers.read


def plan(text, **known):
    return pc.Strategy.from_megatron(text.split(), **known).short_form


@pytest.mark.parametrize(
    ("file", "strategy", "dtype", "parameters"),
    [
        ("gpt3_175b", "dp=8,tp=8,pp=16,mb=1,accum=192", "fp16", "gpt3-175b"),
        ("mixtral_8x7b", "dp=8,pp=4,ep=8,zero=1,mb=1,accum=16,overlap=grad+param", "bf16",
         "mixtral-8x7b"),
        ("llama3_8b_fp8", "dp=8,zero=1,mb=1,accum=16,attn=flash,overlap=grad+param", "fp8",
         "llama3-8b"),
    ],
)  # fmt: skip
def test_published_examples(file, strategy, dtype, parameters):
    launch = read(FIXTURES / f"{file}.sh")
    assert launch.framework == "megatron-core"
    assert launch.strategy.short_form == strategy
    assert launch.dtype == dtype
    assert launch.model.parameters == pc.Model.preset(parameters).parameters
    assert launch.unsupported == ()
    again = read(launch.strategy.launch_config("megatron", model=launch.model, dtype=dtype))
    assert again.strategy == launch.strategy
    assert again.model.parameters == launch.model.parameters


@pytest.mark.parametrize("profile", ["megatron-core", "megatron-lm"])
def test_the_loss_is_fused_where_a_flag_says_so(profile):
    flag = "--cross-entropy-loss-fusion"
    forecast = pc.predict(
        pc.Model.preset("gpt2"), pc.Machine.preset("dgx-a100-80g"), "dp=8,mb=1", batch=8,
        profile=profile,
    )  # fmt: skip
    text = forecast.launch_config("megatron")
    assert (flag in text) == (profile == "megatron-core")
    assert read(text, framework="megatron").profile == profile
    assert read(f"--micro-batch-size 1 {flag}".split()).profile == "megatron-core"
    assert read(["--micro-batch-size", "1"]).profile == "megatron-lm"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("--tensor-model-parallel-size 8 --sequence-parallel", "tp=8,sp"),
        ("--sequence-parallel --bf16", ""),  # off with one rank
        ("--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2",
         "pp=4,vpp=2"),
        ("--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2 "
         "--num-layers 32", "pp=4,vpp=4"),
        ("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout Et*3|(tt|)*2t*1L",
         "pp=2,vpp=2,layout=3+2x2+1"),
        ("--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 6 "
         "--decoder-last-pipeline-num-layers 6 --num-layers 32", "pp=4,layout=6+10x2+6"),
        ("--pipeline-model-parallel-size 4 --account-for-embedding-in-pipeline-split "
         "--account-for-loss-in-pipeline-split --num-layers 30", "pp=4"),
        ("--expert-model-parallel-size 8 --expert-tensor-parallel-size 1 "
         "--tensor-model-parallel-size 2", "tp=2,ep=8,etp=1"),
        ("--use-distributed-optimizer", "zero=1"),
        ("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads", "zero=2"),
        ("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params", "zero=3"),
        ("--use-torch-fsdp2 --torch-fsdp2-no-reshard-after-forward",
         "zero=3,reshard=off"),
        ("--recompute-activations", "recompute=selective"),
        ("--recompute-granularity full --recompute-method block --recompute-num-layers 4",
         "recompute=full:4"),
        ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
         "recompute=full"),
        ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 3",
         "recompute=uniform:3"),
        ("--recompute-granularity selective --recompute-modules moe layernorm",
         "recompute=selective:layernorm+moe"),
        ("--recompute-granularity selective --moe-layer-recompute", "recompute=selective:moe"),
        ("--optimizer-cpu-offload --cpu-offloading-num-layers 3",
         "offload=optimizer+activations:3"),
        ("--bf16 --ddp-bucket-size 40000000", "bucket=160MB"),
        ("--bf16 --grad-reduce-in-bf16 --ddp-bucket-size 40000000", "bucket=80MB"),
        ("--attention-backend unfused", "attn=unfused"),
        ("--use-flash-attn", "attn=flash"),
        ("--use-tp-pp-dp-mapping --pipeline-model-parallel-size 2", "pp=2,order=tp-cp-ep-pp-dp"),
        ("--use-tp-pp-dp-mapping", ""),  # no effect on one stage
        ("--context-parallel-size 4", "cp=4"),
        ("--context-parallel-size 4 --cp-comm-type p2p", "cp=4,cp_type=ring_zigzag"),
        ("--context-parallel-size 4 --cp-comm-type a2a", "cp=4,cp_type=ulysses"),
        ("--context-parallel-size 4 --cp-comm-type all_gather", "cp=4,cp_type=allgather"),
        ("--context-parallel-size 8 --cp-comm-type a2a+p2p"
         " --hierarchical-context-parallel-sizes 2 4", "cp=8,cp_type=hybrid:2"),
        ("--cp-comm-type a2a", ""),  # no effect on one rank
        ("--tp-comm-overlap --sequence-parallel --tensor-model-parallel-size 2",
         "tp=2,sp,overlap=tp"),
    ],
)  # fmt: skip
def test_flags(text, wanted):
    assert plan(text) == wanted


def test_instances_of_the_optimizer_are_replicas():
    text = "--use-distributed-optimizer --num-distributed-optimizer-instances 2"
    assert plan(text, gpus=16) == "dp=16,zero=1,hsdp=8"
    with pytest.raises(pc.InputError, match="Give `gpus`"):
        plan(text)


def test_a_script_that_starts_fewer_gpus_leaves_dp_open():
    launch = read("torchrun --nproc_per_node 8 x.py --tensor-model-parallel-size 16", "megatron")
    assert launch.strategy.short_form == "tp=16"
    assert any("left open" in note for note in launch.notes)


def test_what_matters_and_cannot_be_said_is_listed():
    launch = read(
        "--quick-geglu --moe-token-dispatcher-type flex --optimizer soap --no-such-thing 1 "
        "--num-experts 8 --expert-model-parallel-size 2"
    )
    assert len(launch.unsupported) == 3


PAIRS = (
    "--num-experts 8 --expert-model-parallel-size 2 --moe-token-dispatcher-type alltoall "
    "--overlap-moe-expert-parallel-comm"
)


def test_pairs_of_passes_delay_weight_gradients():
    launch = read(f"{PAIRS} --delay-wgrad-compute")
    assert launch.strategy.short_form == "ep=2,overlap=ep"
    assert launch.unsupported == ()
    (said,) = read(PAIRS).unsupported
    assert "without `--delay-wgrad-compute`" in said
    with pytest.raises(pc.InputError, match="needs `--overlap-moe-expert-parallel-comm`"):
        read("--delay-wgrad-compute")


def test_pairs_of_passes_are_written_with_both_flags_or_refused():
    run = {"model": pc.Model.preset("qwen3-30b-a3b"), "batch": 64}
    text = pc.Strategy.parse("dp=8,ep=8,mb=1,overlap=ep").launch_config("megatron", **run)
    assert "--overlap-moe-expert-parallel-comm" in text
    assert "--delay-wgrad-compute" in text
    with pytest.raises(pc.InputError, match="interleaved"):
        pc.Strategy.parse("dp=4,pp=2,ep=4,mb=1,overlap=ep").launch_config("megatron", **run)


def test_unknown_flags_are_notes():
    launch = read("--bf16 --frobnicate 3")
    assert any("`--frobnicate` is not known" in note for note in launch.notes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("--tensor-model-paralel-size 8", "Did you mean `--tensor-model-parallel-size`"),
        ("--tensor-model-parallel-size eight", "a whole number from 1"),
        ("--tensor-model-parallel-size $TP", "The script does not set that variable"),
        ("--bf16 --fp16", "Keep one"),
        ("--tp-comm-overlap", "--sequence-parallel"),
        ("--recompute-granularity half", "There are `full`, `selective`"),
        ("--recompute-granularity selective --recompute-modules mpl", "Did you mean `mlp`"),
        ("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout Et|tL", "no multiple"),
        ("--pipeline-model-parallel-layout t|t", "one `E` and"),
        ("--num-layers-per-virtual-pipeline-stage 2", "--num-layers"),
        ("--micro-batch-size", "a whole number"),
    ],
)
def test_mistakes(text, words):
    with pytest.raises(pc.InputError, match=words):
        plan(text)


SIZES = (
    "--hidden-size 64 --num-attention-heads 4 --seq-length 32 --vocab-size 512 --mtp-num-layers 1 "
    "--pipeline-model-parallel-size 4 "
)


def test_modules_of_multi_token_prediction_are_layers_behind_the_others():
    text = f"{SIZES} --num-layers 7 --pipeline-model-parallel-layout Et*3|(tt|)*2mL"
    strategy = pc.Strategy.from_megatron(text.split())
    model = strategy.launch.model
    assert strategy.short_form == "pp=4,layout=3+2x2+1"
    assert model.config["mtp_layers"] == 1
    written = strategy.launch_config("megatron", model=model, seq=32)
    assert "--mtp-num-layers 1" in written
    assert "Et*3|(t*2|)*2mL" in written
    again = read(written)
    assert again.strategy.short_form == "pp=4,mb=1,layout=3+2x2+1"
    assert again.model.config["mtp_layers"] == 1
    # Where nothing is said, it is on the last stage, beside its even share.
    assert plan(f"{SIZES} --num-layers 8") == "pp=4,layout=2x3+3"
    with pytest.raises(pc.InputError, match="8 layers, and the model 9 and 1"):
        plan(text.replace("layers 7", "layers 9"))
    with pytest.raises(pc.InputError, match="behind all"):
        plan(text.replace("(tt|)*2mL", "tmt|ttL"))


@pytest.mark.parametrize("layout", [[1, 2], [0, *[1] * 126, 0], [3, 4, 4, 5, 5, 3], [2]])
def test_layout_strings(layout):
    assert layout_of_string(string_of_layout(layout), "layout") == layout


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ("pp=4,schedule=gpipe,mb=1", "Nearest: 1f1b"),
        ("pp=4,schedule=zbv,mb=1", "Nearest: 1f1b"),
        ("mb=1,recompute=every:2", "Nearest: recompute=full:N"),
        ("mb=1,recompute=selective:op", "it has no `op`"),
        ("zero=3,reshard=off,pp=2,mb=1", "reshard=on, or zero=2"),
        ("zero=3,reshard=8,mb=1", "Nearest: reshard=on"),
        ("zero=3,unit=2,mb=1", "Nearest: unit=1"),
        ("zero=1,mb=1,offload=param", "optimizer\\+activations:N"),
        ("zero=1,mb=1,overlap=param", "Nearest: overlap=grad\\+param"),
        ("mb=1,order=pp-tp-dp", "Nearest: tp-cp-ep-pp-dp"),
        ("mb=1,accum=4", "with dp said"),
        ("mb=1,bucket=25000001B", "elements of 4 bytes"),
        ("mb=1,vocab_parallel=vocab1", "without `vocab_parallel`"),
        ("zero=1,mb=1,sync=each", "Nearest: sync=last"),
    ],
)
def test_plans_that_megatron_cannot_run(strategy, words):
    with pytest.raises(pc.InputError, match=words):
        pc.Strategy.parse(strategy).launch_config("megatron-core")
