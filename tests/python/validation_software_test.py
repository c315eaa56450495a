"""Which software profile stands for what a measured row says that ran."""

from __future__ import annotations

import pytest
from plancast.accuracy.validation import software
from plancast.accuracy.validation.run import validate

COLUMNS = (
    "row_id,source,model,layers,hidden,heads,vocab,seq_len,machine,strategy,global_batch,dtype,"
    "software,iter_time_s"
)
ROW = '"{}",here,small,2,256,4,1000,256,dgx-a100-80g:1,"dp=8,mb=1,recompute=none",8,bf16,"{}",0.05'


def board(folder, *softwares):
    """Rows that say that these ran, beside their forecasts."""
    path = folder / "rows.csv"
    lines = [ROW.format(f"row-{i}", software) for i, software in enumerate(softwares)]
    path.write_text("\n".join([COLUMNS, *lines]) + "\n")
    return validate([path], workers=1)


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("MLPerf MXNet", "nvidia-mxnet"),
        ("NVIDIA DeepLearningExamples MxNet", "nvidia-mxnet"),
        ("MLPerf PyTorch", "nvidia-pytorch"),
        ("MLPerf NeMo (PyTorch)", "nvidia-mlperf"),
        ("PyTorch", "fsdp"),
        ("pytorch fsdp", "fsdp"),
        ("PyTorch DDP", "ddp"),
        ("PyTorch 2.3 eager", "eager"),
        ("eager", "eager"),
        ("torch nightly Apr 2024 eager", "torchtitan-eager"),
        ("TorchTitan (Dec 2024) compile", "torchtitan-2024"),
        ("torch 2.8.0a0 (NGC 25.05) compile", "torchtitan"),
        ("PyTorch 2.3 compile", "compiled"),
        ("sail-sg", "megatron-2021"),
        ("sail-sg/zero-bubble-pipeline-parallelism", "megatron-2021"),
        ("Megatron-LM based", "megatron-2021"),
        ("MEGATRON-LM 2024", "megatron-core"),
        ("Primus (Megatron-LM on ROCm 7.1)", "primus"),
        ("Primus (torchtitan on ROCm)", "torchtitan-primus"),
        ("NeMo 2.3.0 on ROCm 7.0", "megatron-core"),
        ("NeMo AutoModel 26.02", "automodel"),
        ("NeMo-Automodel", "automodel"),
        ("AutoModel", "automodel"),
        ("NeMo AutoModel main (Apr 2026) compile", "automodel-compiled"),
        ("DeepSpeed 0.14", "deepspeed"),
        ("HF Trainer + DeepSpeed ZeRO 2021", "deepspeed-2021"),
        ("Hugging Face transformers + DeepSpeed", "deepspeed"),
        ("transformers 4.40, eager PyTorch", "transformers"),
        ("Hugging Face transformers 4.51, PyTorch 2.6", "eager"),
        ("LLaMA-Factory", "eager"),
        ("NeuSight", "transformers"),
        ("Megatron-LM core_r0.5.0 by accelerate 1.0.0", "megatron-2021"),
        ("Horovod, tf_cnn_benchmarks", "nvidia-tensorflow"),
        ("MosaicML llm-foundry", "composer"),
    ],
)
def test_software_is_known_whatever_its_case(name, profile):
    for spelt in (name, name.lower(), name.upper()):
        assert software.shipped_profile_for(spelt) == (profile, f"for `{spelt}`")


@pytest.mark.parametrize(
    ("name", "dispatcher", "profile"),
    [
        ("Megatron-Bridge 26.04 NeMo Container", "alltoall", "megatron-bridge"),
        ("Megatron-Bridge 26.04 NeMo Container", "unknown", "megatron-bridge-flex"),
        ("Megatron-Bridge 25.11 NeMo Container", "deepep", "megatron-bridge-flex"),
        ("Megatron-LM main", "hybridep", "megatron-core-flex"),
        ("Megatron-LM main", "alltoall", "megatron-core"),
        ("DeepSpeed", "deepep", "deepspeed"),
    ],
)
def test_a_row_may_say_its_dispatcher(name, dispatcher, profile):
    assert software.shipped_profile_for(name, dispatcher)[0] == profile


def test_gpt2_has_modules_of_its_own_in_transformers():
    for name in ("transformers, eager PyTorch 2.1", "PyTorch 2.1 (NeuSight)"):
        assert (
            software.shipped_profile_for(name, model="gpt2-large")[0] == "transformers+gpt2-modules"
        )
        assert software.shipped_profile_for(name, model="bert-large")[0] == "transformers"


