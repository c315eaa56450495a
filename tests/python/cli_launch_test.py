"""Argument files on the command line."""

from __future__ import annotations

import plancast as pc
import pytest

TOML = """\
[training]
local_batch_size = 2
seq_len = 128
[parallelism]
tensor_parallel_degree = 2
data_parallel_shard_degree = 1
disable_loss_parallel = true
[activation_checkpoint]
mode = "full"
"""
SCRIPT = """\
ARGS=(--tensor-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer
      --micro-batch-size 1 --global-batch-size 32 --fp16 --seq-length 128 --lr 1e-4)
torchrun pretrain_gpt.py ${ARGS[@]}
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "run.toml").write_text(TOML)
    (tmp_path / "run.sh").write_text(SCRIPT)
    (tmp_path / "ds.json").write_text('{"train_micro_batch_size_per_gpu": 4}')
    return tmp_path


def test_a_script_settles_what_is_not_given(cli, small_file, files):
    arguments = ("predict", "-m", small_file, "-c", "dgx-h100:1", "-s", str(files / "run.sh"))
    said = cli.json(*arguments)
    assert said["provenance"]["strategy"] == "dp=4,tp=2,sp,zero=1,mb=1"
    assert said["chosen"]["accum"] == "8"
    assert said["chosen"]["profile"] == "megatron-lm"  # it does not ask for a fused loss
    plan = pc.predict(
        pc.Model.open(small_file, seq=128), pc.Machine.preset("dgx-h100:1"),
        "tp=2,sp,zero=1,mb=1", batch=32, dtype="fp16", profile="megatron-lm",
    )  # fmt: skip
    assert said["iteration_time_s"] == plan.iteration_time
    # What is given goes before what the file says.
    given = cli.json(*arguments, "--batch", "16", "--dtype", "bf16", "--seq", "256")
    assert given["chosen"]["accum"] == "4"
    assert given["tokens_per_s"] == pytest.approx(16 * 256 / given["iteration_time_s"])


def test_profile_and_remarks_of_torchtitan(cli, small_file, files):
    file = str(files / "run.toml")
    code, out, err = cli("predict", "-m", small_file, "-c", "dgx-h100:1x2", "-s", file, "--json")
    assert code == 0, err
    assert '"profile": "torchtitan-eager"' in out
    assert "warning: not in the plan: `parallelism.disable_loss_parallel`" in err
    # With fewer GPUs than the file wants there is one line, and no remark.
    assert "dp" in cli.error("predict", "-m", small_file, "-c", "dgx-h100:1", "-s", file)


def test_framework_may_be_said(cli, small_file, files):
    (files / "plain.json").write_text('{"fp16": {"enabled": true}}')
    arguments = ("predict", "-m", small_file, "-c", "dgx-h100:1", "-s", str(files / "plain.json"))
    assert cli.error(*arguments)
    said = cli.json(*arguments, "--from", "deepspeed")
    assert said["provenance"]["profile"] == "deepspeed"
    assert "Did you mean `torchtitan`" in cli.error(*arguments, "--from", "torchtian")


def test_compare_takes_files_and_short_forms(cli, small_file, files):
    said = cli.json(
        "compare", "-m", small_file, "-c", "dgx-h100:1", "--batch", "32",
        "-s", str(files / "run.sh"), "-s", "tp=2,sp,zero=1,mb=1",
    )  # fmt: skip
    assert [plan["strategy"] for plan in said["plans"]] == [
        "dp=4,tp=2,sp,zero=1,mb=1",
        "tp=2,sp,zero=1,mb=1",
    ]


def test_import_says_what_is_in_a_file(cli, files):
    said = cli.json("import", "launch", str(files / "run.toml"))
    assert said["framework"] == "torchtitan"
    assert said["strategy"] == "dp=1,tp=2,sp,mb=2,recompute=full"
    code, out, _ = cli("import", "launch", str(files / "run.sh"), "--gpus", "8")
    assert code == 0
    assert "strategy     dp=4,tp=2,sp,zero=1,mb=1,accum=8" in out
    assert "note: makes no difference to a forecast: `--lr`." in out


def test_export_writes_files_that_import_reads(cli, small_file, tmp_path):
    out = tmp_path / "run.sh"
    code, said, err = cli(
        "export", "launch", "megatron", "-m", small_file, "-c", "dgx-h100:1", "-s",
        "tp=2,sp,zero=1,mb=1", "--batch", "32", "-o", str(out),
    )  # fmt: skip
    assert (code, said) == (0, f"wrote {out}\n"), err
    launch = pc.launchers.read(out)
    assert launch.strategy.short_form == "dp=4,tp=2,sp,zero=1,mb=1,accum=8"
    assert launch.model.parameters == pc.Model.open(small_file).parameters


def test_export_refuses_what_a_framework_cannot_run(cli, small_file):
    arguments = ("-m", small_file, "-c", "dgx-h100:1", "-s", "tp=2,zero=1,mb=1")
    error = cli.error("export", "launch", "torchtitan", *arguments)
    assert error == (
        "torchtitan cannot run `tp=2`: its tensor parallelism is sequence-parallel. "
        "Nearest: tp=2,sp."
    )
    assert "no framework `jax`" in cli.error("export", "launch", "jax", *arguments)


def test_plans_that_are_not_simulated_are_written_all_the_same(cli, small_file):
    code, out, err = cli(
        "export", "launch", "torchtitan", "-m", small_file, "-c", "dgx-h100:1", "-s",
        "dp=4,cp=2,zero=3,mb=1,accum=8",
    )  # fmt: skip
    assert code == 0, err
    assert "context_parallel_degree = 2" in out


def test_broken_files_are_one_line(cli, small_file, tmp_path):
    path = tmp_path / "broken.toml"
    path.write_text("[parallelism\n")
    error = cli.error("predict", "-m", small_file, "-c", "dgx-h100:1", "-s", str(path))
    assert error.startswith(f"`{path}`:1:13 is not TOML")
