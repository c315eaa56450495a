"""torchtitan's job configuration."""

from __future__ import annotations

import plancast as pc
import pytest
from files_here import FIXTURES
from plancast.frameworks.torchtitan_pipeline import balanced

read = pc.launchers.read


def toml(parallelism="", training="", rest="[activation_checkpoint]\nmode = 'none'"):
    return f"[parallelism]\n{parallelism}\n[training]\nlocal_batch_size = 1\n{training}\n{rest}\n"


def plan(*texts, **known):
    return pc.Strategy.from_torchtitan(toml(*texts), **known).short_form


@pytest.mark.parametrize(
    ("file", "strategy", "model", "dtype", "profile"),
    [
        ("llama3_8b", "zero=3,mb=1,recompute=selective:op", "llama3-8b", "bf16",
         "torchtitan-eager"),
        ("llama3_70b_2024", "tp=8,sp,zero=3,mb=8,recompute=full", "llama3-70b", "bf16",
         "torchtitan-eager"),
        ("llama3_405b", "tp=8,sp,zero=3,mb=2,recompute=full,overlap=grad+param+tp", "llama3-405b",
         "fp8", "torchtitan"),
    ],
)  # fmt: skip
def test_published_configurations(file, strategy, model, dtype, profile):
    launch = read(FIXTURES / f"{file}.toml")
    assert launch.framework == "torchtitan"
    assert launch.strategy.short_form == strategy
    assert (launch.model, launch.dtype, launch.profile, launch.seq) == (model, dtype, profile, 8192)
    assert launch.unsupported == ()
    again = read(launch.strategy.launch_config("torchtitan", profile=profile))
    assert again.strategy == launch.strategy


def test_gpus_settle_data_parallelism_and_batch():
    launch = read(FIXTURES / "llama3_405b.toml", gpus=128)
    assert "dp=16" in launch.strategy.short_form
    assert launch.batch == 32


def test_the_defaults_are_torchtitans():
    launch = read("[parallelism]\n[training]\n")
    # Activation checkpointing of every second layer, and eight samples a rank.
    assert launch.strategy.short_form == "zero=3,mb=8,recompute=every:2"
    assert any("local_batch_size" in note for note in launch.notes)


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("data_parallel_shard_degree = 8", "dp=8,zero=3,mb=1"),
        ("data_parallel_replicate_degree = 4\ndata_parallel_shard_degree = 8",
         "dp=32,zero=3,hsdp=8,mb=1"),
        ("data_parallel_replicate_degree = 4\ndata_parallel_shard_degree = 1",
         "dp=4,mb=1"),
        ("fsdp_reshard_after_forward = 'never'", "zero=3,reshard=off,mb=1"),
        ("fsdp_reshard_after_forward = 'always'", "zero=3,mb=1"),
        ("data_parallel_shard_degree = 1\ncontext_parallel_degree = 2", "dp=1,cp=2,zero=3,mb=1"),
        ("tensor_parallel_degree = 4\nenable_sequence_parallel = false", "tp=4,zero=3,mb=1"),
        ("tensor_parallel_degree = 4\nexpert_parallel_degree = 8",
         "tp=4,sp,ep=8,etp=1,zero=3,mb=1"),
        ("expert_parallel_degree = 8", "ep=8,zero=3,mb=1"),
    ],
)  # fmt: skip
def test_meshes(said, wanted):
    assert plan(said) == wanted


def test_replicas_without_a_size_need_the_gpus():
    said = "data_parallel_replicate_degree = 2"
    with pytest.raises(pc.InputError, match="Give `gpus`"):
        plan(said)
    assert plan(said, gpus=16) == "dp=16,zero=3,hsdp=8,mb=1"


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("mode = 'none'", None), ("mode = 'full'", "full"),
        ("mode = 'selective'\nselective_ac_option = 'op'", "selective:op"),
        ("mode = 'selective'\nselective_ac_option = '3'", "every:3"),
        ("mode = 'selective'\nselective_ac_option = 1", "full"),
    ],
)  # fmt: skip
def test_activation_checkpointing(said, wanted):
    text = plan("", "", f"[activation_checkpoint]\n{said}")
    assert text == "zero=3,mb=1" + (f",recompute={wanted}" if wanted else "")


def test_a_pipeline_counts_micro_batches_of_the_local_batch():
    launch = read(
        "[parallelism]\npipeline_parallel_degree = 4\npipeline_parallel_microbatch_size = 2\n"
        "data_parallel_shard_degree = 2\n[training]\nlocal_batch_size = 16\n"
        "[activation_checkpoint]\nmode = 'none'"
    )
    assert launch.strategy.short_form == "dp=2,pp=4,zero=3,sync=last,mb=2,accum=8"
    assert launch.batch == 32


def test_accumulation_over_pipelines_is_told():
    launch = read(
        "[parallelism]\npipeline_parallel_degree = 2\ndata_parallel_shard_degree = 2\n"
        "[training]\nlocal_batch_size = 4\nglobal_batch_size = 16"
    )
    assert "accum=8" in launch.strategy.short_form
    assert "each drained" in launch.unsupported[0]


@pytest.mark.parametrize(
    ("word", "wanted"),
    [("1F1B", ""), ("gpipe", "schedule=gpipe"), ("Interleaved1F1B", "vpp=2"),
     ("ZBVZeroBubble", "schedule=zbv"), ("DualPipeV", "schedule=dualpipev"),
     ("LoopedBFS", "schedule=breadth-first")],
)  # fmt: skip
def test_schedules(word, wanted):
    text = plan(f"pipeline_parallel_degree = 2\npipeline_parallel_schedule = '{word}'")
    assert wanted in text