def test_networks_of_unknown_software_are_no_transformers():
    assert software.shipped_profile_for("x", network=True)[0] == "nvidia-pytorch"
    assert software.shipped_profile_for("x")[0] == "megatron-core"


def test_experts_of_fixed_capacity_have_a_profile():
    profile, why = software.shipped_profile_for(
        "Megatron-Bridge 25.09 NeMo Container", "alltoall", token_drop=True
    )
    assert (profile, why) == (
        "megatron-bridge-drop",
        "for `Megatron-Bridge 25.09 NeMo Container` with token drop",
    )
    assert software.shipped_profile_for("DeepSpeed", token_drop=True)[0] == "deepspeed"


@pytest.mark.parametrize(
    ("model", "experts", "profile"),
    [
        ("llama3-8b", False, "automodel"),
        ("deepseek-v3", True, "automodel-benchmark"),
        ("gpt-oss-120b", True, "automodel-flex"),
    ],
)
def test_published_runs_of_automodel_are_of_its_benchmark_recipes(model, experts, profile):
    name = "NeMo AutoModel 26.02"
    before = {"automodel-benchmark": "automodel-2025"}.get(profile, profile)
    for undated in ("NeMo AutoModel main (Oct 2025)", "AutoModel"):
        assert software.shipped_profile_for(undated, experts=experts, model=model)[0] == before
    assert software.shipped_profile_for(name, "deepep", experts=experts, model=model)[0] == profile


@pytest.mark.parametrize(
    ("layers", "stages", "layout"),
    [(61, 28, "3x5+2x23"), (48, 4, "12x4"), (7, 4, "2x3+1"), (8, 1, None)],
)
def test_automodel_gives_what_is_left_over_to_the_first_stages(layers, stages, layout):
    assert software.layout_of("NeMo AutoModel 26.02", layers, stages) == layout


@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("Megatron-Bridge 25.09 NeMo Container", "0.2.0"),
        ("Megatron-Bridge 26.02.01 NeMo Container", "0.3.1"),
        ("Megatron-Bridge 26.02 NeMo Container", "0.3.0"),
        ("Megatron-Bridge 26.06.01 NeMo Container", "0.5.0"),
        ("Megatron-Bridge 26.10 NeMo Container", "0.6.0"),  # the newest that is shipped
        ("Megatron-Bridge Jul 2026", "0.5.0"),
        ("NeMo 24.07", None),
    ],
)
def test_containers_have_releases_of_recipes(name, release):
    assert software.release_of(name) == release


def test_recipes_say_what_is_not_overlapped_or_kept_elsewhere():
    bridge = "Megatron-Bridge 25.11 NeMo Container"
    assert not software.overlaps_tp(bridge, "nvfp4")
    assert software.overlaps_tp(bridge, "fp8")
    assert software.overlaps_tp("Megatron-LM main", "nvfp4")
    assert software.kept_in(bridge, "fp8") == "fp8"
    assert software.kept_in(bridge, "mxfp8") is None


@pytest.mark.parametrize(
    ("model", "profile", "recompute"),
    [
        ("gpt3-20b", "nemo-2024-dropout", "selective"),
        ("llama3-8b", "nemo-2024", "none"),
        ("nemotron-22b", "nemo-2024", "none"),
        ("mixtral-8x7b", "nemo-2024", None),
    ],
)
def test_recipes_of_nemo_go_by_model(model, profile, recompute):
    assert software.shipped_profile_for("NeMo 24.07", model=model)[0] == profile
    assert software.recompute_of("NeMo 24.07", model) == recompute
    assert software.recompute_of("Megatron-LM main", model) is None


LLAMA = (
    '"row",here,llama3-70b,2,256,4,1000,256,gb200-nvl72:2,"{}",8,{},'
    '"Megatron-Bridge 25.11 NeMo Container",0.05'
)


@pytest.mark.parametrize(
    ("strategy", "dtype", "chosen"),
    [
        (
            "dp=4,tp=2,sp,mb=1,recompute=none,overlap=grad+tp",
            "nvfp4",
            {"overlap": "grad (assumed with tp: not in the software's recipes)"},
        ),
        ("dp=4,tp=2,sp,mb=1,recompute=none,overlap=grad+tp", "mxfp8", {"overlap": None}),
        (
            "dp=8,zero=3,mb=1",
            "fp8",
            {"activation_offload": "40 layers (unknown: as in the recipes)"},
        ),
        ("dp=8,zero=3,mb=1,recompute=none", "fp8", {"activation_offload": None}),
    ],
)
def test_a_row_runs_as_the_recipes_do(tmp_path, strategy, dtype, chosen):
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([COLUMNS, LLAMA.format(strategy, dtype)]) + "\n")
    from plancast.accuracy.validation.jobs import prepare
    from plancast.accuracy.validation.rows import read_rows

    (row,), _ = read_rows([path])
    job = prepare(row)
    for key, said in chosen.items():
        assert job.chosen.get(key) == said


