"""Words of other tools and of habit: each answer says what to type."""

from __future__ import annotations

import pytest

MACHINE = "dgx-h100:1"


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
        ("meta-llama/Llama-3.1-70B-Instruct", "llama3-70b"),
        ("mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"),
        ("Qwen/Qwen3-8B", "qwen3-8b"),
    ],
)
def test_names_of_the_hub_are_answered_with_a_preset(refused, said, preset):
    answer = refused(model=said)
    assert answer.startswith(f"`{said}` is no file, and nothing is downloaded. Did you mean")
    assert f"Did you mean `{preset}`?" in answer
    assert "config.json" in answer


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
    answer = refused(machine="tpu-v5p:4")
    assert answer.startswith("no machine `tpu-v5p:4`. There are `dgx-")
    assert names(answer) == 6


def test_swapped_model_and_machine(cli):
    swapped = ("predict", "-m", "dgx-h100:2", "-c", "llama3-8b", "-s", "tp=8")
    assert "Write `-m llama3-8b`" in cli.error(*swapped)
    both = ("predict", "-m", "dgx-h100:2", "-c", "dgx-h100:2", "-s", "tp=8")
    assert "Write `-c dgx-h100:2`" in cli.error(*both)


def test_a_size_that_does_not_divide_the_machine(rank_refused):
    answer = rank_refused("tp=16")
    assert "`tp=16` does not divide the 8 GPUs of the machine. Write `tp=1|2|4|8`" in answer


def test_words_of_fine_tuning(refused):
    answer = refused("--lora", "16")
    assert answer.startswith("not supported yet: `--lora`. ")
    assert "leave adapters out" in answer


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