def test_stages_are_cut_as_torchtitan_cuts_them():
    assert balanced(32, 4, 1, 1) == [8, 9, 8, 7]
    model = pc.Model.preset("llama3-8b")
    assert "layout=8+9+8+7" in plan("pipeline_parallel_degree = 4", model=model)
    less = "pipeline_parallel_first_stage_less_layers = 0\n"
    less += "pipeline_parallel_last_stage_less_layers = 0"
    assert "layout" not in plan(f"pipeline_parallel_degree = 4\n{less}", model=model)


def test_split_points_and_layers_of_a_stage_need_the_model():
    points = "pipeline_parallel_degree = 3\npipeline_parallel_split_points = "
    points += "['layers.10', 'layers.22']"
    with pytest.raises(pc.InputError, match="Give the model"):
        plan(points)
    assert "layout=10+12+10" in plan(points, model=pc.Model.preset("llama3-8b"))


def test_named_parts_are_counted():
    parts = "[['tok_embeddings', 'layers.0'], ['layers.1', 'layers.2', 'norm', 'output']]"
    text = plan(f"pipeline_parallel_degree = 2\nmodule_fqns_per_model_part = {parts}")
    assert "layout=1+2" in text


def test_async_tensor_parallelism_needs_compilation():
    said = "tensor_parallel_degree = 2\nenable_async_tensor_parallel = true"
    assert "overlap" not in plan(said)
    assert "overlap=grad+param+tp" in plan(said, "", "[compile]\nenable = true")


def test_what_matters_and_cannot_be_said_is_listed():
    launch = read(toml("disable_loss_parallel = true", "", "[optimizer]\nname = 'Muon'"))
    assert len(launch.unsupported) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[parallelism]\ntensor_parallel_degree = 0", "a whole number from 1"),
        ("[parallelism]\ntensor_paralel_degree = 8", "Did you mean"),
        ("[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = '1F1C'",
         "Did you mean `1F1B`"),
        ("[parallelism\n", ":1:13 is not TOML"),
        ("[training]\nlocal_batch_size = 3\n[parallelism]\npipeline_parallel_degree = 2\n"
         "pipeline_parallel_microbatch_size = 2", "cannot be cut"),
        ("[activation_checkpoint]\nselective_ac_option = 'mm'", "`op` or a number"),
        ("[training]\nglobal_batch_size = 10\n[parallelism]\ndata_parallel_shard_degree = 4",
         "no multiple"),
        ("[parallelism]\ndata_parallel_shard_degree = 0", "must be -1 or from 1"),
        ("[parallelism]\npipeline_parallel_degree = 2\n"
         "pipeline_parallel_schedule = 'ZBVZeroBubble'\n"
         "module_fqns_per_model_part = [['layers.0'], ['layers.1']]", "two stages on each rank"),
    ],
)  # fmt: skip
def test_mistakes(text, words):
    with pytest.raises(pc.InputError, match=words) as error:
        pc.Strategy.from_torchtitan(text + "\n")
    assert str(error.value).startswith("the text")


def test_gpus_settle_the_replicas_that_are_written():
    text = pc.Strategy.parse("tp=2,sp,zero=3,hsdp=4,mb=1").launch_config("torchtitan", gpus=32)
    assert "data_parallel_replicate_degree = 4" in text
    assert "data_parallel_shard_degree = 4" in text


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ("dp=8,tp=2,zero=3,mb=1", "Nearest: tp=2,sp"),
        ("dp=8,zero=1,mb=1", "Nearest: zero=3,reshard=off"),
        ("dp=8,zero=3,reshard=4,mb=1", "Nearest: reshard=on"),
        ("dp=8,zero=3,prefetch=2,mb=1", "Nearest: prefetch=1"),
        ("dp=8,zero=3,unit=2,mb=1", "Nearest: unit=1"),
        ("dp=8,zero=3,recompute=full:4,mb=1", "Nearest: recompute=full or every:N"),
        ("dp=8,zero=3,recompute=selective,mb=1", "Nearest: recompute=selective:op"),
        ("dp=8,zero=3,mb=1,attn=unfused", "Nearest: attn=flash"),
        ("dp=8,zero=3,mb=1,bucket=25MB", "without `bucket`"),
        ("dp=8,zero=3,mb=1,overlap=none", "Nearest: overlap=grad\\+param"),
        ("dp=8,zero=3,mb=1,accum=2,sync=last", "Nearest: sync=each"),
        ("pp=4,dp=2,zero=3,mb=1,accum=8,sync=each", "Nearest: sync=last"),
        ("pp=4,zero=3,mb=1,schedule=zb1p", "Nearest: schedule=zbv"),
        ("pp=4,vpp=3,zero=3,mb=1", "Give the model"),
        ("zero=3,mb=1,accum=4", "with dp said"),
        ("dp=2,pp=2,zero=3,order=tp-pp-dp,mb=1", "order=tp-cp-ep-dp-pp"),
        ("dp=2,pp=2,zero=3,schedule=zbv,layout=4+4,mb=1", "List the layers of 4"),
        ("dp=2,tp=2,sp,zero=3,etp=1,mb=1", "Nearest: etp=2"),
        ("dp=8,zero=0,mb=1,overlap=none", "Nearest: overlap=grad\\+param"),
        ("dp=1,tp=2,sp,cp=2,mb=1", "Nearest: zero=3,hsdp=1"),
        ("dp=8,zero=3,mb=1,offload=activations:2", "Nearest: offload=optimizer\\+param"),
        ("dp=8,zero=3,mb=1,vocab_parallel=redis", "without `vocab_parallel`"),
    ],
)
def test_plans_that_torchtitan_cannot_run(strategy, words):
    with pytest.raises(pc.InputError, match=words):
        pc.Strategy.parse(strategy).launch_config("torchtitan")
