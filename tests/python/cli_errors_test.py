"""Every mistake a newcomer can make is answered with one line: what, where, the remedy."""

from __future__ import annotations

import pytest

MACHINE = "dgx-a100-80g:1"


@pytest.fixture
def predict_error(cli, small_file):
    def run(strategy="tp=2,mb=1", machine=MACHINE, model=None, *more):
        return cli.error("predict", "-m", model or small_file, "-c", machine, "-s", strategy, *more)

    return run


def test_no_such_command(cli):
    assert "Did you mean `predict`?" in cli.error("predikt")


def test_missing_option(cli):
    assert "-m/--model" in cli.error("predict", "-c", MACHINE, "-s", "tp=2")


def test_unknown_option(cli, small_file):
    assert "--bach" in cli.error(
        "predict", "-m", small_file, "-c", MACHINE, "-s", "tp=2", "--bach", "8"
    )


def test_typo_in_strategy_key(predict_error):
    error = predict_error("tpp=2,mb=1")
    assert "`tpp`" in error
    assert "Did you mean" in error


def test_typo_in_strategy_value(predict_error):
    assert "`selective`" in predict_error("tp=2,mb=1,recompute=selektive")


def test_key_given_twice(predict_error):
    assert "twice" in predict_error("tp=2,tp=4,mb=1")


def test_key_that_is_not_simulated_yet(predict_error):
    assert "not supported yet: " in predict_error("pp=2,vpp=2,mb=1,vocab_parallel=vocab1")


def test_tp_does_not_divide_the_heads(cli, tmp_path):
    path = tmp_path / "model.yaml"
    path.write_text("layers: 4\nhidden: 768\nheads: 12\nffn: 3072\nvocab: 1000\nseq: 256\n")
    error = cli.error("predict", "-m", str(path), "-c", MACHINE, "-s", "tp=8,mb=1", "--batch", "8")
    assert "heads" in error
    assert "8" in error
    assert "12" in error


def test_batch_not_divisible(predict_error):
    error = predict_error("tp=2,mb=3", MACHINE, None, "--batch", "16")
    assert "16" in error
    assert "mb" in error


def test_devices_not_divisible(predict_error):
    assert "8" in predict_error("tp=3,mb=1")


def test_more_stages_than_layers(predict_error):
    assert "layers" in predict_error("pp=8,mb=1", MACHINE, None, "--batch", "8")


def test_unknown_model_preset(predict_error):
    error = predict_error(model="gpt3-175bb")
    assert "`gpt3-175bb`" in error
    assert "Did you mean `gpt3-175b`?" in error


def test_unknown_machine_preset(predict_error):
    error = predict_error(machine="dgx-a100-80gb:1")
    assert "Did you mean `dgx-a100-80g:1`?" in error


def test_machine_without_hosts(predict_error):
    assert "0" in predict_error(machine="dgx-a100-80g:0")


@pytest.mark.parametrize("number", ["-8", "0", "99999999999999999999", "many", "1.5"])
@pytest.mark.parametrize("option", ["--batch", "--seq"])
def test_numbers_nobody_can_mean(predict_error, option, number):
    assert number in predict_error("tp=2,mb=1", MACHINE, None, option, number)


@pytest.mark.parametrize("number", ["-8", "0", "99999999999999999999", "many"])
def test_numbers_nobody_can_mean_in_a_strategy(predict_error, number):
    assert f"{number}" in predict_error(f"tp={number},mb=1")


def test_huge_machine(predict_error):
    assert predict_error(machine="dgx-a100-80g:99999999999999999999")


def test_unknown_dtype(predict_error):
    assert "Did you mean `bf16`?" in predict_error("tp=2,mb=1", MACHINE, None, "--dtype", "bf61")


def test_unknown_profile(predict_error):
    error = predict_error("tp=2,mb=1", MACHINE, None, "--profile", "megatron-cor")
    assert "Did you mean `megatron-core`?" in error


@pytest.mark.parametrize("name", ["model.json", "model.yaml"])
def test_missing_model_file(predict_error, name):
    assert f"there is no file `absent/{name}`" in predict_error(model=f"absent/{name}")


def test_missing_machine_file(predict_error):
    assert "there is no file `absent.yaml`" in predict_error(machine="absent.yaml")


def test_missing_strategy_file(predict_error):
    assert "there is no file `absent.yaml`" in predict_error("absent.yaml")


def test_malformed_json(predict_error, tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "llama",\n "hidden_size": }')
    error = predict_error(model=str(path))
    assert f"`{path}`:2:" in error
    assert "not JSON" in error


def test_malformed_yaml(predict_error, tmp_path):
    path = tmp_path / "machine.yaml"
    path.write_text("preset: dgx-h100\n  hosts: [1\n")
    error = predict_error(machine=str(path))
    assert f"`{path}`:2" in error
    assert "not YAML" in error


