"""Words of other tools and of habit: each answer says what to type."""

from __future__ import annotations

import importlib.machinery
import re
import shlex
import sys
import types

import plancast as pc
import pytest
from plancast import machine_names
from plancast.cli import sizes

MACHINE = "dgx-h100:1"


@pytest.fixture
def no_hub(monkeypatch):
    """As where `huggingface_hub` does not reach the hub."""
    library = types.ModuleType("huggingface_hub")
    library.__spec__ = importlib.machinery.ModuleSpec("huggingface_hub", None)

    def refuse(*_, **__):
        raise ConnectionError

    library.hf_hub_download = refuse
    monkeypatch.setitem(sys.modules, "huggingface_hub", library)


@pytest.fixture
def refused(cli):
    """The answer to a prediction with one option changed."""

    def run(*more, model="llama3-8b", machine=MACHINE, strategy="tp=8,mb=1"):
        return cli.error("predict", "-m", model, "-c", machine, "-s", strategy, *more)

    return run


@pytest.fixture
def rank_refused(cli):
    def run(space, machine=MACHINE):
        arguments = ("-m", "llama3-8b", "-c", machine, "--batch", "64", "--space", space)
        return cli.error("rank", *arguments)

    return run


def names(answer):
    """How many names an answer lists."""
    return answer.count("`") // 2


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("tp=1,2,4", "tp=1|2|4"),
        ("mb=1|2,tp=2,4,pp=1", "tp=2|4"),
        ("recompute=none,full", "recompute=none|full"),
        ("pp=1,*", "pp=1|*"),
    ],
)
def test_values_of_a_space_are_joined_by_bars(rank_refused, said, typed):
    assert f"values are joined by `|`. Write `{typed}`." in rank_refused(said)


def test_of_two_spaces_one_is_taken(rank_refused):
    answer = rank_refused("tp=1,layout=even and besides tp=1,pp=1,hsdp=16")
    assert answer == "space: one space at a time. Write `tp=1,layout=even`."


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("tp=1|2 pp=1", "tp=1|2,pp=1"),
        ("tp=1|2; pp=1; mb=*", "tp=1|2,pp=1,mb=*"),
        ("recompute=none|full  tp=8", "recompute=none|full,tp=8"),
    ],
)
def test_items_of_a_space_are_joined_by_commas(rank_refused, said, typed):
    assert rank_refused(said) == f"space: items are joined by commas. Write `{typed}`."


@pytest.mark.parametrize(
    ("said", "typed"),
    [("tp=8 pp=2", "tp=8,pp=2"), ("tp=8; sp; mb=1", "tp=8,sp,mb=1"), ("tp:8", "tp=8")],
)
def test_items_of_a_plan_are_joined_by_commas(refused, said, typed):
    assert f"Write `{typed}`." in refused(strategy=said)


def test_a_software_profile_is_no_plan(refused):
    assert "Write `--profile fsdp -s zero=3,mb=1`" in refused(strategy="fsdp")
    assert "Write `--profile megatron-core -s " in refused(strategy="megatron-core")