TITAN = (
    '"row",here,small,20,256,4,1000,256,dgx-h100:1x{},"{}",24,bf16,'
    '"torchtitan (Dec 2024) compile",0.05'
)


@pytest.mark.parametrize(("stages", "one_a_stage"), [(2, True), (4, True), (5, False)])
def test_batches_are_cut_in_as_many_as_there_are_stages_where_they_divide(
    tmp_path, stages, one_a_stage
):
    from plancast.accuracy.validation.jobs import prepare
    from plancast.accuracy.validation.rows import read_rows

    path = tmp_path / "rows.csv"
    said = f"dp=1,pp={stages},recompute=none"
    path.write_text("\n".join([COLUMNS, TITAN.format(stages, said)]) + "\n")
    (row,), _ = read_rows([path])
    assert ("as many micro-batches as stages" in prepare(row).chosen.get("mb", "")) == one_a_stage


@pytest.mark.parametrize(("fused", "profile"), [(True, "-fused"), (False, "-flex")])
def test_products_of_experts_may_be_one_kernel(fused, profile):
    name = "Megatron-Bridge 26.06 NeMo Container"
    assert (
        software.shipped_profile_for(name, "hybridep", fused=fused)[0]
        == f"megatron-bridge{profile}"
    )
    assert software.shipped_profile_for("DeepSpeed", fused=fused)[0] == "deepspeed"


def test_every_rule_names_a_profile_that_is_shipped():
    from plancast import _core

    shipped = set(_core.profile_names())
    for entry in software._table():
        assert entry["profile"] in shipped or entry["otherwise"] in shipped
        assert shipped.issuperset(entry.get("dispatchers", {}).values())
        assert entry.get("token_drop", entry["profile"]) in shipped | {entry["profile"]}
        assert entry.get("fused", entry["profile"]) in shipped | {entry["profile"]}
        for named in entry.get("models", {}).values():
            profile, *added = named.split("+")
            assert profile in shipped
            assert set(_core.profile_additions()).issuperset(added)


def test_software_that_no_rule_knows_is_warned_of(tmp_path):
    known_by_none, not_stated = board(tmp_path, "Abacus 3", "Abacus 3", "", "PyTorch").warnings
    assert "`Abacus 3` (2 rows): no rule knows it, so `megatron-core` stands" in known_by_none
    assert "column `software`" in known_by_none
    assert "software not stated (1 row)" in not_stated
    assert board(tmp_path, "PyTorch").warnings == ()


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("NeMo 24.07 (Sept update)", "nemo-2024+cudnn-2024"),
        ("Megatron-Core r0.8.0 (Megatron-LM 2024-07)", "megatron-core+cudnn-2024"),
        ("Megatron-Core 0.12", "megatron-core+cudnn-2025"),
        ("Megatron-LM main", "megatron-core"),
        ("Megatron-Bridge 25.11 NeMo Container", "megatron-bridge+cudnn-2025"),
        ("DeepSpeed 0.19.2 + Liger-Kernel, FA3", "deepspeed+liger+flash-attention-3"),
        ("HF Trainer FSDP, flash-attn 3", "fsdp+flash-attention-3"),
        ("NVIDIA MLPerf Training v3.1 (NeMo 23.09)", "nvidia-mlperf-2024"),
        ("NVIDIA MLPerf Training v5.1 (NeMo 25.09)", "nvidia-mlperf+cudnn-2025"),
        ("NVIDIA MLPerf Training v6.0 (Megatron-Bridge 26.04)", "nvidia-mlperf-2026+cudnn-2026"),
    ],
)
def test_words_of_a_row_add_to_its_profile(name, profile):
    assert software.profile_for(name)[0] == profile


@pytest.mark.parametrize(
    ("said", "added"),
    [
        ("", ""),
        ("fp8=current_scaling", ""),
        ("fp8=delayed_assumed", "+delayed-scaling"),
        ("fp8=delayed activation_input=fp8", "+delayed-scaling+fp8-activation-input"),
    ],
)
def test_how_a_row_keeps_eight_bits_adds_to_its_profile(said, added):
    profile, _ = software.profile_for("Megatron-Bridge 25.11", said=said)
    assert profile == f"megatron-bridge+cudnn-2025{added}"