def test_yaml_that_is_no_mapping(predict_error, tmp_path):
    path = tmp_path / "machine.yaml"
    path.write_text("- a\n- b\n")
    assert "`key: value`" in predict_error(machine=str(path))


def test_unknown_field_of_a_machine(predict_error, tmp_path):
    path = tmp_path / "machine.yaml"
    path.write_text("preset: dgx-h100\nhots: 4\n")
    error = predict_error(machine=str(path))
    assert "hots" in error
    assert "`hosts`" in error


def test_unknown_field_of_a_model(predict_error, tmp_path):
    path = tmp_path / "model.yaml"
    path.write_text("layers: 4\nhiden: 512\n")
    assert "hiden" in predict_error(model=str(path))


def test_unknown_architecture(predict_error, tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "mamba", "hidden_size": 64}')
    error = predict_error(model=str(path))
    assert "architecture `mamba` is not known. There are `bert`, " in error
    assert " more. docs/models.md lists them." in error


def test_typo_in_an_axis_of_a_tree(predict_error, tmp_path):
    path = tmp_path / "tree.yaml"
    path.write_text('plan: "tp=2,mb=1"\nnodes:\n  layers.*.mlp:\n    split: {tpp: [ffn]}\n')
    error = predict_error(str(path))
    assert "tpp" in error
    assert "Did you mean `tp`?" in error


def test_trace_that_cannot_be_written(cli, small_file):
    error = cli.error(
        "predict", "-m", small_file, "-c", MACHINE, "-s", "tp=8,mb=1",
        "--trace", "absent/folder/t.json",
    )  # fmt: skip
    assert "cannot be written" in error


def test_rank_without_a_batch(cli, small_file):
    assert "--batch" in cli.error("rank", "-m", small_file, "-c", MACHINE)


def test_typo_in_a_space(cli, small_file):
    error = cli.error("rank", "-m", small_file, "-c", MACHINE, "--batch", "8", "--space", "tpp=1|2")
    assert "Did you mean `tp`?" in error


def test_typo_in_an_objective(cli, small_file):
    error = cli.error(
        "rank", "-m", small_file, "-c", MACHINE, "--batch", "8", "--objective", "tiem"
    )
    assert "Did you mean `time`?" in error


def test_plans_in_an_unknown_format(cli, small_file):
    error = cli.error(
        "rank", "-m", small_file, "-c", MACHINE, "--batch", "8",
        "--space", "tp=8,pp=1,mb=1", "--out", "plans.xls",
    )  # fmt: skip
    assert ".csv" in error


def test_unknown_pass(cli, small_file):
    error = cli.error(
        "compile", "-m", small_file, "-c", MACHINE, "-s", "tp=8,mb=1", "--dump-after", "relayuot"
    )
    assert "Did you mean `relayout`?" in error


def test_one_thing_is_no_comparison(cli, small_file):
    assert "two" in cli.error("compare", "-m", small_file, "-c", MACHINE, "-s", "tp=8,mb=1")


def test_rows_that_are_not_there(cli):
    assert "there is no file `absent.csv`" in cli.error("validate", "absent.csv")