@pytest.mark.parametrize(
    ("said", "preset"),
    [
        ("meta-llama/Meta-Llama-3-8B", "llama3-8b"),
        ("meta-llama/Llama-3.1-70B-Instruct", "llama3.1-70b"),
        ("mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"),
        ("Qwen/Qwen3-8B", "qwen3-8b"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"),
        ("meta-llama/Llama-3.2-1B", "llama3.2-1b"),
        ("google/gemma-2-9b-it", "gemma2-9b"),
        ("bigscience/bloom", "bloom-176b"),
    ],
)
def test_names_of_the_hub_are_taken_from_the_catalogue(said, preset, no_hub):
    model = pc.Model.open(said, seq=512)
    assert model == pc.Model.preset(preset, seq=512)


@pytest.mark.parametrize(
    "said",
    ["mistralai/Mistral-7B-v0.3", "Qwen/Qwen2-0.5B", "deepseek-ai/R1-Distill-Llama-70B"],
)
def test_names_of_the_hub_with_other_sizes_are_not_guessed(refused, said, no_hub):
    answer = refused(model=said)
    assert answer.startswith(f"`{said}` is no file and not in the catalogue, and nothing was")
    assert "config.json" in answer


def test_a_name_of_the_hub_is_told_behind_the_result(cli, no_hub):
    plan = ("-c", MACHINE, "-s", "tp=8,zero=1,mb=1", "--batch", "8")
    code, _, err = cli("predict", "-m", "meta-llama/Llama-3.1-8B", *plan)
    assert code == 0
    assert err == (
        "plancast: note: `meta-llama/Llama-3.1-8B` has the sizes of `llama3.1-8b`, 8,192 tokens a "
        "sequence\n"
    )


def test_the_hub_is_asked_where_its_library_is_there(monkeypatch, tmp_path):
    config = tmp_path / "0123abcd" / "config.json"
    config.parent.mkdir()
    config.write_text(
        '{"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 3, "vocab_size": 1000, '
        '"num_attention_heads": 8, "intermediate_size": 2048, "max_position_embeddings": 256, '
        '"hidden_act": "silu", "tie_word_embeddings": false}'
    )
    asked = []

    def download(name, file, etag_timeout):
        asked.append((name, file))
        if name == "closed/gate-8b":
            raise PermissionError(name)
        return str(config)

    library = types.ModuleType("huggingface_hub")
    library.__spec__ = importlib.machinery.ModuleSpec("huggingface_hub", None)
    library.hf_hub_download = download
    monkeypatch.setitem(sys.modules, "huggingface_hub", library)
    model = pc.Model.open("someone/Small-0.1B")
    assert (model.name, model.layers, model.seq) == ("Small-0.1B", 3, 256)
    with pytest.raises(pc.InputError, match="nothing was downloaded"):
        pc.Model.open("closed/gate-8b")
    assert asked == [("someone/Small-0.1B", "config.json"), ("closed/gate-8b", "config.json")]


@pytest.mark.parametrize("said", ["llama3-8B", "Llama-3-8b", "llama3_8b"])
def test_letter_case_and_dashes_of_a_preset(refused, said):
    answer = refused(model=said)
    assert answer.startswith(f"no model preset `{said}`. Did you mean `llama3-8b`?")
    assert names(answer) <= 7


def test_a_file_that_is_not_there_is_still_a_file(refused):
    assert refused(model="absent/model.yaml").startswith("there is no file `absent/model.yaml`")


def test_a_gpu_is_answered_with_a_machine_of_it(refused):
    answer = refused(machine="h100:2")
    assert answer.startswith("no machine `h100:2`. Did you mean `dgx-h100:2`?")
    assert names(answer) <= 6
    assert "Did you mean `dgx-a100-80g:1x4`?" in refused(machine="a100:1x4")
    assert "Did you mean `l40s-pcie:1`?" in refused(machine="L40S:1")


def test_a_machine_like_none_is_answered_with_five(refused):
    answer = refused(machine="abacus:4")
    assert answer.startswith("no machine `abacus:4`. There are `dgx-")
    assert names(answer) == 6


def test_swapped_model_and_machine(cli):
    swapped = ("predict", "-m", "dgx-h100:2", "-c", "llama3-8b", "-s", "tp=8")
    assert "Write `-m llama3-8b`" in cli.error(*swapped)
    both = ("predict", "-m", "dgx-h100:2", "-c", "dgx-h100:2", "-s", "tp=8")
    assert "Write `-c dgx-h100:2`" in cli.error(*both)


def test_a_size_that_does_not_divide_the_machine(rank_refused):
    answer = rank_refused("tp=16")
    assert "`tp=16` does not divide the 8 GPUs of the machine. Write `tp=1|2|4|8`" in answer


@pytest.mark.parametrize(("option", "typed"), [("--qlora", "16:nf4"), ("--peft", "16")])
def test_options_of_fine_tuning_are_answered_with_the_one_there_is(refused, option, typed):
    assert f"Write `--lora {typed}`" in refused(option)


@pytest.mark.parametrize("words", ["lora", "qlora", "peft"])
def test_words_of_fine_tuning_are_answered_with_a_plan_that_works(refused, words):
    answer = refused(strategy=words)
    assert "Adapters are part of the plan" in answer
    (typed,) = shlex.split(re.search("Write `-s (.*)` \\(docs", answer)[1])
    tree = pc.Strategy.open(typed)
    assert ("nf4" in tree.to_yaml()) == ("qlora" in str(words))
    model = pc.Model.preset("llama3-8b-l2", seq=512)
    assert pc.predict(model, pc.Machine.preset(MACHINE), tree, batch=8).fits


def test_a_tree_in_braces_is_a_plan(cli, refused, small_file, tmp_path):
    tree = '{plan: "tp=2,mb=1", nodes: {"": {lora: {rank: 8, on: [qkv, proj]}}}}'
    file = tmp_path / "tree.yaml"
    file.write_text(tree)
    plan = ("predict", "-m", small_file, "-c", MACHINE, "--batch", "8", "-s")
    said, read = cli.json(*plan, tree), cli.json(*plan, str(file))
    assert said["iteration_time_s"] == read["iteration_time_s"]
    assert any("parameters are trained" in note for note in said["provenance"]["notes"])
    assert "strategy" in refused(strategy="{plan: tp=2")


@pytest.mark.parametrize(
    ("said", "typed"),
    [("zero3", "zero=3"), ("tp8pp2", "tp=8,pp=2"), ("tp8,pp2", "tp=8,pp=2"), ("ZeRO-3", "zero=3")],
)
def test_sizes_without_their_signs(refused, said, typed):
    assert refused(strategy=said) == f"`{said}` has no `=`. Write `{typed}`."


@pytest.mark.parametrize(
    ("said", "profile"),
    [
        ("megatron", "megatron-core"),
        ("fsdp2", "torchtitan"),
        ("ddp", "ddp"),
        ("FSDP", "fsdp"),
        ("DeepSpeed", "deepspeed"),
    ],
)
def test_frameworks_are_no_plans(refused, said, profile):
    assert f"Write `--profile {profile} -s " in refused(strategy=said)


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("tpu-v5p:4", "TPUs"),
        ("v5e", "TPUs"),
        ("trn2:4", "AWS's Trainium"),
        ("trainium", "AWS's Trainium"),
        ("gaudi3:1", "Intel's Gaudi"),
        ("ascend-910b", "Huawei's Ascend"),
    ],
)
def test_accelerators_without_costs(refused, said, what):
    answer = refused(machine=said)
    assert answer.startswith(f"`{said}`: {what}")
    assert "Write such a machine, as in `-c dgx-h100:" in answer


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("8xH100", "dgx-h100:1"),
        ("64 A100s", "dgx-a100-80g:8"),
        ("H100x8", "dgx-h100:1"),
        ("h200 x 16", "dgx-h200:2"),
        ("4xV100", "dgx1-v100-32g:1x4"),
        ("p4d.24xlarge:2", "p4d-a100-40g:2"),
        ("a3-megagpu-8g:16", "gcp-a3mega-h100:16"),
    ],
)
def test_machines_as_others_call_them(refused, said, typed):
    answer = refused(machine=said)
    assert f"Write `-c {typed}`" in answer
    assert pc.Machine.open(typed)