def test_rows_with_other_columns(cli, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")
    assert "no measured runs" in cli.error("validate", str(path))


def test_nothing_to_calibrate(cli, tmp_path):
    assert "--kernels" in cli.error("calibrate", "-o", str(tmp_path))


@pytest.mark.parametrize("what", ["--kernels", "--collectives"])
def test_measurements_that_are_not_there(cli, tmp_path, what):
    error = cli.error("calibrate", what, str(tmp_path / "absent"), "-o", str(tmp_path / "out"))
    assert "absent" in error


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("hardware.csv", "a,b\n1,2\n", "has no column `gpu`; it has a, b"),
        ("hardware.csv", "gpu,sm_count\nx,many\n", "has no column `boost_mhz`"),
        ("gemm.csv", "", "has no column `m`"),
        ("gemm.csv", "m,n,k,batch,time_us\nmany,1,1,1,1\n", ":2: `m` is `many`; it must be a"),
    ],
)
def test_measurements_that_cannot_be_read(cli, tmp_path, name, text, said):
    columns = ("gpu", "sm_count", "boost_mhz", "mem_gbps")
    rates = (f"{rate}_tflops" for rate in ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4"))
    (tmp_path / "hardware.csv").write_text(",".join((*columns, *rates)) + "\n")
    (tmp_path / name).write_text(text)
    error = cli.error("calibrate", "--kernels", str(tmp_path), "-o", str(tmp_path / "out"))
    assert said in error


def test_a_file_where_a_folder_belongs(cli, small_file):
    error = cli.error("calibrate", "--kernels", "absent", "-o", small_file)
    assert "is a file; give a folder" in error


def test_a_plan_that_does_not_fit_is_an_answer(cli, large_file):
    arguments = ("predict", "-m", large_file, "-c", MACHINE, "-s", "tp=8,mb=1", "--batch", "8")
    code, out, _ = cli(*arguments)
    assert code == 0
    assert "does not fit" in out
    assert cli(*arguments, "--require-fit")[0] == 3


def test_a_plan_that_fits_satisfies_require_fit(cli, small_file):
    arguments = ("-m", small_file, "-c", MACHINE, "-s", "tp=8,mb=1", "--require-fit")
    assert cli("predict", *arguments)[0] == 0


@pytest.mark.parametrize("option", ["-m", "-c", "-s"])
def test_names_longer_than_a_file_may_have(cli, small_file, option):
    values = {"-m": small_file, "-c": MACHINE, "-s": "tp=2,mb=1", option: "x" * 100_000}
    error = cli.error("predict", *(word for pair in values.items() for word in pair))
    assert len(error) < 2100


_COLLECTIVE = ("--collective", "all_reduce", "--bytes", "8", "--ranks", "2")


@pytest.mark.parametrize(
    "command",
    [
        ("calibrate", "--kernels", "LONG", "--out", "LONG"),
        ("calibrate", "--kernels", ".", "--out", "LONG"),
        ("validate", "LONG"),
        ("records", "ingest", "LONG", "--db", "x.db"),
        ("run", "LONG", "-c", MACHINE),
        ("export", "chakra", *_COLLECTIVE, "--out", "LONG"),
    ],
)
def test_paths_longer_than_a_file_may_have(cli, command):
    error = cli.error(*("x" * 5000 if word == "LONG" else word for word in command))
    assert "defect" not in error and len(error) < 2100


@pytest.mark.parametrize("prefix", [".", "/", ""])
def test_a_prefix_of_traces_needs_a_name(cli, prefix):
    error = cli.error("export", "chakra", *_COLLECTIVE, "--out", prefix)
    assert "names no file" in error


def test_control_characters_are_shown(predict_error):
    assert "`\\x1b[31m`" in predict_error("\x1b[31m=2")


def test_option_given_twice(cli, small_file):
    error = cli.error("predict", "-m", small_file, "-m", "gpt2", "-c", MACHINE, "-s", "tp=2")
    assert "-m/--model is given twice" in error


def test_dtype_in_capitals(predict_error):
    assert "Did you mean `bf16`? " in predict_error("tp=2,mb=1", MACHINE, None, "--dtype", "BF16")


def test_typo_in_a_file_name(predict_error, small_file):
    assert f"Did you mean `{small_file}`?" in predict_error(model=small_file.replace("ll", "l"))


def test_config_without_a_model_type(predict_error, tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"hidden_size": 64, "num_hidden_layers": 2}')
    assert "no `model_type`" in predict_error(model=str(path))


@pytest.mark.parametrize("key", ["what", "cls", "self"])
def test_fields_named_as_our_own_arguments(predict_error, tmp_path, key):
    path = tmp_path / "model.yaml"
    path.write_text(f"layers: 4\n{key}: 1\n")
    assert f"no field `{key}`" in predict_error(model=str(path))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("preset: dgx-h100\nhosts: 1\nhosts: 2\n", "`hosts` is given twice"),
        ("preset: dgx-h100\nhosts: .nan\n", "`hosts` is nan"),
        ("preset: dgx-h100\nhosts: 1000000000000\n", "at most 2147483647"),
        ("preset: dgx-h100\nhosts: [1]\n", "a whole number is needed"),
        ("preset: dgx-h100\nhosts: 0\n", "`hosts` is 0"),
        ("preset: dgx-h100\nhosts: 2020-01-01\n", "`hosts` is a date"),
        ("1: 2\n", "the key `1` is a number"),
    ],
)
def test_machine_files_that_are_refused(predict_error, tmp_path, text, said):
    path = tmp_path / "machine.yaml"
    path.write_text(text)
    error = predict_error(machine=str(path))
    assert error.startswith(f"`{path}`")
    assert said in error


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("plans.xls", "`.csv`"),
        ("absent/plans.csv", "there is no folder `absent`"),
        ("", "empty name"),
    ],
)
def test_outputs_are_checked_before_the_work(cli, monkeypatch, out, said):
    def never(*arguments, **named):
        raise AssertionError("the plans were ranked first")

    monkeypatch.setattr("plancast.planning.rank", never)
    arguments = ("rank", "-m", "gpt2", "-c", MACHINE, "--batch", "8", "--out", out)
    assert said in cli.error(*arguments)


def test_more_threads_than_a_machine_runs(cli):
    assert "1,024" in cli.error("validate", "rows.csv", "--workers", "99999")