def test_clouds_names_stand_for_presets():
    for preset in machine_names._words()["clouds"].values():
        assert pc.Machine.preset(preset)


def test_machine_is_another_word_for_c(cli, small_file):
    plan = ("-s", "tp=8,mb=1", "--batch", "8")
    said = cli.json("predict", "-m", small_file, "--machine", MACHINE, *plan)
    other = cli.json("predict", "-m", small_file, "-c", MACHINE, *plan)
    assert said["iteration_time_s"] == other["iteration_time_s"]


@pytest.mark.parametrize(
    ("said", "seq"), [("512", 512), ("1k", 1024), ("128K", 131072), ("1M", 1 << 20)]
)
def test_lengths_as_people_say_them(said, seq):
    assert sizes.seq(said) == seq


@pytest.mark.parametrize("said", ["128 kilo", "8kb", "", "-4", "0", "8.5k"])
def test_lengths_that_are_none(refused, said):
    answer = refused(f"--seq={said}")
    assert "write 4096, 8k or 128k" in answer or "is not between 1 and" in answer


@pytest.mark.parametrize(
    ("said", "samples", "told"),
    [
        ("64k tok", 256, "a batch of 65,536 tokens is 256 samples of 256"),
        ("65536tokens", 256, "a batch of 65,536 tokens is 256 samples of 256"),
        ("0.0625Mtok", 256, "a batch of 65,536 tokens is 256 samples of 256"),
        ("65000tok", 254, "a batch of 65,000 tokens is 254 samples of 256, 65,024 of them"),
    ],
)
def test_batches_in_tokens(cli, small_file, said, samples, told):
    plan = ("-m", small_file, "-c", MACHINE, "-s", "tp=8,mb=1", "--batch", said)
    code, out, err = cli("predict", *plan)
    assert code == 0
    assert f"batch {samples}, sequence 256" in out
    assert err == f"plancast: note: {told}\n"


def test_a_batch_in_tokens_of_a_net_without_sequences(cli):
    error = cli.error("predict", "-m", "resnet50", "-c", MACHINE, "-s", "dp=8", "--batch", "1Mtok")
    assert error == "`resnet50` has no sequences, so its batch is of samples: `--batch 256`."


@pytest.mark.parametrize("command", ["predict", "rank", "train"])
def test_a_batch_that_looks_like_tokens(cli, command):
    plan = ("-m", "llama3-8b", "-c", MACHINE, "--batch", "4194304", "--seq", "4k")
    more = {"predict": ("-s", "tp=8,mb=1"), "rank": (), "train": ("--tokens", "1T")}[command]
    error = cli.error(command, *plan, *more)
    assert "if 4194304 tokens were meant, it is 1024; write `--batch 4194304tok`." in error


def test_a_batch_that_may_be_either(refused):
    answer = refused("--batch", "4k")
    assert "write 4096 for samples or 4ktok for tokens" in answer
    assert "write samples, such as 256, or tokens, such as 4Mtok" in refused("--batch", "many")


@pytest.mark.parametrize(
    ("said", "typed"), [("--batsh", "--batch"), ("--sequence", "--seq"), ("--Profile", "--profile")]
)
def test_an_option_that_is_not_there(refused, said, typed):
    answer = refused(said, "16")
    assert f"no option `{said}`. Did you mean `{typed}`? `plancast predict --help`" in answer


def test_an_option_of_how_many(refused):
    assert "`-c dgx-h100:2x4`" in refused("--gpus", "8")


def test_words_without_an_option(refused):
    assert "`extra` is not understood" in refused("extra")


@pytest.mark.parametrize("strategy", ["", "  "])
def test_an_empty_plan(refused, strategy):
    assert "`-s` is empty. Say the plan, such as `-s tp=8,mb=1`" in refused(strategy=strategy)


@pytest.mark.parametrize(
    ("option", "name", "suffix"),
    [("--report", "x.pdf", ".html"), ("--memory-svg", "x.png", ".svg"), ("--trace", "x", ".json")],
)
def test_results_of_another_kind(refused, tmp_path, option, name, suffix):
    path = tmp_path / name
    assert f"its name must end in one of `{suffix}`" in refused(option, str(path))
    assert not path.exists()


def test_a_stream_needs_no_ending(cli, small_file):
    plan = ("-m", small_file, "-c", MACHINE, "-s", "tp=8,mb=1", "--batch", "8")
    code, _, err = cli("predict", *plan, "--trace", "/dev/null")
    assert code == 0, err


@pytest.mark.parametrize("command", ["rank", "compare"])
def test_pages_of_other_commands(cli, small_file, command):
    plan = () if command == "rank" else ("-s", "tp=2", "-s", "tp=4")
    arguments = ("-m", small_file, "-c", MACHINE, "--batch", "8", *plan, "--report", "x.pdf")
    assert "`.html`" in cli.error(command, *arguments)


def test_a_domain_of_other_links_is_not_called_nvlink(cli):
    arguments = ("rank", "-m", "llama3-8b", "-c", "oci-mi300x:2", "--batch", "64")
    code, out, err = cli(*arguments, "--space", "pp=1,mb=1,recompute=full")
    assert code == 0, err
    assert "NVLink" not in out
    assert "the GPUs' own links" in out
